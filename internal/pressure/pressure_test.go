// SPDX-License-Identifier: Apache-2.0

package pressure_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/pressure"
)

var start = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// server answers POST and PATCH what it is told to, once it is told, and all else at once.
type server struct {
	arrived chan *http.Request
	answers chan int
}

func newServer() *server {
	return &server{arrived: make(chan *http.Request, 100), answers: make(chan int)}
}

func (s *server) RoundTrip(req *http.Request) (*http.Response, error) {
	s.arrived <- req
	if req.Method != http.MethodPost && req.Method != http.MethodPatch {
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	}
	select {
	case code := <-s.answers:
		if code == 0 {
			return nil, errors.New("connection refused")
		}
		return &http.Response{StatusCode: code, Body: http.NoBody}, nil
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
}

func send(ctx context.Context, rt http.RoundTripper, method, path string) error {
	res, err := rt.RoundTrip(httptest.NewRequestWithContext(ctx, method, "http://api"+path, nil))
	if err == nil {
		_ = res.Body.Close()
	}
	return err
}

// one sends a write that is answered so.
func one(t *testing.T, s *server, rt http.RoundTripper, code int) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- send(t.Context(), rt, http.MethodPatch, "/api/v1/namespaces/a/secrets/b") }()
	<-s.arrived
	s.answers <- code
	if err := <-done; err != nil && code != 0 {
		t.Fatal(err)
	}
}

func TestBound(t *testing.T) {
	now := clocktesting.NewFakePassiveClock(start)
	l, s := pressure.New(16, now), newServer()
	rt := l.Wrap(s)
	want := func(what string, bound int) {
		t.Helper()
		if got := l.Bound(); got != bound {
			t.Errorf("%s: %d at a time, want %d", what, got, bound)
		}
	}
	want("at first", 16)
	one(t, s, rt, http.StatusOK)
	want("served", 16)
	one(t, s, rt, http.StatusTooManyRequests)
	want("refused", 8)
	one(t, s, rt, http.StatusTooManyRequests)
	want("refused in the same moment", 8)
	now.SetTime(start.Add(2 * time.Second))
	one(t, s, rt, http.StatusTooManyRequests)
	want("refused later", 4)
	one(t, s, rt, 0)
	one(t, s, rt, 0)
	one(t, s, rt, 0)
	one(t, s, rt, 0)
	one(t, s, rt, 0)
	want("the server is gone, which says nothing of its load", 4)
	for range 5 {
		one(t, s, rt, http.StatusConflict)
	}
	want("served, if only with a conflict", 5)
	for i := range 20 {
		now.SetTime(start.Add(time.Duration(10+2*i) * time.Second))
		one(t, s, rt, http.StatusTooManyRequests)
	}
	want("refused for long", 1)
}

func TestWaits(t *testing.T) {
	l, s := pressure.New(2, clocktesting.NewFakePassiveClock(start)), newServer()
	rt := l.Wrap(s)
	var writes sync.WaitGroup
	for range 3 {
		writes.Go(func() {
			if err := send(t.Context(), rt, http.MethodPost, "/api/v1/namespaces"); err != nil {
				t.Error(err)
			}
		})
	}
	<-s.arrived
	<-s.arrived
	// The third waits; what is no write does not, nor does the leader's lease.
	for method, path := range map[string]string{http.MethodGet: "/api/v1/namespaces", http.MethodPut: "/apis/coordination.k8s.io/v1/namespaces/a/leases/b"} {
		must.Do(t, send(t.Context(), rt, method, path))
		if req := <-s.arrived; req.Method != method {
			t.Fatalf("a third %s went through", req.Method)
		}
	}
	impatient, cancel := context.WithCancel(t.Context())
	given := make(chan error, 1)
	go func() { given <- send(impatient, rt, http.MethodPost, "/api/v1/impatient") }()
	cancel()
	if err := <-given; !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that gives up gets %v", err)
	}
	for range 3 {
		s.answers <- http.StatusOK
	}
	done := make(chan struct{})
	go func() { writes.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("a write waits for ever")
	}
}

// TestRefusedEvents: an API server may bound the events of a namespace (EventRateLimit), and refuse those of the hub for what others write
// there. That says nothing of its load.
func TestRefusedEvents(t *testing.T) {
	l, s := pressure.New(16, clocktesting.NewFakePassiveClock(start)), newServer()
	rt := l.Wrap(s)
	done := make(chan error, 1)
	go func() {
		done <- send(t.Context(), rt, http.MethodPost, "/apis/events.k8s.io/v1/namespaces/tenant/events")
	}()
	<-s.arrived
	s.answers <- http.StatusTooManyRequests
	must.Do(t, <-done)
	if got := l.Bound(); got != 16 {
		t.Errorf("%d writes at a time, want 16", got)
	}
}

// TestUnwraps: client-go finds the transport in it, to cancel requests.
func TestUnwraps(t *testing.T) {
	next := newServer()
	wrapped, ok := pressure.New(1, clocktesting.NewFakePassiveClock(start)).Wrap(next).(utilnet.RoundTripperWrapper)
	if !ok || wrapped.WrappedRoundTripper() != http.RoundTripper(next) {
		t.Errorf("it is %T", wrapped)
	}
}
