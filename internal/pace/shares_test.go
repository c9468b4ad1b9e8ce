// SPDX-License-Identifier: Apache-2.0

package pace

import (
	"fmt"
	"testing"
	"time"
)

// TestMay: what a namespace may take of five turns in a second.
func TestMay(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	had := func(n int, by string, ago time.Duration) []taken {
		out := make([]taken, n)
		for i := range out {
			out[i] = taken{by, now.Add(-ago)}
		}
		return out
	}
	for name, tc := range map[string]struct {
		taken  []taken
		others int
		want   bool
	}{
		"alone":                            {had(100, "a", 0), 0, true},
		"half of two":                      {had(4, "a", time.Second), 1, true},
		"more than half of two":            {had(5, "a", time.Second), 1, false},
		"more than half, a while ago":      {had(5, "a", window), 1, true},
		"what others have had":             {had(100, "b", 0), 1, true},
		"a tenth":                          {nil, 9, true},
		"more than a tenth":                {had(1, "a", time.Second), 9, false},
		"more namespaces than turns":       {had(1, "a", 9*time.Second), 49, false},
		"more namespaces than turns, once": {had(1, "a", 10*time.Second), 49, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := may(tc.taken, "a", tc.others, 5, now); got != tc.want {
				t.Errorf("it may: %t", got)
			}
		})
	}
}

// TestShares: one who takes all turns that he gets holds up nobody, and somebody alone gets all of them. A namespace that has stopped asking
// takes nothing from the others, and what is remembered goes.
func TestShares(t *testing.T) {
	const perSecond = 5
	for name, others := range map[string]int{"Alone": 0, "One": 1, "Many": 12} {
		t.Run(name, func(t *testing.T) {
			var s Shares
			now, got := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), map[string]int{}
			for range 60 * perSecond { // one turn each time; who is greedy always asks first
				now = now.Add(time.Second / perSecond)
				left := 1
				for i := -1; i < others; i++ {
					who := "greedy"
					if i >= 0 {
						who = fmt.Sprint("other", i)
					}
					if left == 0 || !s.May(who, perSecond, now) {
						s.Wait(who, now)
						continue
					}
					left = 0
					s.Take(who, now)
					got[who]++
				}
			}
			fair := 60 * perSecond / (others + 1)
			for who, n := range got {
				if n < fair*7/10 || n > fair*13/10+1 {
					t.Errorf("%s has had %d turns of %d, fair are %d", who, n, 60*perSecond, fair)
				}
			}
			if len(got) != others+1 {
				t.Errorf("some have had none: %v", got)
			}
			if later := now.Add(counts); !s.May("greedy", perSecond, later) {
				t.Error("those who have stopped asking count")
			}
			s.Take("x", now.Add(counts))
			if len(s.taken) != 1 || len(s.waiting) != 0 {
				t.Errorf("%d turns and %d namespaces are remembered", len(s.taken), len(s.waiting))
			}
		})
	}
}
