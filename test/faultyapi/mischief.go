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

// Mischief returns a plan that refuses, delays or loses one request in oneIn, some of them after they took effect,
// and that keeps every watch short. The fate of a request depends on the seed, on its content, and on how often the
// same was asked before, but not on other requests. So a run can be repeated, although its requests come in any
// order.
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

// Reluctance returns a plan by which every write has to be tried twice: the first attempt is refused or lost. A
// client that forgets a failed write, and otherwise gets away with it because some other event wakes it, fails here.
func Reluctance(seed uint64) Plan {
	return byLot(seed, func(r Request, n uint64, dice *rand.Rand) Fault {
		if !r.Writes() || n%2 == 0 {
			return Fault{}
		}
		faults := refusals(r)
		return faults[dice.IntN(len(faults))]
	})
}

// byLot returns a plan that draws a lot for each request. n is how often the same request was made.
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

// refusals returns the ways in which a request may fail, or seem to.
func refusals(r Request) []Fault {
	faults := []Fault{{Status: http.StatusInternalServerError}, {Status: http.StatusServiceUnavailable},
		{Status: http.StatusTooManyRequests}, {Reset: true}}
	if !r.Writes() {
		return faults
	}
	faults = append(faults, Fault{Landed: true, Status: http.StatusInternalServerError}, Fault{Landed: true, Reset: true})
	if r.Verb != "create" { // which knows no conflict, but that the object exists
		faults = append(faults, Fault{Status: http.StatusConflict}, Fault{Landed: true, Status: http.StatusConflict})
	}
	return faults
}
