// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/chandler-hub/chandler/controllers/metrics"
)

// TestKept: each kind has its entries, and its bytes if they are counted.
func TestKept(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	m, err := metrics.Register(registry)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Keep(map[string]metrics.Kept{
		"programs":   func() (entries, bytes int) { return 3, 4096 },
		"renderings": func() (entries, bytes int) { return 7, -1 },
	}); err != nil {
		t.Fatal(err)
	}
	want := `
# HELP chandler_memory_bytes What the hub keeps in memory to save work: about how many bytes of each kind, where that is counted.
# TYPE chandler_memory_bytes gauge
chandler_memory_bytes{of="programs"} 4096
# HELP chandler_memory_entries What the hub keeps in memory to save work, beside the cache of objects: entries of each kind.
# TYPE chandler_memory_entries gauge
chandler_memory_entries{of="programs"} 3
chandler_memory_entries{of="renderings"} 7
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "chandler_memory_entries", "chandler_memory_bytes"); err != nil {
		t.Error(err)
	}
}
