// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/status"
)

// What docs/scale.md computes with.
const (
	// holds is for how long a reconcile holds a worker.
	holds = 5 * time.Second
	// busy is how busy workers may be.
	busy = 0.7
	// workersByDefault is Flux's --concurrent.
	workersByDefault = 4
)

func capacitySummary(f *Facts) string {
	var out []string
	for _, k := range f.Flux.Kinds {
		text := status.Count(k.Count, k.Kind)
		if k.Count > 0 {
			text += " every " + excerpt.Duration(k.Interval)
		}
		out = append(out, text)
	}
	if len(out) == 0 {
		return "workers of Flux against the size of the fleet"
	}
	return strings.Join(out, ", ")
}

// workers finds a Flux that does not get round within the interval.
func workers(f *Facts) []Finding {
	var out []Finding
	for _, k := range f.Flux.Kinds {
		have := 0
		for _, w := range f.Flux.of(k.Component) {
			n := workersByDefault
			if v, ok := flag(w.Args, "concurrent"); ok {
				if given, err := strconv.Atoi(v); err == nil {
					n = given
				}
			}
			if w.Replicas > 0 && slices.ContainsFunc(serves(w), f.given) {
				have += n
			}
		}
		if have == 0 || k.Count == 0 || k.Interval <= 0 {
			continue
		}
		need := int(math.Ceil(float64(k.Count) * holds.Seconds() / (busy * k.Interval.Seconds())))
		if need <= have {
			continue
		}
		round := time.Duration(float64(k.Count) * float64(holds) / float64(have)).Truncate(time.Minute)
		out = append(out, Finding{Severity: Warning, Code: "FluxTooFewWorkers",
			What: fmt.Sprintf("%s has %s for %s every %s, and needs %d if a reconcile takes 5s: a round takes %s, and a change may wait as long",
				k.Component, status.Count(have, "worker"), status.Count(k.Count, k.Kind), excerpt.Duration(k.Interval), need, excerpt.Duration(round)),
			Remedy: "write a longer interval in the add-ons (1h), start " + k.Component + " with a higher --concurrent, or add shards: " +
				"docs/scale.md#workers-of-flux"})
	}
	return out
}

// given returns whether the hub gives clusters to a shard.
func (f *Facts) given(shard string) bool {
	return shard == "*" || len(f.Shards) == 0 && shard == "" || slices.Contains(f.Shards, strings.TrimSpace(shard))
}
