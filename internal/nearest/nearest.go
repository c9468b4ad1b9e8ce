// SPDX-License-Identifier: Apache-2.0

// Package nearest finds what a user meant who misspelt a name.
package nearest

import "strings"

// To returns the name that differs least from what is written; "" if none is near. Of two that differ as much it
// returns the first. To one or two letters nothing is near.
func To(written string, names []string) string {
	if len(written) < 3 {
		return ""
	}
	best, least := "", 1+max(1, len(written)/3)
	for _, name := range names {
		d := distance(strings.ToLower(written), strings.ToLower(name))
		if d < least {
			best, least = name, d
		}
	}
	return best
}

// Meant returns a question to add to a message, such as "; did you mean web?"; "" if none is near.
func Meant(written string, names []string) string {
	if like := To(written, names); like != "" {
		return "; did you mean " + like + "?"
	}
	return ""
}

// distance counts the letters to add, remove, change, or swap with their neighbour, to make one text of another.
func distance(a, b string) int {
	var before, row []int
	last := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row = make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
