// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"strings"
	"testing"
	"time"
)

func TestChosen(t *testing.T) {
	names := func(all []step) string {
		var out []string
		for _, s := range all {
			out = append(out, s.name)
		}
		return strings.Join(out, " ")
	}
	for name, tc := range map[string]struct{ only, skip, want, err string }{
		"All":     {"", "", "race seeds defects fuzz bench test matrix node", ""},
		"Skipped": {"", "node,race", "seeds defects fuzz bench test matrix", ""},
		"Only":    {"fuzz,seeds", "node", "seeds fuzz", ""},
		"Unknown": {"fuzzy", "", "", `there is no step "fuzzy"`},
	} {
		got, err := chosen(steps(time.Unix(0, 0), 1), tc.only, tc.skip)
		if tc.err != "" {
			if err == nil || err.Error() != tc.err {
				t.Errorf("%s: %v", name, err)
			}
		} else if err != nil || names(got) != tc.want {
			t.Errorf("%s: %s, %v", name, names(got), err)
		}
	}
}

// TestPage: a step that fails is on the page with what it printed last, and how to repeat it. What another piece of the night has left
// there stays.
func TestPage(t *testing.T) {
	day := time.Date(2026, 11, 28, 23, 0, 0, 0, time.UTC)
	out := []done{
		run(t.Context(), step{"fuzz", "what works", "echo fine"}, io.Discard),
		run(t.Context(), step{"race", "what does not", "yes early | head -3000; echo the last words; exit 3"}, io.Discard),
	}
	page := text(day, "abc", out, text(day.Add(-24*time.Hour), "old", []done{
		run(t.Context(), step{"race", "what did", "true"}, io.Discard), run(t.Context(), step{"bench", "what is not run now", "true"}, io.Discard),
	}, ""))
	for _, want := range []string{"| fuzz | what works | passed | 0 | 2026-11-28 at abc | `echo fine` |\n", "| race | what does not | **failed** |",
		"| bench | what is not run now | passed | 0 | 2026-11-27 at old | `true` |\n", "## race failed\n\nIt ended with exit status 3. It printed last:", "the last words\n```"} {
		if !strings.Contains(page, want) {
			t.Errorf("it does not say %q:\n%s", want, page)
		}
	}
	if strings.Contains(page, "what did") {
		t.Errorf("it has what is over:\n%s", page)
	}
	if len(page) > 2*kept {
		t.Errorf("the page has %d bytes", len(page))
	}
}

// TestSeedsOfADay: two runs of a day play the same, and the next day plays others.
func TestSeedsOfADay(t *testing.T) {
	day := time.Date(2026, 11, 28, 1, 0, 0, 0, time.UTC)
	seeds := func(at time.Time) string { return steps(at, 20_000)[1].command }
	if seeds(day) != seeds(day.Add(20*time.Hour)) || seeds(day) == seeds(day.Add(24*time.Hour)) {
		t.Errorf("%s, %s, %s", seeds(day), seeds(day.Add(20*time.Hour)), seeds(day.Add(24*time.Hour)))
	}
}
