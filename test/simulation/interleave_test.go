// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"strings"
	"testing"
)

// TestInterleave: something comes between the requests of one reconcile, and the same each time.
func TestInterleave(t *testing.T) {
	fleet := []string{"cluster w1 Secret tier=prod", "cluster w2 Kamaji tier=prod", "set flux-system base tier=prod hello:helm web:kustomization:hello", "run 60 1", "wait 5m"}
	play := func(first string) Result {
		r, err := Play(append([]string{first}, fleet...))
		if err != nil || len(r.Violations) > 0 {
			t.Fatal(err, strings.Join(r.Story, "\n"))
		}
		return r
	}
	one, again, without := play("interleave 1 3"), play("interleave 1 3"), play("wait 1s")
	if one.Trace != again.Trace {
		t.Error("the same script has two ends")
	}
	if one.Trace == without.Trace {
		t.Error("nothing has come between two requests")
	}
}

// TestKnobs: half of the seeds interleave, some have more clusters, and what is drawn is a step.
func TestKnobs(t *testing.T) {
	const n = 200
	interleaved, many, tuned := 0, 0, 0
	for seed := range uint64(n) {
		script := Draw(seed, 0)
		has := func(prefix string) bool {
			return slices.ContainsFunc(script, func(line string) bool { return strings.HasPrefix(line, prefix) })
		}
		for of, count := range map[string]*int{"interleave ": &interleaved, "cluster w10 ": &many, "knob ": &tuned} {
			if has(of) {
				*count++
			}
		}
	}
	if interleaved < n/3 || interleaved > 2*n/3 || many < n/10 || many > n/2 || tuned < n/2 {
		t.Errorf("of %d seeds %d interleave, %d have more clusters, %d turn a knob", n, interleaved, many, tuned)
	}
}
