// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"fmt"
	"testing"
)

// TestLedgerOfCommonWords: a label that is no part of the mistake, and whose value is a word of the sentence, does not keep it apart: half
// of the clusters have a label that says true. Neither does a value that the sentence shows in quotes as it is written in Go.
func TestLedgerOfCommonWords(t *testing.T) {
	for name, tc := range map[string]struct{ value, also string }{
		"Word":  {"zone%d", "true"},
		"Quote": {`{"zone": %d}`, "x"},
	} {
		values := map[string][]string{}
		l := ledger{values: func(cluster string) []string { return values[cluster] }}
		for i := range 10 {
			cluster, value := fmt.Sprintf("fleet/c%d", i), fmt.Sprintf(tc.value, i)
			values[cluster] = []string{value}
			if i%2 == 0 {
				values[cluster] = append(values[cluster], tc.also)
			}
			l.add(cluster, fmt.Sprintf(`, AddonSet flux-system/base: add-on "web": when: << vars.z >> gives the text %q, and must give true or false`,
				value))
		}
		if got := l.lines(); len(got) != 1 {
			t.Errorf("%s: it is %d lines, want one:\n%q", name, len(got), got)
		}
	}
}
