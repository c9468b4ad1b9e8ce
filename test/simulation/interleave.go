// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"math/rand/v2"
	"slices"
	"strconv"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/test/simulation/apiserver"
)

// locked are the kinds of shared objects: the hub writes them under a lock of the object (sharedobjects.Keeper).
var locked = append(slices.Clone(fluxspec.SourceKinds), sourcev1.HelmChartKind, index.ServiceAccount)

// interleaving is what comes between two requests of one reconcile: others do not wait until it has ended.
type interleaving struct {
	*rand.Rand
	// every says that something comes before one in so many requests.
	every int
	// under is true while something has come between.
	under bool
}

// interleave has something come before a live request of a process: an event arrives in its cache, another controller of it reconciles, or
// Flux works. Before a request for a shared object no controller reconciles: the process holds that object's lock, and the one
// goroutine that plays everything would wait for itself. Nor does that of the sets while the matcher writes a delivery: a set that is
// deleted waits for that (registry.settle).
func (w *World) interleave(h *hub, k apiserver.Key) {
	r := w.worksOn
	if w.between == nil || w.between.under || r == nil || r.hub != h || w.between.IntN(w.between.every) > 0 {
		return
	}
	var all []unit
	now := w.clock.Now()
	for _, i := range h.sees() {
		all = append(all, unit{"see " + i.String(), i.Deliver})
	}
	controllers := h.loops
	if slices.Contains(locked, k.Kind) {
		controllers = nil
	}
	for _, other := range controllers {
		if other == r && w.config.Concurrency == 1 {
			continue // it has one worker
		}
		if r.name == "matcher" && other.name == "addonset" && k.Kind == "AddonDelivery" {
			continue
		}
		for _, req := range other.queue.ready(now) {
			if other != r || req != w.request {
				all = append(all, unit{other.name + " " + req, func() { w.reconcile(other, req) }})
			}
		}
	}
	for _, k := range w.flux.ready(now) {
		all = append(all, unit{"flux " + k.String(), func() { w.flux.work(w, k) }})
	}
	if len(all) == 0 {
		return
	}
	running, at, request, paused := w.running, w.at, w.request, w.paused
	w.between.under, w.running, w.at, w.worksOn = true, "", nil, nil
	all[w.between.IntN(len(all))].do()
	w.between.under, w.running, w.at, w.worksOn, w.request, w.paused = false, running, at, r, request, paused
}

// interleaves is the step that begins it.
func (w *World) interleaves(every, seed string) string {
	n, err := strconv.Atoi(every)
	s, bad := strconv.ParseUint(seed, 10, 64)
	if err != nil || bad != nil || n < 1 {
		return "write a number from 1 on, and a seed"
	}
	w.between = &interleaving{Rand: rand.New(rand.NewPCG(s, 11)), every: n}
	return ""
}
