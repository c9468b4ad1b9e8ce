// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/preview"
)

// A setting says how the hub goes about its work, and shows in no Flux object: what happens to add-ons that go, how many removals the
// guard lets through, who gets a new revision when. An edit of one alone changes nothing on any cluster now, and may decide over all of
// them tomorrow. So it counts as a change.

// settingsOfSet are those of an AddonSet.
func settingsOfSet(set *hubv1.AddonSet) map[string]any {
	s := &set.Spec
	return tree(map[string]any{"deletionPolicy": s.DeletionPolicy, "removalGuard": s.RemovalGuard, "rollout": s.Rollout, "pause": s.Pause})
}

// settingsOfCluster are those of a ClusterRegistration.
func settingsOfCluster(reg *hubv1.ClusterRegistration) map[string]any {
	s := &reg.Spec
	return tree(map[string]any{"deletionPolicy": s.DeletionPolicy, "pause": s.Pause, "drainBeforeDeletion": s.DrainBeforeDeletion})
}

// tree returns settings as JSON values, without those that are not set.
func tree(settings map[string]any) map[string]any {
	raw, err := json.Marshal(settings)
	out := map[string]any{}
	if err != nil || json.Unmarshal(raw, &out) != nil {
		return nil // they come from the API, whose types are JSON
	}
	maps.DeleteFunc(out, func(_ string, v any) bool { return v == nil || v == "" })
	return out
}

// settings notes which settings of a set are not as before.
func (c *computing) settings(s *preview.SetPair) {
	if s.Old == nil || s.New == nil {
		return
	}
	for _, line := range edits("", settingsOfSet(s.Old), settingsOfSet(s.New)) {
		c.out.Settings = append(c.out.Settings, fmt.Sprintf("AddonSet %s: %s", s.Name, line))
	}
}

// settingsOf notes which settings of a cluster are not as before.
func (c *computing) settingsOf(p *preview.Pair, name string, labels map[string]string) {
	if p.Before == nil || p.After == nil {
		return
	}
	for _, line := range edits("", settingsOfCluster(p.Before), settingsOfCluster(p.After)) {
		c.set.add("", line, name, labels)
	}
}

// edits returns one line for each value that is not as before: "removalGuard.mode: Enforce → Off".
func edits(path string, old, next map[string]any) (lines []string) {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(old)), maps.Keys(next))
	slices.Sort(keys)
	for _, k := range slices.Compact(keys) {
		was, there := old[k]
		is, here := next[k]
		if reflect.DeepEqual(was, is) && there == here {
			continue
		}
		at := k
		if path != "" {
			at = path + "." + k
		}
		before, a := was.(map[string]any)
		after, b := is.(map[string]any)
		if a && b {
			lines = append(lines, edits(at, before, after)...)
			continue
		}
		f := &Field{Op: "Changed", Old: shown(value{was, there}), New: shown(value{is, here})}
		text, next := f.values(maxValue)
		switch {
		case !there:
			text = next + " (new)"
		case !here:
			text += " (gone)"
		default:
			text += " → " + next
		}
		lines = append(lines, at+": "+text)
	}
	return lines
}
