// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"k8s.io/apimachinery/pkg/api/equality"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/preview"
)

// What is said of a registration that may lead to another cluster.
const (
	otherKubeConfig = "spec.kubeConfig is not as before. If it leads to another cluster, all add-ons come to that one, and those on " +
		"the cluster from before are orphaned: files do not say which cluster it is"
	otherOrigin = "spec.originRef is not as before: the API server refuses that. Delete the registration, which takes its add-ons away, and " +
		"make a new one"
)

// elsewhere notes that a registration may lead to another cluster from now on.
func (c *computing) elsewhere(p *preview.Pair, name string, labels map[string]string) {
	if p.Before == nil || p.After == nil {
		return
	}
	was, is := &p.Before.Spec, &p.After.Spec
	if was.OriginRef != nil && is.OriginRef != nil && *was.OriginRef != *is.OriginRef {
		c.problems.add("New", otherOrigin, name, labels)
	}
	if equality.Semantic.DeepEqual(was.KubeConfig, is.KubeConfig) || c.silent(was) || was.KubeConfig != nil && c.silent(is) && c.exported {
		return
	}
	c.problems.add("New", otherKubeConfig, name, labels)
}

// silent returns whether a registration does not say how the hub logs in: no cluster is known of it.
func (c *computing) silent(s *hubv1.ClusterRegistrationSpec) bool {
	return s.KubeConfig == nil && (c.exported || s.OriginRef == nil)
}

// standing says that a cluster is paused, or is not any more; "" if that changes nothing of what happens.
func standing(p *preview.Pair, changes bool) string {
	switch {
	case p.Paused != "" && changes:
		return p.Paused + ": nothing of what changes here happens until it is over (" + p.Ends + ")"
	case p.Paused != "" && p.WasPaused == "":
		return p.Paused + ": from now on nothing changes there (" + p.Ends + " it goes on)"
	case p.Paused == "" && p.WasPaused != "":
		return "not paused any more, so what was held back there happens too"
	}
	return ""
}
