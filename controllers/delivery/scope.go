// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/assembly"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/pace"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/team"
	"github.com/chandler-hub/chandler/internal/teardown"
)

// What the sets of a hub namespace of a Team deliver is a scope of its own: its add-ons, releases and dependencies are
// assembled and planned as if nothing else were on the cluster. The team's members can write any Flux object in that
// namespace. In one plan with others, such an object could take an add-on from another team, or keep one of the
// platform's off a cluster that is not theirs. What each may do on the cluster is decided there, by the team's rights.
// All other namespaces are one scope together.

// scope returns the scope of a namespace: its own name, or "" for the one of all others.
func (c *cluster) scope(namespace string) string {
	if c.reach[namespace].ByTeam() || c.wasTeam[namespace] {
		return namespace
	}
	return ""
}

// scopes returns all scopes of the cluster. That of the platform comes first.
func (c *cluster) scopes() []string {
	found := map[string]bool{"": true}
	for _, d := range c.deliveries {
		found[c.scope(d.Namespace)] = true
	}
	for k := range c.objects {
		found[c.scope(k.Namespace)] = true
	}
	return slices.Sorted(maps.Keys(found))
}

// assemble assembles each scope. It returns the portions in the order of the deliveries.
func (c *cluster) assemble(in assembly.Input) []assembly.Portion {
	out := make([]assembly.Portion, len(in.Deliveries))
	for _, scope := range c.scopes() {
		part := assembly.Input{Foreign: in.Foreign, Adopted: in.Adopted}
		var at []int
		for i := range in.Deliveries {
			if c.scope(in.Deliveries[i].Namespace) == scope {
				part.Deliveries, at = append(part.Deliveries, in.Deliveries[i]), append(at, i)
			}
		}
		for _, l := range in.Live {
			if c.scope(l.Key.Namespace) == scope {
				part.Live = append(part.Live, l)
			}
		}
		for i, portion := range assembly.Assemble(part) {
			out[at[i]] = portion
		}
	}
	return out
}

// neededBy names what Flux does on the cluster with the rights that an object brings: it is that of a Team's AddonSet, and
// the Team's sets have objects for the cluster, leaving or not. It returns "" if there is nothing. If they have not gone
// within the grace, the rights go all the same: a team cannot keep them by what its own removal guard holds.
func (c *cluster) neededBy(o *object, config *hubconfig.Config) string {
	if !c.bringsAny(o) {
		return ""
	}
	byName := func(a, b plan.Key) int { return cmp.Compare(a.String(), b.String()) } // the same one each time
	for _, k := range slices.SortedFunc(maps.Keys(c.objects), byName) {
		other := c.objects[k]
		if !other.Foreign && c.brings(o, k.Namespace) && c.rightsWait(o, other, config) > 0 {
			return fmt.Sprintf("add-on %s (%s)", other.Addon, k)
		}
	}
	return ""
}

// rights returns the delivery that brings the rights with which Flux delivers what is in a namespace that a Team governs;
// nil if there is none.
func (c *cluster) rights(namespace string) *delivery {
	from := c.reach[namespace]
	if !from.ByTeam() {
		return nil
	}
	rights := team.Rights(from.Team, c.key)
	return c.delivery(rights.Namespace, rights.Name)
}

// brings returns whether an object brings the rights with which Flux delivers what is in a namespace.
func (c *cluster) brings(o *object, namespace string) bool {
	from := c.reach[namespace]
	return from.ByTeam() && from.Team.Namespace == o.Key.Namespace && team.SetName(from.Team.Name) == o.Set
}

// bringsAny returns whether an object brings the rights of a Team.
func (c *cluster) bringsAny(o *object) bool {
	for namespace := range c.reach {
		if c.brings(o, namespace) {
			return true
		}
	}
	return false
}

// rightsWait returns how long the rights that an object brings wait for another one at the most; 0 if the time is over. What
// Flux uninstalls has the whole grace from when the hub has said so: until then the cluster may have been paused. It has it again from a
// hub that starts: while none was at work, what waits for its dependants was not even begun with.
func (c *cluster) rightsWait(o, other *object, config *hubconfig.Config) time.Duration {
	since, facts := c.removal(o.Observed, config).Since, c.removal(other.Observed, config)
	if d := c.delivery(other.Key.Namespace, other.delivery); d != nil && teardown.Addon(facts).Mode == teardown.Uninstall {
		begun := c.now // in this very pass
		if s := d.addon(other.Addon); s != nil && s.State == hubv1.AddonRemoving && s.Since != nil {
			begun = s.Since.Time
		}
		if begun.After(since) {
			since = begun
		}
	}
	if c.began.After(since) {
		since = c.began
	}
	return max(config.TeardownGrace-c.now.Sub(since), 0)
}

// rightsLeft returns after how long the rights that an object brings may wait for one object less.
func (c *cluster) rightsLeft(o *object, config *hubconfig.Config) time.Duration {
	var left time.Duration
	for k, other := range c.objects {
		if c.brings(o, k.Namespace) {
			if wait := c.rightsWait(o, other, config); wait > 0 {
				left = pace.Sooner(left, wait)
			}
		}
	}
	return left
}

// rightless says that a Team's rights have gone from the cluster, with which Flux would uninstall what is in a namespace, and
// that they do not come again; "" if they do, or the namespace needs none.
func (c *cluster) rightless(namespace string) string {
	from := c.reach[namespace]
	if !from.ByTeam() {
		if !c.wasTeam[namespace] {
			return ""
		}
		return "the rights of the Team that governed the namespace are gone, and Flux cannot uninstall without them"
	}
	if rights := c.rights(namespace); rights != nil && !rights.leaving {
		return ""
	}
	for _, o := range c.objects {
		if c.brings(o, namespace) {
			return ""
		}
	}
	return fmt.Sprintf("the rights of Team %s/%s are gone from the cluster, and Flux cannot uninstall without them", from.Team.Namespace,
		from.Team.Name)
}
