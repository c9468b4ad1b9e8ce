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
	for i := range 450 {
		name := fmt.Sprintf("c%03d", i)
		l.add("fleet/"+name, ", AddonSet flux-system/base: is \""+name+"_X\"") // the mistake is the same, and shows the name
	}
	l.add("fleet/c007", ", AddonSet flux-system/base: is \"c0071_X\"") // no name of it
	want := []string{"AddonSet flux-system/base: is wrong",
		"450 ClusterRegistrations (fleet/c000, fleet/c001, fleet/c002 and 447 more), AddonSet flux-system/base: no label",
		"ClusterRegistration fleet/c007: its own mistake",
		"450 ClusterRegistrations (fleet/c000, fleet/c001, fleet/c002 and 447 more), AddonSet flux-system/base: is \"c000_X\" " +
			"(so on fleet/c000, and likewise on the others)",
		"ClusterRegistration fleet/c007, AddonSet flux-system/base: is \"c0071_X\""}
	if got := l.lines(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// What differs by the value of a label alone is one mistake, also where several clusters have the same value; a value that is also a word of
// the place, such as the name of an add-on, is no value there.
func TestLedgerOfValues(t *testing.T) {
	zones := map[string][]string{}
	l := ledger{values: func(cluster string) []string { return zones[cluster] }}
	for i := range 90 {
		name, zone := fmt.Sprintf("fleet/c%02d", i), fmt.Sprintf("zone%d", i%45)
		zones[name] = []string{zone, "web", "shop"}
		l.add(name, ", AddonSet flux-system/base: add-on \"web\": targetNamespace: is \""+zone+"_X\"")
		l.add(name, ", AddonSet flux-system/base: add-on \"shop\": targetNamespace: is \""+zone+"_X\"")
	}
	l.add("fleet/c01", ", AddonSet flux-system/base: add-on \"web\": targetNamespace: is \"zone1_X\" or so") // another mistake
	want := []string{
		"90 ClusterRegistrations (fleet/c00, fleet/c01, fleet/c02 and 87 more), AddonSet flux-system/base: add-on \"web\": " +
			"targetNamespace: is \"zone0_X\" (so on fleet/c00, and likewise on the others)",
		"90 ClusterRegistrations (fleet/c00, fleet/c01, fleet/c02 and 87 more), AddonSet flux-system/base: add-on \"shop\": " +
			"targetNamespace: is \"zone0_X\" (so on fleet/c00, and likewise on the others)",
		"ClusterRegistration fleet/c01, AddonSet flux-system/base: add-on \"web\": targetNamespace: is \"zone1_X\" or so",
	}
	if got := l.lines(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
