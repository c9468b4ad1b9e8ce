// SPDX-License-Identifier: Apache-2.0

package team

import (
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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

// Yield returns the spec of a Team's AddonSet, with the namespaces that other Teams name left on the clusters by Helm, whatever becomes of
// this one. While another Team has a namespace of its, the Team stays as it is, and a user who then deletes it, or selects other clusters,
// as it is told to, would delete what is the other's by now.
func Yield(t *hubv1.Team, spec *hubv1.AddonSetSpec, all []hubv1.Team, platform func(namespace string) bool) (*hubv1.AddonSetSpec, error) {
	out := spec.DeepCopy()
	for i := range out.Addons {
		if out.Addons[i].Manifests == nil {
			continue
		}
		var manifests map[string]any
		if err := json.Unmarshal(out.Addons[i].Manifests.Raw, &manifests); err != nil {
			return nil, fmt.Errorf("read the objects of Team %s: %w", t.Name, err)
		}
		objects, _ := manifests["objects"].([]any)
		for _, object := range objects {
			u := unstructured.Unstructured{}
			if u.Object, _ = object.(map[string]any); u.GetKind() != "Namespace" || !named(u.GetName(), t, all, platform) {
				continue
			}
			annotations := u.GetAnnotations()
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[keepAnnotation] = "keep"
			u.SetAnnotations(annotations)
		}
		raw, err := json.Marshal(manifests)
		if err != nil {
			return nil, fmt.Errorf("write the objects of Team %s: %w", t.Name, err)
		}
		out.Addons[i].Manifests.Raw = raw
	}
	return out, nil
}

// named returns whether a Team other than t names a namespace of the clusters.
func named(namespace string, t *hubv1.Team, all []hubv1.Team, platform func(namespace string) bool) bool {
	return slices.ContainsFunc(all, func(o hubv1.Team) bool {
		return (o.Namespace != t.Namespace || o.Name != t.Name) && platform(o.Namespace) &&
			slices.ContainsFunc(o.Spec.Namespaces, func(n hubv1.TeamNamespace) bool { return n.Name == namespace })
	})
}
