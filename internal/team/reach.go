// SPDX-License-Identifier: Apache-2.0

package team

import (
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/match"
)

// Rights names the delivery that brings a Team's rights to a cluster. It is in the Team's own namespace, which is the
// platform's, so no member of the team can forge it.
func Rights(t *match.Team, reg types.NamespacedName) types.NamespacedName {
	return types.NamespacedName{Namespace: t.Namespace, Name: identity.Delivery(SetName(t.Name), reg)}
}

// Reach returns how far the AddonSets of a namespace reach. platform says which namespaces are the platform's; for these, all is not looked
// at. Otherwise it may hold any Teams. A Team that is being deleted governs its namespaces until it is gone, and has no clusters any more.
func Reach(namespace string, all []hubv1.Team, platform func(namespace string) bool) match.Reach {
	reach := match.Reach{Namespace: namespace, Platform: platform(namespace)}
	if reach.Platform {
		return reach
	}
	t := Of(namespace, all, platform)
	if t == nil {
		return reach
	}
	reach.Team = &match.Team{Namespace: t.Namespace, Name: t.Name, Clusters: labels.Nothing(), Rules: Rules(t)}
	if reach.Team.Deleted = t.DeletionTimestamp != nil; reach.Team.Deleted {
		return reach
	}
	err := Check(t)
	if err == nil {
		reach.Team.Clusters, err = Selector(t)
	}
	if err != nil {
		reach.Team.Broken = fmt.Sprintf("Team %s/%s, which governs namespace %q, is not valid: %s", t.Namespace, t.Name, namespace, err)
		reach.Team.Clusters = labels.Nothing()
	}
	return reach
}
