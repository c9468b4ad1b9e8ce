// SPDX-License-Identifier: Apache-2.0

package faultyapi

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

const (
	// shortestWatch and longestWatch bound the life of a watch.
	shortestWatch, longestWatch = time.Second, 15 * time.Second
	// shortestDelay and longestDelay bound how long a request may wait.
	shortestDelay, longestDelay = 100 * time.Millisecond, 1500 * time.Millisecond
)

// Mischief returns a plan by which one request in so many is refused, delayed, or lost, some of them after they took effect,
// and by which no watch lives long. What becomes of a request depends on the seed, on what it asks for, and on how often that
// has been asked before, but not on what others ask meanwhile: a run can be repeated, although its requests come in any order.
func Mischief(seed uint64, oneIn int) Plan {
	return byLot(seed, func(r Request, _ uint64, dice *rand.Rand) Fault {
		between := func(low, high time.Duration) time.Duration { return low + time.Duration(dice.Int64N(int64(high-low))) }
		f := Fault{}
		if dice.IntN(oneIn) == 0 {
			faults := append(refusals(r), Fault{Delay: between(shortestDelay, longestDelay)})
			f = faults[dice.IntN(len(faults))]
		}
		if r.Verb == "watch" {
			f.Cut = between(shortestWatch, longestWatch)
		}
		return f
	})
}

// Reluctance returns a plan by which every write has to be asked for twice: each first time it is refused or lost. Who forgets
// what went wrong, and is lucky that something else wakes them, is not so here.
func Reluctance(seed uint64) Plan {
	return byLot(seed, func(r Request, n uint64, dice *rand.Rand) Fault {
		if !r.Writes() || n%2 == 0 {
			return Fault{}
		}
		faults := refusals(r)
		return faults[dice.IntN(len(faults))]
	})
}

// byLot returns a plan that draws a lot for each request. n is how often the same has been asked.
func byLot(seed uint64, draw func(r Request, n uint64, dice *rand.Rand) Fault) Plan {
	var mu sync.Mutex
	asked := map[string]uint64{}
	return func(r Request) Fault {
		key := r.Verb + " " + r.Resource + " " + r.Namespace + "/" + r.Name
		mu.Lock()
		asked[key]++
		n := asked[key]
		mu.Unlock()
		h := fnv.New64a()
		_, _ = fmt.Fprintf(h, "%s %d", key, n)
		return draw(r, n, rand.New(rand.NewPCG(seed, h.Sum64()))) //nolint:gosec // nothing is secret here
	}
}

// refusals are the ways in which a request may come to nothing, or seem to.
func refusals(r Request) []Fault {
	faults := []Fault{{Status: http.StatusInternalServerError}, {Status: http.StatusServiceUnavailable}, {Status: http.StatusTooManyRequests}, {Reset: true}}
	if !r.Writes() {
		return faults
	}
	faults = append(faults, Fault{Landed: true, Status: http.StatusInternalServerError}, Fault{Landed: true, Reset: true})
	if r.Verb != "create" { // which knows no conflict, but that the object exists
		faults = append(faults, Fault{Status: http.StatusConflict}, Fault{Landed: true, Status: http.StatusConflict})
	}
	return faults
}
