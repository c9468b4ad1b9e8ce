// SPDX-License-Identifier: Apache-2.0

// Package pressure bounds how many writes to an API server are under way at a time. Each 429 response (API priority
// and fairness) halves the bound, and each write that succeeds raises it a little: additive increase, multiplicative
// decrease, as in TCP. So the hub needs no rate that is guessed, and does not flood an API server that has
// few seats. client-go retries a rejected request after the time that the server asks for.
package pressure

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// pause is how long further 429 responses count as the same one: those of one moment say the same thing.
const pause = time.Second

// Limit is the bound. It is safe for concurrent use.
type Limit struct {
	most  float64
	clock clock.PassiveClock

	mu       sync.Mutex
	bound    float64
	inFlight int
	waiting  []chan struct{}
	cut      time.Time
}

// New returns a limit whose bound starts at the given number of writes at a time, and never exceeds it.
func New(most int, c clock.PassiveClock) *Limit {
	return &Limit{most: float64(most), bound: float64(most), clock: c}
}

// Bound returns how many writes may be under way now.
func (l *Limit) Bound() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int(l.bound)
}

// Wrap bounds the writes through a transport. Reads pass, and so do the writes of leader election.
func (l *Limit) Wrap(next http.RoundTripper) http.RoundTripper {
	return &roundTripper{l, next}
}

type roundTripper struct {
	limit *Limit
	next  http.RoundTripper
}

func (r *roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	if !IsWrite(req) {
		return r.next.RoundTrip(req)
	}
	if err := r.limit.acquire(req.Context()); err != nil {
		return nil, err
	}
	res, err := r.next.RoundTrip(req)
	refused := res != nil && res.StatusCode == http.StatusTooManyRequests
	if refused && isEvent(req) {
		r.limit.release(false, false)
		return res, err
	}
	r.limit.release(err == nil, refused)
	return res, err
}

// WrappedRoundTripper lets client-go cancel a request that takes too long (k8s.io/client-go/transport, tryCancelRequest). Without, it
// logs a warning for each.
func (r *roundTripper) WrappedRoundTripper() http.RoundTripper { return r.next }

// IsWrite returns whether a request may change something. A write of a Lease, by which processes elect a leader, does not count.
func IsWrite(req *http.Request) bool {
	switch req.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return false
	}
	return !strings.HasPrefix(req.URL.Path, "/apis/coordination.k8s.io/")
}

// isEvent returns whether a write is an event. An API server may have a limit of its own for those (EventRateLimit), for each namespace:
// who writes many there has the hub's refused, which says nothing of how much the API server has to do.
func isEvent(req *http.Request) bool { return strings.HasPrefix(req.URL.Path, "/apis/events.k8s.io/") }

func (l *Limit) acquire(ctx context.Context) error {
	l.mu.Lock()
	if len(l.waiting) == 0 && l.inFlight < int(l.bound) {
		l.inFlight++
		l.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	l.waiting = append(l.waiting, turn)
	l.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.waiting, turn); i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
	} else {
		l.inFlight-- // its turn had just come
		l.next()
	}
	return ctx.Err()
}

// release ends a write. answered says whether the server answered, refused whether it answered 429.
func (l *Limit) release(answered, refused bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inFlight--
	switch now := l.clock.Now(); {
	case refused && now.Sub(l.cut) >= pause:
		l.bound, l.cut = max(1, l.bound/2), now
	case answered && !refused:
		l.bound = min(l.most, l.bound+1/l.bound)
	}
	l.next()
}

// next starts as many of the waiting writes as the bound allows.
func (l *Limit) next() {
	for len(l.waiting) > 0 && l.inFlight < int(l.bound) {
		close(l.waiting[0])
		l.waiting = l.waiting[1:]
		l.inFlight++
	}
}
