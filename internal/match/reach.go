// SPDX-License-Identifier: Apache-2.0

package match

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/fluxspec"
)

// Reach says how far the AddonSets of a namespace reach, whatever their own selectors say.
type Reach struct {
	// Namespace is that of the sets.
	Namespace string
	// Platform is true if it is a platform namespace: its sets reach every cluster.
	Platform bool
	// Team governs the namespace: its sets reach the Team's clusters. If there is none, they reach the clusters that
	// are registered in their own namespace.
	Team *Team
}

// Team is a Team as far as it decides what the sets of its hub namespaces do.
type Team struct {
	// Namespace and Name are those of the Team.
	Namespace, Name string
	// Clusters selects the Team's clusters by the labels of their registrations.
	Clusters labels.Selector
	// Deleted is true if the Team is being deleted. Then its sets reach no cluster any more.
	Deleted bool
	// Broken says why nothing is known of the Team's clusters: it is not valid. Then its sets reach none, and nothing
	// that they have delivered changes.
	Broken string
	// Rules are what the sets may do.
	Rules *fluxspec.TeamRules
}

// To returns whether the sets reach a registration.
func (r Reach) To(reg *hubv1.ClusterRegistration) bool {
	switch {
	case r.Platform:
		return true
	case r.Team != nil:
		return r.Team.Clusters.Matches(labels.Set(reg.Labels))
	}
	return r.Namespace == reg.Namespace
}

// Missing stands for a registration that does not exist. It has no labels.
func Missing(key types.NamespacedName) *hubv1.ClusterRegistration {
	return &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
}

// ByTeam returns whether Flux delivers the sets with a token of a Team, and not with the cluster's own kubeconfig.
func (r Reach) ByTeam() bool { return r.Team != nil }

// Broken says why nothing is known of how far the sets reach; "" if it is known.
func (r Reach) Broken() string {
	if r.Team == nil {
		return ""
	}
	return r.Team.Broken
}

// String differs for Teams that let the sets do different things.
func (r Reach) String() string {
	if r.Team == nil {
		return fmt.Sprintf("%s %t", r.Namespace, r.Platform)
	}
	return fmt.Sprintf("%s %s/%s %s %s", r.Namespace, r.Team.Namespace, r.Team.Name, r.Team.Clusters, r.Team.Rules.Hash())
}

// within says of which clusters the sets can select all.
func (r Reach) within() string {
	switch {
	case r.Platform:
		return ""
	case r.Team != nil:
		return " of its Team"
	}
	return " of its namespace"
}

// Author returns the author of a set of the namespace.
func (r Reach) Author(set string) fluxspec.Author {
	a := fluxspec.Author{Namespace: r.Namespace, Set: set, Platform: r.Platform}
	if r.Team != nil {
		a.Team = r.Team.Rules
	}
	return a
}

// Limit says which clusters the sets reach, after "the set"; "" if they reach all.
func (r Reach) Limit() string {
	switch {
	case r.Platform:
		return ""
	case r.Team != nil:
		return fmt.Sprintf("is governed by Team %s/%s and reaches only its clusters (%s)", r.Team.Namespace, r.Team.Name, r.Team.Clusters)
	}
	return fmt.Sprintf("is not in a platform namespace and reaches only clusters in %q", r.Namespace)
}
