// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"fmt"
	"slices"
	"testing"
)

// One mistake in a set fails on 450 clusters in the same way: that is one line.
func TestLedger(t *testing.T) {
	l := ledger{}
	l.add("", "AddonSet flux-system/base: is wrong")
	for i := range 450 {
		l.add(fmt.Sprintf("fleet/c%03d", i), ", AddonSet flux-system/base: no label")
	}
	l.add("fleet/c007", ": its own mistake")
	want := []string{"AddonSet flux-system/base: is wrong",
		"450 ClusterRegistrations (fleet/c000, fleet/c001, fleet/c002 and 447 more), AddonSet flux-system/base: no label",
		"ClusterRegistration fleet/c007: its own mistake"}
	if got := l.lines(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
