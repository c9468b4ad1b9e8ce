// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// Kept says how many entries something holds that is kept in memory to save work, and how many bytes they take, about; bytes are
// negative if they are not counted.
type Kept func() (entries, bytes int)

var (
	keptEntries = prometheus.NewDesc("chandler_memory_entries",
		"What the hub keeps in memory to save work, beside the cache of objects: entries of each kind.", []string{"of"}, nil)
	keptBytes = prometheus.NewDesc("chandler_memory_bytes",
		"What the hub keeps in memory to save work: about how many bytes of each kind, where that is counted.", []string{"of"}, nil)
)

// keptCollector reports what is kept, by its kind.
type keptCollector map[string]Kept

// Describe says which metrics there are.
func (k keptCollector) Describe(out chan<- *prometheus.Desc) {
	out <- keptEntries
	out <- keptBytes
}

// Collect asks for each kind.
func (k keptCollector) Collect(out chan<- prometheus.Metric) {
	for _, name := range slices.Sorted(maps.Keys(k)) {
		entries, bytes := k[name]()
		gauge(out, keptEntries, float64(entries), name)
		if bytes >= 0 {
			gauge(out, keptBytes, float64(bytes), name)
		}
	}
}

// Keep registers what is kept, by its kind.
func (m *Metrics) Keep(kept map[string]Kept) error { return m.registry.Register(keptCollector(kept)) }
