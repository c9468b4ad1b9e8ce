// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/chandler-hub/chandler/controllers/tenure"
	"github.com/chandler-hub/chandler/internal/hubconfig"
)

// TestLease plays the elections of two installations: what one says of the Lease after the other has written it.
func TestLease(t *testing.T) {
	c := fake.NewClientset().CoordinationV1().Leases(hubconfig.LeaseNamespace)
	hub := func(installation, identity string) *lock {
		return &lock{leases: c, installation: installation, identity: identity, led: &tenure.Tenure{}, log: logr.Discard()}
	}
	first, standby, second := hub("one", "a"), hub("one", "b"), hub("two", "c")
	held := resourcelock.LeaderElectionRecord{HolderIdentity: "a", LeaseDurationSeconds: 15}
	released := resourcelock.LeaderElectionRecord{LeaseDurationSeconds: 1}
	sees := func(l *lock, holder string, seconds int, waits string) {
		t.Helper()
		r, _, err := l.Get(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if r.HolderIdentity != holder || r.LeaseDurationSeconds != seconds {
			t.Errorf("the hub in %s sees a Lease that %q has for %d s, want %q for %d s", l.installation, r.HolderIdentity, r.LeaseDurationSeconds,
				holder, seconds)
		}
		switch err := l.Ready(nil); {
		case waits == "" && err != nil:
			t.Errorf("the hub in %s is not ready: %v", l.installation, err)
		case waits != "" && (err == nil || !strings.Contains(err.Error(), waits)):
			t.Errorf("the hub in %s says %v, want %q", l.installation, err, waits)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := first.Get(t.Context()); !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	must(first.Create(t.Context(), held))
	if first.led.Since(time.Now()).IsZero() || !standby.led.Since(time.Now()).IsZero() {
		t.Error("the tenure of a hub begins with its Lease, and with no other one")
	}
	sees(standby, "a", 15, "")
	sees(second, "the hub in namespace one", 3600, "the hub in namespace two does nothing: another one is installed on this management cluster, in namespace one")
	if sees(first, "a", 15, ""); !first.led.Holds(time.Now()) {
		t.Error("the first hub has its Lease, and does not know it")
	}
	must(first.Update(t.Context(), released))
	sees(standby, "", 1, "")
	sees(second, "the hub in namespace one", 3600, "kubectl -n kube-system delete lease hub.chandler.dev")
	must(second.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "c", LeaseDurationSeconds: 15})) // an hour later
	sees(second, "c", 15, "")
	sees(standby, "the hub in namespace two", 3600, "in namespace two")
	if sees(first, "the hub in namespace two", 3600, "in namespace two"); first.led.Holds(time.Now()) {
		t.Error("another hub has the Lease, and the first one writes on")
	}
}

// TestOnlyLeading: what this process writes reaches the API server only while it has its Lease; it may always read.
func TestOnlyLeading(t *testing.T) {
	began := time.Now()
	for name, tc := range map[string]struct {
		method  string
		renewed time.Duration // before the request; negative: the process has never had its Lease
		sent    bool
	}{
		"ALeaderWrites":         {http.MethodPatch, 2 * time.Second, true},
		"ALeaderReads":          {http.MethodGet, 2 * time.Second, true},
		"OneThatStoodStill":     {http.MethodPatch, renewDeadline, false},
		"OneThatStoodStillRead": {http.MethodGet, renewDeadline, true},
		"AHubThatBegins":        {http.MethodHead, -1, true}, // which asks whether the API server has priority and fairness
		"AStandby":              {http.MethodPost, -1, false},
		"AStandbyReads":         {http.MethodGet, -1, true},
	} {
		t.Run(name, func(t *testing.T) {
			led := &tenure.Tenure{}
			if tc.renewed >= 0 {
				led.Renew(began.Add(-tc.renewed))
			}
			sent := false
			next := roundTripper(func(*http.Request) (*http.Response, error) {
				sent = true
				return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
			})
			req := httptest.NewRequestWithContext(t.Context(), tc.method, "/api/v1/namespaces", strings.NewReader("{}"))
			res, err := onlyLeading(func() bool { return led.Holds(began) })(next).RoundTrip(req)
			if res != nil {
				_ = res.Body.Close()
			}
			if sent != tc.sent || errors.Is(err, errNoLease) == tc.sent {
				t.Errorf("sent: %v (%v), want %v", sent, err, tc.sent)
			}
		})
	}
}
