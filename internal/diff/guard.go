// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"maps"
	"slices"
	"time"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/guard"
	"github.com/chandler-hub/chandler/internal/preview"
)

// Guard is what the removal guard of a set would hold.
type Guard struct {
	Set string `json:"set"`
	// Wanted is how many clusters lose add-ons, or have them reinstalled; Goes, of how many that happens without approval within
	// the window; Held, how many wait for an approval.
	Wanted int `json:"wanted"`
	Goes   int `json:"goes"`
	Held   int `json:"held"`
	// Window is the time in which Goes go.
	Window string `json:"window"`
	// Sample names a few of the held ones, with their add-ons.
	Sample []string `json:"sample"`
	// Approve is the command that approves it, if all of it is intended, when it is held.
	Approve string `json:"approve"`
}

// losses are what the clusters of a set lose.
type losses struct {
	wanted []guard.Removal
	// clusters are those that have something of the set.
	clusters map[string]bool
}

// loses notes what a cluster has, and what it loses, for the removal guards.
func (c *computing) loses(p *preview.Pair, changes []Change) {
	name := p.Name.String()
	for i := range p.Old.Items {
		o := &p.Old.Items[i]
		l := c.guards[o.Set]
		if l == nil {
			l = &losses{clusters: map[string]bool{}}
			c.guards[o.Set] = l
		}
		l.clusters[name] = true
	}
	going := map[string][]string{}
	for i := range changes {
		ch := &changes[i]
		set, addon := ch.Set, ch.Addon
		if ch.FromSet != "" {
			set = ch.FromSet
		}
		if ch.FromAddon != "" {
			addon = ch.FromAddon
		}
		if ch.Kind == Removed || ch.Kind == Reinstalled {
			going[set] = append(going[set], addon)
		}
	}
	for set, addons := range going {
		slices.Sort(addons)
		c.guards[set].wanted = append(c.guards[set].wanted, guard.Removal{Cluster: name, Digest: name, Addons: slices.Compact(addons)})
	}
}

// guard asks the removal guard of each set.
func (c *computing) guard(now time.Time) {
	for _, name := range slices.Sorted(maps.Keys(c.guards)) {
		l, pair := c.guards[name], c.pairs[name]
		if len(l.wanted) == 0 || pair == nil || pair.Old == nil {
			continue
		}
		set := pair.Old
		spec := &set.Spec
		if pair.New != nil {
			spec = &pair.New.Spec
		}
		window := guard.WindowOf(spec, 0)
		v := guard.Decide(guard.Input{Wanted: l.wanted, Clusters: len(l.clusters), Window: window,
			Held: set.Status.HeldRemovals, Removals: set.Status.Removals,
			Off: spec.RemovalGuard != nil && spec.RemovalGuard.Mode == hubv1.RemovalGuardOff, Now: now})
		if v.Held == nil {
			continue
		}
		held := int(v.Held.Count)
		c.out.Guards = append(c.out.Guards, Guard{Set: name, Wanted: len(l.wanted), Goes: len(v.Go), Held: held, Sample: v.Held.Sample,
			Window:  excerpt.Duration(window),
			Approve: guard.Command(set)})
	}
}
