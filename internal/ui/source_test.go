// SPDX-License-Identifier: Apache-2.0

package ui_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/hubscheme"
	"github.com/chandler-hub/chandler/internal/match"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/ui"
	"github.com/chandler-hub/chandler/internal/ui/uitest"
	"github.com/chandler-hub/chandler/internal/ui/view"
)

// watched is an API server that lists a fleet, and sends what the test says to those who watch registrations. It refuses some kinds.
type watched struct {
	fleet   *view.Fleet
	refused string
	events  chan any
	mu      sync.Mutex
	asked   []string
}

func (h *watched) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	kind := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	h.mu.Lock()
	h.asked = append(h.asked, r.URL.String())
	h.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	list := func(kind string, items any) {
		_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": "chandler.dev/v1alpha1", "kind": kind + "List", "metadata": map[string]any{"resourceVersion": "5"}, "items": items})
	}
	switch {
	case r.URL.Query().Get("sendInitialEvents") != "":
		refuse(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
	case r.URL.Query().Get("watch") != "":
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		for kind == "clusterregistrations" {
			select {
			case e := <-h.events:
				_ = json.NewEncoder(w).Encode(e)
				w.(http.Flusher).Flush()
				continue
			case <-r.Context().Done():
			}
			return
		}
		<-r.Context().Done()
	case kind == "clusterregistrations":
		list("ClusterRegistration", h.fleet.Registrations)
	case kind == "addonsets":
		list("AddonSet", h.fleet.Sets)
	default:
		list("AddonDelivery", h.fleet.Deliveries)
	}
}

func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Reason: reason, Code: int32(code), Message: "refused here"}) //nolint:gosec // a code of HTTP
}

// watch begins to watch such a server.
func (h *watched) watch(t *testing.T, namespace string) (*ui.Watch, error) {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.CloseClientConnections)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	c := fake.NewClientBuilder().WithScheme(hubscheme.New()).WithInterceptorFuncs(interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			if kind := strings.ToLower(fmt.Sprintf("%T", list)); h.refused == "all" || h.refused != "" && strings.Contains(kind, h.refused) {
				return apierrors.NewForbidden(hubv1.GroupVersion.WithResource(h.refused).GroupResource(), "", errors.New("refused here"))
			}
			return nil
		}}).Build()
	return ui.NewWatch(ctx, ui.Restrict(&rest.Config{Host: server.URL}), c, namespace)
}

// TestWatch: it lists a fleet, and an index is new when something has changed, and otherwise the same.
func TestWatch(t *testing.T) {
	h := &watched{fleet: uitest.Fleet(20, 2), events: make(chan any)}
	h.fleet.Sets[0].Status.Removals, h.fleet.Sets[0].ManagedFields = &hubv1.Removals{UnderWay: []string{"x"}}, []metav1.ManagedFieldsEntry{{Manager: "x"}}
	w := must.Get(h.watch(t, "")).Or(t)
	x := w.Index()
	if len(x.Registrations) != 20 || len(x.Sets) != 2 || len(x.Deliveries) != 40 || len(x.Notes) != 0 || w.Index() != x {
		t.Fatalf("%d, %d, %d, %q", len(x.Registrations), len(x.Sets), len(x.Deliveries), x.Notes)
	}
	for _, s := range x.Sets {
		if s.Status.Removals != nil && len(s.Status.Removals.UnderWay) > 0 || len(s.ManagedFields) > 0 {
			t.Errorf("it keeps what no page shows: %+v", s)
		}
	}
	changed := w.Changed()
	reg := h.fleet.Registrations[0].DeepCopy()
	reg.APIVersion, reg.Kind, reg.ResourceVersion, reg.Labels["env"] = "chandler.dev/v1alpha1", "ClusterRegistration", "6", "other"
	h.events <- map[string]any{"type": "MODIFIED", "object": reg}
	select {
	case <-changed:
	case <-time.After(10 * time.Second):
		t.Fatal("nobody is told of a change")
	}
	if got := w.Index().Board(view.ParseQuery("/", url.Values{"labels": {"env=other"}}), uitest.Now); got.All != 1 {
		t.Errorf("%d clusters have the new label", got.All)
	}
}

// TestWhatMayNotBeListed is said on the page, and is no error, unless it is everything.
func TestWhatMayNotBeListed(t *testing.T) {
	h := &watched{fleet: uitest.Fleet(3, 1), refused: "addondelivery"}
	w, err := h.watch(t, "")
	if err != nil {
		t.Fatal(err)
	}
	if got := w.Index().Unknown(match.Reach{Namespace: "flux-system", Platform: true}); !strings.Contains(got, "AddonDeliveries could not be listed") {
		t.Errorf("it is %q", got)
	}
	b := w.Index().Board(view.ParseQuery("/", url.Values{}), uitest.Now)
	if b.All != 3 || len(b.Notes) != 1 || !strings.Contains(b.Notes[0], "You may not list the AddonDeliveries of all namespaces") {
		t.Errorf("%d clusters, %q", b.All, b.Notes)
	}
	h.mu.Lock()
	for _, asked := range h.asked {
		if strings.Contains(asked, "addondeliveries") {
			t.Errorf("it lists what it may not: %s", asked)
		}
	}
	h.mu.Unlock()
	h = &watched{fleet: h.fleet}
	if w, err = h.watch(t, "tenants-1"); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		reach match.Reach
		known bool
	}{{match.Reach{Namespace: "tenants-1"}, true}, {match.Reach{Namespace: "tenants-1", Team: &match.Team{}}, false},
		{match.Reach{Namespace: "tenants-2"}, false}, {match.Reach{Namespace: "tenants-1", Platform: true}, false}} {
		if got := w.Index().Unknown(tc.reach); (got == "") != tc.known {
			t.Errorf("%+v: %q", tc.reach, got)
		}
	}
	h.mu.Lock()
	for _, asked := range h.asked {
		if !strings.Contains(asked, "/namespaces/tenants-1/") {
			t.Errorf("it asks for more than a namespace: %s", asked)
		}
	}
	h.mu.Unlock()
	h = &watched{fleet: h.fleet, refused: "all"}
	if _, err := h.watch(t, ""); err == nil || !strings.Contains(err.Error(), "you may list nothing of this hub") || !strings.Contains(err.Error(), "-n NAMESPACE") {
		t.Errorf("%v", err)
	}
}
