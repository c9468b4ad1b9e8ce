// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"flag"
	"strings"
	"testing"
	"time"
)

var (
	seeds = flag.Int("seeds", 0, "how many seeds to try; 0 for those of every day")
	from  = flag.Uint64("from", 0, "the first of them")
	steps = flag.Int("steps", 80, "steps of each")
	stop  = flag.Int("stop", 1, "after how many failures to stop")
)

// TestSeeds tries a fixed set of seeds, or those that the flags say.
func TestSeeds(t *testing.T) {
	n := *seeds
	if n == 0 {
		n = 60
		if testing.Short() {
			n = 5
		}
	}
	failures := 0
	for seed := *from; seed < *from+uint64(n); seed++ {
		r, err := Play(Draw(seed, *steps))
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if len(r.Violations) == 0 {
			continue
		}
		v := r.Violations[0]
		if known, ok := Known[v.Invariant]; ok && *seeds == 0 {
			t.Logf("seed %d: known (%s): %s", seed, known, v.Text)
			continue
		}
		t.Errorf("seed %d: %s: %s", seed, v.Invariant, v.Text)
		if failures++; failures >= *stop {
			r = Shrink(r, time.Minute)
			t.Fatalf("the story, shrunk:\n%s\nthe script:\n%s", strings.Join(r.Story, "\n"), strings.Join(r.Script, "\n"))
		}
	}
}

// TestDeterminism: the same script has the same end, write by write.
func TestDeterminism(t *testing.T) {
	for seed := range uint64(3) {
		a, err := Play(Draw(seed, 40))
		if err != nil {
			t.Fatal(err)
		}
		b, _ := Play(Draw(seed, 40))
		if a.Trace != b.Trace || strings.Join(a.Story, "\n") != strings.Join(b.Story, "\n") {
			t.Errorf("seed %d: %d writes and %d, the stories are the same: %t", seed, a.Writes, b.Writes, strings.Join(a.Story, "\n") == strings.Join(b.Story, "\n"))
		}
	}
}

// TestFirst: a fleet comes up and stays quiet.
func TestFirst(t *testing.T) {
	began := time.Now()
	r, err := Play(Draw(0, 0))
	if err != nil || len(r.Violations) > 0 {
		t.Fatalf("%v\n%s", err, strings.Join(r.Story, "\n"))
	}
	t.Logf("%d writes, %d reconciles, %s", r.Writes, r.Reconciles, time.Since(began))
	if testing.Verbose() {
		t.Log(strings.Join(r.Story, "\n"))
	}
}
