// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/preview"
	"github.com/chandler-hub/chandler/internal/rollout"
	"github.com/chandler-hub/chandler/internal/rolloutview"
)

// Rollout is how the new revision of a set reaches its clusters.
type Rollout struct {
	Set string `json:"set"`
	// AtOnce is true if every cluster gets it at once.
	AtOnce bool   `json:"atOnce"`
	Waves  []Wave `json:"waves,omitempty"`
	// Soak is what the soaks add up to before the last wave begins, in seconds.
	Soak int64 `json:"soakSeconds"`
	// Notes say what else holds it back, or why there is a revision.
	Notes []string `json:"notes,omitempty"`
}

// Wave is one wave of a rollout.
type Wave struct {
	Name string `json:"name"`
	// Clusters are those on which the revision changes something, by namespace/name, in the order in which they start. Same is how many
	// others the wave has.
	Clusters []string `json:"clusters"`
	Same     int      `json:"same,omitempty"`
	AtOnce   int      `json:"atOnce"`
	Soak     int64    `json:"soakSeconds,omitempty"`
	Approval bool     `json:"approval,omitempty"`
}

// rollouts asks the rollout engine about each set that gets a new revision and changes something.
func (c *computing) rollouts(now time.Time) {
	registrations := c.cmp.Registrations()
	for _, pair := range c.cmp.Sets() {
		if pair.New == nil || !pair.Valid || len(c.changed[pair.Name]) == 0 {
			continue
		}
		note, anew := c.revision(&pair)
		if !anew {
			continue
		}
		in := &rolloutview.Input{Set: pair.New, Reach: pair.Reach, Registrations: registrations, Now: now}
		has := func(k types.NamespacedName) bool { return c.had[pair.Name][k] }
		same := func(k types.NamespacedName) bool { return !c.changed[pair.Name][k] }
		plan, err := rolloutview.Waves(in, has, same)
		if err != nil {
			c.problem("New", fmt.Sprintf("AddonSet %s: %s", pair.Name, err))
			continue
		}
		out := Rollout{Set: pair.Name, AtOnce: plan.Strategy.AtOnce()}
		if note != "" {
			out.Notes = append(out.Notes, note)
		}
		if out.waves(plan.Waves); len(out.Waves) == 0 && !out.AtOnce {
			continue // only clusters that come or go are changed
		}
		if p := pair.New.Spec.Pause; p != nil && (p.Until == nil || now.Before(p.Until.Time)) {
			out.Notes = append(out.Notes, "spec.pause holds it back")
		}
		if n, isOpen, _ := plan.Strategy.Windows(now); n > 0 && !out.AtOnce {
			word := map[bool]string{true: "open", false: "closed"}[isOpen]
			out.Notes = append(out.Notes, fmt.Sprintf("clusters start only in its windows, and now they are %s", word))
		}
		c.out.Rollouts = append(c.out.Rollouts, out)
	}
}

// revision returns whether a set gets a new revision, and a note if that is not for what it says itself.
func (c *computing) revision(pair *preview.SetPair) (note string, anew bool) {
	if pair.Old == nil {
		return "it is the set's first revision", true
	}
	_, before, err := compile.Snapshot(&pair.Old.Spec, nil)
	_, after, err2 := compile.Snapshot(&pair.New.Spec, nil)
	if err != nil || err2 != nil || before != after {
		return "", true
	}
	strategy, err := rollout.New(pair.New.Spec.Rollout)
	if name := c.floats[pair.Name]; err == nil && strategy.Pins() && name != "" {
		return fmt.Sprintf("ConfigMap %q makes the revision", name), true
	}
	return "", false
}

func (r *Rollout) waves(views []rollout.WaveView) {
	var soak time.Duration
	for i := range views {
		v := &views[i]
		w := Wave{Name: v.Name, Soak: int64(v.Soak.Seconds()), Approval: v.Manual, Clusters: []string{}}
		for _, m := range v.Clusters {
			if m.State == "Done" {
				w.Same++
				continue
			}
			w.Clusters = append(w.Clusters, m.Key.String())
		}
		if len(w.Clusters) == 0 {
			continue // the rollout does not wait for it
		}
		w.AtOnce = min(v.AtOnce, len(w.Clusters))
		r.Soak = int64(soak.Seconds())
		soak += v.Soak
		r.Waves = append(r.Waves, w)
	}
}

// seconds writes a duration as people do.
func seconds(n int64) string { return excerpt.Duration(time.Duration(n) * time.Second) }
