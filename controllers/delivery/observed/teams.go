// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/credential"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/team"
)

// What the sets of a hub namespace of a Team deliver is a scope of its own: its add-ons, releases and dependencies are
// assembled and planned as if nothing else were on the cluster. The team's members can write any Flux object in that
// namespace. In one plan with others, such an object could take an add-on from another team, or keep one of the
// platform's off a cluster that is not theirs. What each may do on the cluster is decided there, by the team's rights.
// All other namespaces are one scope together.

// Scope returns the scope of a namespace: its own name, or "" for the one of all others.
func (c *Cluster) Scope(namespace string) string {
	if c.Reach[namespace].ByTeam() || c.wasTeam[namespace] {
		return namespace
	}
	return ""
}

// Scopes returns all scopes of the cluster. That of the platform comes first.
func (c *Cluster) Scopes() []string {
	found := map[string]bool{"": true}
	for _, d := range c.Deliveries {
		found[c.Scope(d.Namespace)] = true
	}
	for k := range c.Objects {
		found[c.Scope(k.Namespace)] = true
	}
	return slices.Sorted(maps.Keys(found))
}

// Rights returns the delivery that brings the rights with which Flux delivers what is in a namespace that a Team governs;
// nil if there is none.
func (c *Cluster) Rights(namespace string) *Delivery {
	from := c.Reach[namespace]
	if !from.ByTeam() {
		return nil
	}
	rights := team.Rights(from.Team, c.Key)
	return c.delivery(rights.Namespace, rights.Name)
}

// Brings returns whether an object brings the rights with which Flux delivers what is in a namespace.
func (c *Cluster) Brings(o *Object, namespace string) bool {
	from := c.Reach[namespace]
	return from.ByTeam() && from.Team.Namespace == o.Key.Namespace && team.SetName(from.Team.Name) == o.Set
}

// BringsAny returns whether an object brings the rights of a Team.
func (c *Cluster) BringsAny(o *Object) bool {
	for namespace := range c.Reach {
		if c.Brings(o, namespace) {
			return true
		}
	}
	return false
}

// Rightless says that a Team's rights have gone from the cluster, with which Flux would uninstall what is in a namespace, and
// that they do not come again; "" if they do, or the namespace needs none.
func (c *Cluster) Rightless(namespace string) string {
	from := c.Reach[namespace]
	if !from.ByTeam() {
		if !c.wasTeam[namespace] {
			return ""
		}
		return "the rights of the Team that governed the namespace are gone, and Flux cannot uninstall without them"
	}
	if rights := c.Rights(namespace); rights != nil && !rights.Leaving {
		return ""
	}
	for _, o := range c.Objects {
		if c.Brings(o, namespace) {
			return ""
		}
	}
	return fmt.Sprintf("the rights of Team %s/%s are gone from the cluster, and Flux cannot uninstall without them", from.Team.Namespace,
		from.Team.Name)
}

// HasToken returns whether a kubeconfig copy has the token with which Flux delivers a Team's sets to this very cluster now.
func (c *Cluster) HasToken(there *metav1.PartialObjectMetadata, namespace string) bool {
	from, rights := c.Reach[namespace], c.Rights(namespace)
	if there == nil || there.Labels[hubv1.CopyLabel] != identity.TeamCopy || rights == nil || c.Registration == nil ||
		there.Annotations[hubv1.FingerprintAnnotation] != credential.TeamFingerprint(c.Registration, from, rights.AddonDelivery) {
		return false
	}
	for k, o := range c.Objects {
		if k.Namespace == namespace && o.Replaced != "" {
			return false
		}
	}
	return true
}
