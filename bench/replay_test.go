// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"testing"
)

// What the hub asked for is what came meanwhile; an API server's own requests are few, and those that stay open do not count.
func TestSince(t *testing.T) {
	apply := request{"helm.toolkit.fluxcd.io", "helmreleases", "", "APPLY"}
	status := request{"chandler.dev", "addondeliveries", "status", "PATCH"}
	lease := request{"coordination.k8s.io", "leases", "", "PUT"}
	watch := request{"", "secrets", "", "WATCH"}
	got := since(map[request]float64{apply: 10, lease: 100}, map[request]float64{apply: 310, status: 40, lease: 109, watch: 500}, 100)
	if want := map[request]float64{apply: 300, status: 40}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	const text = "3.4 requests for each cluster: apply helmreleases 3.00, patch addondeliveries/status 0.40"
	if said := describe(got, 100); said != text {
		t.Errorf("%q, want %q", said, text)
	}
}

// Requests are spread over clusters evenly, and none is lost.
func TestShare(t *testing.T) {
	for _, count := range []float64{0, 3, 10, 17} {
		total := 0
		for i := range 10 {
			n := share(count, i, 10)
			if total += n; n < int(count/10) || n > int(count/10)+1 {
				t.Errorf("%g requests for ten clusters: %d for the one with index %d", count, n, i)
			}
		}
		if total != int(count) {
			t.Errorf("%d of %g requests", total, count)
		}
	}
}
