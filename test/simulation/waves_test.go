// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"strings"
	"testing"
	"time"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/test/simulation/apiserver"
)

// TestRolloutInvariantFails: each part of the invariant sees what it is for, as a hub would do it that knows no waves.
func TestRolloutInvariantFails(t *testing.T) {
	for _, tc := range []struct {
		script string
		// gives is the revision that all clusters get; "" for the newest, "again" for the one that they have, and "-" for none.
		gives, want string
	}{
		{"version staged core 1.1.0;wait 1m", "staged-0123456789-e3", "before the status of staged says"},
		{"slow core 1.1.0 15m;rollout staged single;wait 5m;version staged core 1.1.0;wait 1m", "", "work on staged-"},
		{"slow core 1.1.0 15m;version staged core 1.1.0;wait 1m", "", "of wave canary works on it"},
		{"version staged core 1.1.0;wait 1m", "", "s of 30m0s"},
		{"rollout staged approved;wait 5m;version staged core 1.1.0;wait 15m", "", "nobody has approved wave canary"},
		{"version staged core 1.1.0;wait 1m", "", "of wave half has not got it"},
		{"hold staged -;version staged core 1.1.0;wait 5m", "", "and spec.pause of staged holds it"},
		{"spoil core 1.1.0 all;version staged core 1.1.0;wait 5m", "", "which has failed, and nobody wants it tried again"},
		{"rollout staged approved;wait 5m;version staged core 1.1.0;wait 5m", "-", "w2 has staged-"},
		{"rollout staged evenhours;wait 45m;version staged core 1.1.0;wait 1m", "", "and no window of staged is open"},
		{"version staged core 1.1.0;wait 5m", "again", "begins anew with staged-"},
	} {
		t.Run(tc.want, func(t *testing.T) {
			w := newWorld()
			w.startHub()
			defer w.stopHub()
			for _, line := range append(strings.Split("cluster w1 Secret tier=prod\ncluster w2 Kamaji tier=prod\ncluster w3 Secret tier=prod\n"+
				"label w1 ring canary\nset flux-system staged tier=prod core:helm\nrollout staged canary\nwait 1h", "\n"), strings.Split(tc.script, ";")...) {
				if err := w.do(line); err != nil {
					t.Fatal(err)
				}
			}
			if len(w.violations) > 0 {
				t.Fatalf("before anything happened: %v", w.violations)
			}
			if w.giveAll(tc.gives); tc.gives == "-" {
				w.checkRolledOut(true)
			}
			if !slices.ContainsFunc(w.violations, func(v Violation) bool { return v.Invariant == "rollout" && strings.Contains(v.Text, tc.want) }) {
				t.Errorf("it is not seen; seen is %v\n%s", w.violations, strings.Join(w.story, "\n"))
			}
		})
	}
}

// giveAll gives every cluster a revision of the set "staged".
func (w *World) giveAll(revision string) {
	s := w.sets["staged"]
	if revision == "" {
		revision = typed(w, w.server.Get(s.key()), &hubv1.AddonSet{}).Status.Revision
	}
	for _, c := range slices.Backward(w.clusters) {
		d := w.deliveryOf(s, c.registration())
		if revision == "-" || revision == "again" && d.Spec.Start == nil || d.Spec.RevisionName == revision {
			continue
		}
		next := apiserver.Clone(w.server.Get(keyOf("AddonDelivery", d.Namespace, d.Name)))
		spec := next["spec"].(map[string]any)
		if revision != "again" {
			spec["revisionName"] = revision
		}
		spec["start"] = apiserver.Object{"time": w.clock.Now().UTC().Format(time.RFC3339), "healthy": true}
		w.at = w.hub
		_, err := w.server.Update("chandler", "older", keyOf("AddonDelivery", d.Namespace, d.Name), next, false)
		w.at = nil
		must(err)
	}
}
