// SPDX-License-Identifier: Apache-2.0

package planned

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/delivery/observed"
	"github.com/chandler-hub/chandler/internal/assembly"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/pace"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/teardown"
)

// assemble assembles each scope. It returns the portions in the order of the deliveries.
func (c *Cluster) assemble(in assembly.Input) []assembly.Portion {
	out := make([]assembly.Portion, len(in.Deliveries))
	for _, scope := range c.Scopes() {
		part := assembly.Input{Foreign: in.Foreign, Adopted: in.Adopted}
		var at []int
		for i := range in.Deliveries {
			if c.Scope(in.Deliveries[i].Namespace) == scope {
				part.Deliveries, at = append(part.Deliveries, in.Deliveries[i]), append(at, i)
			}
		}
		for _, l := range in.Live {
			if c.Scope(l.Key.Namespace) == scope {
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
func (c *Cluster) neededBy(o *observed.Object, config *hubconfig.Config) string {
	if !c.BringsAny(o) {
		return ""
	}
	byName := func(a, b plan.Key) int { return cmp.Compare(a.String(), b.String()) } // the same one each time
	for _, k := range slices.SortedFunc(maps.Keys(c.Objects), byName) {
		other := c.Objects[k]
		if !other.Foreign && c.Brings(o, k.Namespace) && c.rightsWait(o, other, config) > 0 {
			return fmt.Sprintf("add-on %s (%s)", other.Addon, k)
		}
	}
	return ""
}

// rightsWait returns how long the rights that an object brings wait for another one at the most; 0 if the time is over. What
// Flux uninstalls has the whole grace from when the hub has said so: until then the cluster may have been paused. It has it again from a
// hub that starts: while none was at work, what waits for its dependants was not even begun with.
func (c *Cluster) rightsWait(o, other *observed.Object, config *hubconfig.Config) time.Duration {
	since, facts := c.Removal(o.Observed, config).Since, c.Removal(other.Observed, config)
	if d := c.Delivery(other.Key.Namespace, other.Delivery); d != nil && teardown.Addon(facts).Mode == teardown.Uninstall {
		begun := c.Now // in this very pass
		if s := d.Addon(other.Addon); s != nil && s.State == hubv1.AddonRemoving && s.Since != nil {
			begun = s.Since.Time
		}
		if begun.After(since) {
			since = begun
		}
	}
	if c.Began.After(since) {
		since = c.Began
	}
	return max(config.TeardownGrace-c.Now.Sub(since), 0)
}

// RightsLeft returns after how long the rights that an object brings may wait for one object less.
func (c *Cluster) RightsLeft(o *observed.Object, config *hubconfig.Config) time.Duration {
	var left time.Duration
	for k, other := range c.Objects {
		if c.Brings(o, k.Namespace) {
			if wait := c.rightsWait(o, other, config); wait > 0 {
				left = pace.Sooner(left, wait)
			}
		}
	}
	return left
}
