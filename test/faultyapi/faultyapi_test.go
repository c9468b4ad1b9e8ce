// SPDX-License-Identifier: Apache-2.0

package faultyapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// backend is a server that says ok to all, and to a watch says so again and again. It counts what reaches it.
type backend struct {
	mu   sync.Mutex
	seen []string
}

func (b *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	b.seen = append(b.seen, r.Method)
	b.mu.Unlock()
	for r.URL.Query().Get("watch") == "true" && r.Context().Err() == nil {
		_, _ = io.WriteString(w, "ok\n")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-time.After(10 * time.Millisecond):
		case <-r.Context().Done():
		}
	}
	_, _ = io.WriteString(w, "ok\n")
}

func (b *backend) reached() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.seen)
}

func startBoth(t *testing.T) (*backend, *Server, string) {
	t.Helper()
	b := &backend{}
	behind := httptest.NewServer(b)
	t.Cleanup(behind.Close)
	s, err := Start(&rest.Config{Host: behind.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return b, s, "http://" + s.listener.Addr().String()
}

func send(t *testing.T, method, url string) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err == nil {
		t.Cleanup(func() { _ = resp.Body.Close() })
	}
	return resp, err
}

const secrets = "/api/v1/namespaces/fleet/secrets"

func TestRequestsAreReadAsTheAPIServerReadsThem(t *testing.T) {
	b, s, url := startBoth(t)
	before := time.Now()
	for method, path := range map[string]string{
		"GET": secrets, "POST": "/apis/events.k8s.io/v1/namespaces/fleet/events",
		"PATCH": "/apis/chandler.dev/v1alpha1/namespaces/fleet/addonsets/base/status?fieldManager=x",
	} {
		resp, err := send(t, method, url+path)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s %s: %v %v", method, path, resp, err)
		}
	}
	got := map[string]bool{}
	for _, r := range s.Requests(before) {
		got[fmt.Sprintf("%s %t", r, r.Writes())] = true
	}
	want := map[string]bool{"list secrets fleet/ false": true, "create events fleet/ false": true, "patch addonsets/status fleet/base true": true}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if b.reached() != 3 {
		t.Errorf("%d requests arrived", b.reached())
	}
	if n := len(s.Requests(time.Now())); n != 0 {
		t.Errorf("%d requests since now", n)
	}
}

func TestFaults(t *testing.T) {
	for name, tc := range map[string]struct {
		fault  Fault
		status int // 0: no answer
		landed int
	}{
		"None":             {Fault{}, 200, 1},
		"Refused":          {Fault{Status: 503}, 503, 0},
		"LandedAndRefused": {Fault{Landed: true, Status: 500}, 500, 1},
		"Reset":            {Fault{Reset: true}, 0, 0},
		"LandedAndReset":   {Fault{Landed: true, Reset: true}, 0, 1},
		"Delayed":          {Fault{Delay: time.Millisecond}, 200, 1},
	} {
		t.Run(name, func(t *testing.T) {
			b, s, url := startBoth(t)
			s.Follow(func(Request) Fault { return tc.fault })
			resp, err := send(t, "PATCH", url+secrets+"/one")
			if tc.status == 0 {
				if !errors.Is(err, syscall.ECONNRESET) {
					t.Errorf("got %v %v, want a reset", resp, err)
				}
			} else if err != nil || resp.StatusCode != tc.status {
				t.Errorf("got %v %v, want status %d", resp, err, tc.status)
			}
			if b.reached() != tc.landed {
				t.Errorf("%d requests landed, want %d", b.reached(), tc.landed)
			}
			s.Follow(nil)
			if resp, err := send(t, "GET", url+secrets); err != nil || resp.StatusCode != http.StatusOK {
				t.Errorf("without a plan: %v %v", resp, err)
			}
		})
	}
}

