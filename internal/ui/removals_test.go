// SPDX-License-Identifier: Apache-2.0

package ui_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/guard"
	"github.com/chandler-hub/chandler/internal/ui/uitest"
	"github.com/chandler-hub/chandler/internal/ui/view"
)

// holding is a fleet of 20 clusters whose first set does not select 10 of them any more, of which 3 go, and has to reinstall on one.
func holding(t *testing.T) *view.Fleet {
	t.Helper()
	f := uitest.Fleet(20, 2)
	s := f.Sets[0]
	s.Spec.SelectAll, s.Spec.ClusterSelector = false, &metav1.LabelSelector{MatchLabels: map[string]string{"keeps": "it"}}
	var wanted []guard.Removal
	for c, reg := range f.Registrations {
		d := f.Deliveries[2*c]
		cluster := reg.Namespace + "/" + reg.Name
		switch {
		case c < 10:
			wanted = append(wanted, guard.Removal{Cluster: cluster, Digest: guard.Withdrawal(string(d.UID)), Addons: []string{s.Name}})
		case c == 12:
			a := &d.Status.Addons[0]
			a.State, a.Removal, a.Message = hubv1.AddonHeld, guard.Reinstalled("x", "y"), "Flux would uninstall a and install b"
			wanted = append(wanted, guard.Removal{Cluster: cluster, Digest: guard.Change([]string{a.Removal}), Addons: []string{s.Name}})
			fallthrough
		default:
			reg.Labels["keeps"] = "it"
		}
	}
	v := guard.Decide(guard.Input{Wanted: wanted, Clusters: 20, Window: time.Hour, Now: uitest.Now.Add(-time.Hour)})
	s.Status.HeldRemovals, s.Status.Removals = v.Held, v.Removals
	if len(v.Go) != 3 || v.Held.Count != 8 {
		t.Fatalf("the guard lets %d go", len(v.Go))
	}
	return f
}

const (
	heldList = "/sets/flux-system/cert-manager/removals"
	heldForm = heldList + "/approve"
)

// TestHeldRemovals: the list has exactly what the hub holds, and not what it has let go, and its form approves that.
func TestHeldRemovals(t *testing.T) {
	f := holding(t)
	s := serve(t, f, f.Sets[0])
	if _, body, _ := s.get("/removals"); !strings.Contains(body, "flux-system/cert-manager") || strings.Contains(body, "flux-system/cilium") {
		t.Errorf("%s", body)
	}
	_, body, _ := s.get(heldList)
	for _, want := range []string{"This is exactly what the hub asks about", "8 clusters would lose", "would uninstall a and install b", "the whole set leaves the cluster", `class="danger"`, "Approving this uninstalls", heldForm} {
		if !strings.Contains(body, want) {
			t.Errorf("it does not say %q:\n%s", want, body)
		}
	}
	if n := strings.Count(body, `<th scope="row">`); n != 8 {
		t.Errorf("it lists %d", n)
	}
	if strings.Contains(body, "<form") {
		t.Error("a form in the part that changes by itself: somebody would approve what he has not read")
	}
	form := s.form(heldForm)
	if code, body, _ := s.do(http.MethodPost, heldForm, map[string]string{"Origin": s.base}, form); code != 200 || !strings.Contains(body, "are approved") {
		t.Errorf("%d %s", code, body)
	}
	if got := s.annotation(hubv1.ApproveRemovalAnnotation); got != f.Sets[0].Status.HeldRemovals.Hash {
		t.Errorf("approved is %q", got)
	}
}

// TestWhatIsNotExactIsNotApproved: if the page sees less or more than the hub holds, or the hub holds something else by now.
func TestWhatIsNotExactIsNotApproved(t *testing.T) {
	for name, change := range map[string]func(f *view.Fleet){
		"Less":            func(f *view.Fleet) { f.Deliveries = f.Deliveries[16:] },
		"More":            func(f *view.Fleet) { delete(f.Registrations[15].Labels, "keeps") },
		"NothingIsListed": func(f *view.Fleet) { f.Deliveries = nil },
	} {
		t.Run(name, func(t *testing.T) {
			f := holding(t)
			s := serve(t, f, f.Sets[0])
			form := s.form(heldForm)
			change(f)
			s.fleet.set(f)
			if _, body, _ := s.get(heldForm); !strings.Contains(body, "is not exactly what the hub asks about") || strings.Contains(body, `method="post"`) {
				t.Errorf("%s", body)
			}
			if code, _, _ := s.do(http.MethodPost, heldForm, map[string]string{"Origin": s.base}, form); code != http.StatusConflict {
				t.Errorf("%d", code)
			}
			if got := s.annotation(hubv1.ApproveRemovalAnnotation); got != "" {
				t.Errorf("approved is %q", got)
			}
		})
	}
	f := holding(t)
	s := serve(t, f, f.Sets[0])
	form := s.form(heldForm)
	form.Set("seen", "00000000")
	if code, body, _ := s.do(http.MethodPost, heldForm, map[string]string{"Origin": s.base}, form); code != http.StatusConflict || !strings.Contains(body, "has changed since you looked") {
		t.Errorf("%d %s", code, body)
	}
}
