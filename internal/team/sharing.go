// SPDX-License-Identifier: Apache-2.0

package team

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// Shared returns the namespaces that a Team would have on a cluster where an older Team has them, each with the reason,
// sorted. With two of them, each would have the rights of the other's workloads, and one that leaves with
// deletionPolicy Delete would delete what is the other's. An older Team that is being deleted has its namespaces until
// it is gone.
//
// Names with expressions are compared as they are written, not as they come out on a cluster. t may be one of all or
// not, and only Teams in platform namespaces count.
func Shared(t *hubv1.Team, all []hubv1.Team, clusters []hubv1.ClusterRegistration, platform func(namespace string) bool) []string {
	selects, err := Selector(t)
	if err != nil {
		return nil // Check says so
	}
	var out []string
	for i := range all {
		o := &all[i]
		if o.Namespace == t.Namespace && o.Name == t.Name || !platform(o.Namespace) || !before(o, t) {
			continue
		}
		theirs, err := Selector(o)
		if err != nil {
			continue
		}
		both := slices.IndexFunc(clusters, func(c hubv1.ClusterRegistration) bool {
			of := labels.Set(c.Labels)
			return selects.Matches(of) && theirs.Matches(of)
		})
		for _, n := range t.Spec.Namespaces {
			if both >= 0 && slices.ContainsFunc(o.Spec.Namespaces, func(m hubv1.TeamNamespace) bool { return m.Name == n.Name }) {
				out = append(out, fmt.Sprintf("spec.namespaces[%s]: Team %s/%s has that namespace on cluster %s/%s: name another one, or "+
					"select other clusters", n.Name, o.Namespace, o.Name, clusters[both].Namespace, clusters[both].Name))
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
