// SPDX-License-Identifier: Apache-2.0

package probe_test

import (
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/chandler-hub/chandler/internal/probe"
)

// largeAnswer is what an answer of a mebibyte may take on the way, in bytes: it is read into a buffer that grows, sent by a server in the
// same process, and what is read of it is little.
const largeAnswer = 16 << 20

// TestLargeAnswers: an answer that is full of small values takes little memory. Of thousands of clusters, 64 may send one at once.
func TestLargeAnswers(t *testing.T) {
	const path = "/api/v1/namespaces/a/serviceaccounts/b/token"
	full := func(before, item, after string) http.HandlerFunc {
		n := (1<<20 - len(before) - len(after)) / (len(item) + 1)
		return func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, before+strings.Repeat(item+",", n-1)+item+after)
		}
	}
	given := `"status": {"token": "x", "expirationTimestamp": "2030-01-01T00:00:00Z"}`
	ask := func(t *testing.T, server string) bool {
		result := once(t, server, probe.Options{Dial: slack, Total: slack})
		if result.Err != nil {
			t.Error(result.Err)
		}
		return result.NodesKnown
	}
	request := func(t *testing.T, server string) bool {
		account := types.NamespacedName{Namespace: "a", Name: "b"}
		token, expires, failure := probe.Token(t.Context(), config(t, server), account, time.Hour, probe.Options{Rules: loopback, Total: slack})
		if failure != nil {
			t.Error(failure)
		}
		return token == "x" && expires.Equal(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	}
	for name, tc := range map[string]struct {
		path   string
		answer http.HandlerFunc
		ask    func(*testing.T, string) bool
		want   bool
	}{
		"Fields":    {path: path, answer: full(`{"metadata": {"managedFields": [`, `{}`, `]}, `+given+`}`), ask: request, want: true},
		"Audiences": {path: path, answer: full(`{"spec": {"audiences": [`, `""`, `]}, `+given+`}`), ask: request, want: true},
		"Nodes":     {path: "/api/v1/nodes", answer: full(`{"kind": "NodeList", "items": [`, `{}`, `]}`), ask: ask, want: true},
		"NoNodes":   {path: "/api/v1/nodes", answer: full(`{"kind": "NodeList", "items": [`, `0`, `]}`), ask: ask},
	} {
		t.Run(name, func(t *testing.T) {
			server := api(t, map[string]http.HandlerFunc{tc.path: tc.answer})
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if got := tc.ask(t, server); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
			runtime.ReadMemStats(&after)
			if got := after.TotalAlloc - before.TotalAlloc; got > largeAnswer {
				t.Errorf("it takes %d KiB, want at most %d", got>>10, largeAnswer>>10)
			} else {
				t.Logf("it takes %d KiB", got>>10)
			}
		})
	}
}

// TestHeldRequests: a cluster that answers all requests of the probe but one does not answer. Flux sends each of them without a deadline, for
// each of its objects. What is answered may be a refusal.
func TestHeldRequests(t *testing.T) {
	t.Parallel()
	var hanging sync.WaitGroup
	defer hanging.Wait()
	const write = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
	for _, path := range []string{"/livez/ping", "/version", "/apis/apps/v1", "/api/v1/namespaces/kube-system", write} {
		hanging.Go(func() {
			t.Run("Hangs"+strings.ReplaceAll(path, "/", "."), func(t *testing.T) {
				hangs := func(_ http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body) // else the server does not see that the probe has gone
					<-r.Context().Done()
				}
				result := once(t, api(t, map[string]http.HandlerFunc{path: hangs}), probe.Options{})
				if result.Err == nil || result.Err.Reason != probe.ReasonTimedOut {
					t.Errorf("got %+v", result)
				}
			})
		})
	}
	for _, code := range []int{http.StatusForbidden, http.StatusNotFound, http.StatusUnprocessableEntity, http.StatusInternalServerError} {
		t.Run(http.StatusText(code), func(t *testing.T) {
			t.Parallel()
			refuses := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
			result := once(t, api(t, map[string]http.HandlerFunc{"/livez/ping": refuses, "/apis/apps/v1": refuses, write: refuses}), probe.Options{Total: slack})
			if result.Err != nil || result.ClusterUID == "" {
				t.Errorf("got %+v", result)
			}
		})
	}
}

// TestAsksAsFlux: the probe writes nothing, and uses one connection.
func TestAsksAsFlux(t *testing.T) {
	var mu sync.Mutex
	var asked []string
	from := map[string]bool{}
	override := map[string]http.HandlerFunc{}
	for path, body := range map[string]string{"/livez/ping": "ok", "/apis/apps/v1": strings.Repeat("x", 1<<16),
		"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases": "{}"} {
		override[path] = func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			asked, from[r.RemoteAddr] = append(asked, r.Method+" "+r.URL.String()), true
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, body)
		}
	}
	if result := once(t, api(t, override), probe.Options{Total: slack}); result.Err != nil {
		t.Error(result.Err)
	}
	want := []string{"GET /apis/apps/v1", "POST /apis/coordination.k8s.io/v1/namespaces/kube-system/leases?dryRun=All", "HEAD /livez/ping"}
	if !slices.Equal(asked, want) || len(from) != 1 {
		t.Errorf("asked %q by %d connections", asked, len(from))
	}
}