// TestErrorsAreReal: a client takes the answers for those of an API server.
func TestErrorsAreReal(t *testing.T) {
	_, s, _ := startBoth(t)
	raw, err := s.Kubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(raw)
	if err != nil {
		t.Fatal(err)
	}
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	for status, is := range map[int]func(error) bool{
		409: apierrors.IsConflict, 429: apierrors.IsTooManyRequests, 500: apierrors.IsInternalError, 503: apierrors.IsServiceUnavailable,
	} {
		s.Follow(func(Request) Fault { return Fault{Status: status} })
		err := c.CoreV1().RESTClient().Delete().AbsPath(secrets, "one").MaxRetries(0).Do(t.Context()).Error()
		if !is(err) {
			t.Errorf("%d: %v", status, err)
		}
		if _, ok := apierrors.SuggestsClientDelay(err); status == 429 && !ok {
			t.Errorf("429 does not say when to come again: %v", err)
		}
	}
}

func TestCut(t *testing.T) {
	_, s, url := startBoth(t)
	s.Follow(func(Request) Fault { return Fault{Cut: 100 * time.Millisecond} })
	resp, err := send(t, "GET", url+secrets+"?watch=true")
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(resp.Body)
	if err == nil || !strings.HasPrefix(string(got), "ok\n") {
		t.Errorf("a watch that is cut ended with %v after %q", err, got)
	}
}

func TestHang(t *testing.T) {
	b, s, url := startBoth(t)
	ctx, cancel := context.WithCancel(t.Context())
	s.Follow(func(Request) Fault { return Fault{Landed: true, Hang: cancel} })
	req, err := http.NewRequestWithContext(ctx, http.MethodPatch, url+secrets+"/one", nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := http.DefaultTransport.RoundTrip(req); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v %v", resp, err)
	}
	if b.reached() != 1 {
		t.Error("it did not land")
	}
}

func TestMischief(t *testing.T) {
	const n = 10000
	patch := func(i int) Request { return Request{Verb: "patch", Resource: "secrets", Name: fmt.Sprint(i % 100)} }
	fates := func(seed uint64, order func(int) int) map[string]int {
		plan, out := Mischief(seed, 10), map[string]int{}
		for i := range n {
			f := plan(patch(order(i)))
			if f.Cut != 0 {
				t.Fatal("only watches are cut")
			}
			out[fmt.Sprintf("%t %d %t %t", f.Landed, f.Status, f.Reset, f.Delay > 0)]++
		}
		return out
	}
	one := fates(1, func(i int) int { return i })
	if again := fates(1, func(i int) int { return n - 1 - i }); !reflect.DeepEqual(one, again) {
		t.Errorf("one seed, another order, another outcome:\n%v\n%v", one, again)
	}
	if other := fates(2, func(i int) int { return i }); reflect.DeepEqual(one, other) {
		t.Error("another seed has the same outcome")
	}
	if left := one["false 0 false false"]; left < n*88/100 || left > n*92/100 {
		t.Errorf("%d of %d requests are left alone, want nine of ten", left, n)
	}
	if len(one) != 10 {
		t.Errorf("%d kinds of outcomes, want 10: %v", len(one), one)
	}
	plan := Mischief(1, 10)
	for i := range 100 {
		if f := plan(Request{Verb: "watch", Resource: fmt.Sprint(i)}); f.Cut < shortestWatch || f.Cut > longestWatch || f.Landed || f.Status == http.StatusConflict {
			t.Errorf("watch %d: %+v", i, f)
		}
	}
	for i := range 1000 {
		if f := plan(Request{Verb: "create", Resource: "secrets", Name: fmt.Sprint(i)}); f.Status == http.StatusConflict {
			t.Error("a conflict where there is nothing to be in conflict with")
		}
	}
}

func TestReluctance(t *testing.T) {
	plan := Reluctance(1)
	for _, r := range []Request{{Verb: "patch", Resource: "secrets"}, {Verb: "create", Resource: "secrets"}, {Verb: "delete", Resource: "secrets"}} {
		for i := range 10 {
			f := plan(r)
			if refused := f.Status != 0 || f.Reset; refused != (i%2 == 0) {
				t.Errorf("%s, time %d: %+v", r, i+1, f)
			}
		}
	}
	for _, r := range []Request{{Verb: "get", Resource: "secrets"}, {Verb: "create", Resource: "events"}, {Verb: "watch", Resource: "secrets"}} {
		if f := plan(r); f.Status != 0 || f.Reset || f.Cut != 0 {
			t.Errorf("%s: %+v", r, f)
		}
	}
}
