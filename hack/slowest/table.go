// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// table prints the tests that took longest, each with the steps in it that did. What its own steps leave is above all the start and the end
// of its fleet.
func table(out io.Writer, took []event, all time.Duration) {
	tests, steps := []event{}, map[string][]event{}
	for _, e := range took {
		if top, _, isPart := strings.Cut(e.Test, "/"); isPart {
			steps[e.Package+" "+top] = append(steps[e.Package+" "+top], e)
		} else {
			tests = append(tests, e)
		}
	}
	if len(tests) == 0 {
		return
	}
	_, _ = fmt.Fprintf(out, "\nthe slowest tests of %s, and the slowest steps of each:\n", all.Round(time.Second))
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	for _, e := range longest(tests, shownTests) {
		_, _ = fmt.Fprintf(w, "%.1f s\t\t  %s %s\n", e.Elapsed, path.Base(e.Package), e.Test)
		for _, s := range longest(leaves(steps[e.Package+" "+e.Test]), shownSteps) {
			_, name, _ := strings.Cut(s.Test, "/")
			_, _ = fmt.Fprintf(w, "\t%.1f s\t    %s\n", s.Elapsed, strings.ReplaceAll(name, "_", " "))
		}
	}
	_ = w.Flush()
}

// longest returns so many of those that took longest.
func longest(events []event, most int) []event {
	slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(b.Elapsed, a.Elapsed) })
	return events[:min(most, len(events))]
}

// leaves returns the steps that have none themselves.
func leaves(steps []event) []event {
	return slices.DeleteFunc(slices.Clone(steps), func(s event) bool {
		return slices.ContainsFunc(steps, func(other event) bool { return strings.HasPrefix(other.Test, s.Test+"/") })
	})
}
