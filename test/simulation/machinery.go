// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/chandler-hub/chandler/test/simulation/apiserver"
)

// unit is one thing that may happen next: an event arrives in a cache, a controller reconciles, a Flux controller does, the probes go on.
type unit struct {
	what string
	do   func()
}

// units returns all that may happen now.
func (w *World) units() []unit {
	var out []unit
	now := w.clock.Now()
	for _, h := range w.hubs() {
		for _, i := range h.sees() {
			out = append(out, unit{"see " + i.String(), i.Deliver})
		}
		for _, r := range h.loops {
			for _, req := range r.queue.ready(now) {
				out = append(out, unit{r.name + " " + req, func() { w.reconcile(r, req) }})
			}
		}
		if h.leads && !h.again.After(now) {
			out = append(out, unit{"probe", func() { w.stepPool(h) }})
		}
	}
	for _, k := range w.flux.ready(now) {
		out = append(out, unit{"flux " + k.String(), func() { w.flux.work(w, k) }})
	}
	return out
}

// sees are the caches in which an event may arrive. In those of a process that stood still, none does.
func (h *hub) sees() []*apiserver.Informer {
	if !h.leads {
		return nil
	}
	return h.cache.Informers()
}

// first returns the first of units, as long as there is one: to make all of them takes long.
func (w *World) first() (unit, bool) {
	now := w.clock.Now()
	for _, h := range w.hubs() {
		for _, i := range h.sees() {
			return unit{"see " + i.String(), i.Deliver}, true
		}
		for _, r := range h.loops {
			if req, ok := r.queue.first(now); ok {
				return unit{r.name + " " + req, func() { w.reconcile(r, req) }}, true
			}
		}
		if h.leads && !h.again.After(now) {
			// Each cluster is probed at a time of its own, so only the probes of one instant count as one thing.
			return unit{"probe at " + now.Format(time.StampMilli), func() { w.stepPool(h) }}, true
		}
	}
	for _, k := range w.flux.ready(now) {
		return unit{"flux " + k.String(), func() { w.flux.work(w, k) }}, true
	}
	return unit{}, false
}

func (w *World) reconcile(r *loop, req string) {
	w.reconciles++
	w.running, w.at = r.name, r.hub
	w.worksOn, w.request, w.paused = r, req, w.knowsPaused(r.hub, req)
	err := w.caught(r, req)
	w.running, w.at = "", nil
	w.worksOn = nil
	if w.done != nil {
		w.done(r, req, err)
	}
	switch h := r.hub; {
	case h.dead && h != w.hub && h != w.former: // it has ended, and so has what came between
		return
	case h.dead && h.leads:
		if w.stopHub(); !w.away {
			w.startHub()
		}
		return
	case h.dead:
		w.say("  the process that led before ends")
		w.endFormer()
		return
	}
	r.hub.again = w.clock.Now() // it may have put a cluster into the pool
	if err != nil {
		w.say("  %s %s: %v", r.name, req, err) // it is tried again; what never comes right is seen at the end
	}
}

// caught runs a controller, whose panic is a violation.
func (w *World) caught(r *loop, req string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
			w.violated("panic", "%s %s: %v\n%s", r.name, req, p, debug.Stack())
		}
	}()
	return r.run(context.Background(), req)
}

// stepPool has the clusters asked that are due.
func (w *World) stepPool(h *hub) {
	changed, wait, timed := h.pool.Step(context.Background())
	for _, key := range changed {
		parts := strings.SplitN(key, "/", 3)
		h.ring(types.NamespacedName{Namespace: parts[0], Name: parts[1]})
	}
	h.again = w.clock.Now().Add(time.Hour)
	if timed {
		h.again = w.clock.Now().Add(max(wait, 0))
	}
}

// run lets so many things happen, in an order that the seed draws.
func (w *World) run(n int, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 7))
	for range n {
		all := w.units()
		if len(all) == 0 {
			if !w.sleep(time.Minute) {
				return
			}
			continue
		}
		all[r.IntN(len(all))].do()
		if len(w.violations) > 0 {
			return
		}
	}
}

// sleep turns the clock to the next timer, if there is one within a while.
func (w *World) sleep(atMost time.Duration) bool {
	next, ok := w.nextTimer()
	if !ok || next.Sub(w.clock.Now()) > atMost {
		return false
	}
	w.passTo(next)
	return true
}

// passTo lets time pass, in which whoever leads renews his lease.
func (w *World) passTo(at time.Time) {
	now := w.clock.Now()
	for now.Before(at) {
		if now = now.Add(renews); now.After(at) {
			now = at
		}
		for _, h := range w.hubs() {
			if h.leads {
				h.tenure.Renew(now)
			}
		}
	}
	w.clock.SetTime(now)
}

// renews is how often a leader renews its lease, about (controller-runtime's RetryPeriod is 2 seconds).
const renews = 5 * time.Second

func (w *World) nextTimer() (at time.Time, ok bool) {
	note := func(t time.Time, is bool) {
		if is && (!ok || t.Before(at)) {
			at, ok = t, true
		}
	}
	for _, h := range w.hubs() {
		for _, r := range h.loops {
			note(r.queue.next())
		}
		note(h.again, h.leads)
	}
	note(w.flux.next())
	return at, ok
}

// often is how many times one thing may happen within one wait. The longest wait of a script is three hours, in
// which Flux tries one object 360 times, each 30 seconds.
const often = 2000

// wait lets time pass, with all that happens meanwhile, in order. The bound holds for each thing alone, since
// all of them together grow with the fleet.
func (w *World) wait(d time.Duration) {
	end := w.clock.Now().Add(d)
	times := map[string]int{}
	for len(w.violations) == 0 {
		if next, ok := w.first(); ok {
			next.do()
			if times[next.what]++; times[next.what] > often {
				w.violated("quiescence", "%s: this happens more than %d times within %s", next.what, often, d)
				return
			}
			continue
		}
		w.forget()
		next, ok := w.nextTimer()
		if !ok || next.After(end) {
			w.checkKept()
			w.passTo(end)
			return
		}
		w.passTo(next)
	}
}
