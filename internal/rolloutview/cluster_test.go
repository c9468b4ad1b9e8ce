// SPDX-License-Identifier: Apache-2.0

package rolloutview_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/guard"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/match"
	"github.com/chandler-hub/chandler/internal/rolloutview"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// TestPauseCluster: what is written, and what is said.
func TestPauseCluster(t *testing.T) {
	reg := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "berlin"}}
	for _, tc := range []struct{ until, reason, patch, says string }{
		{"", "freeze", `{"spec":{"pause":{"reason":"freeze","until":null}}}`,
			"ClusterRegistration fleet/berlin: paused; nothing is made, changed or removed there until you resume it: chandler resume cluster berlin -n fleet. What runs stays\n"},
		{"12h", "two\nlines", `{"spec":{"pause":{"reason":"two lines","until":"2026-06-02T00:00:00Z"}}}`,
			"ClusterRegistration fleet/berlin: paused; nothing is made, changed or removed there until 2026-06-02T00:00:00Z. What runs stays\n"},
		{"soon", "freeze", "", `fleet/berlin: --until "soon" is neither a time such as`},
		{"2026-05-01T00:00:00Z", "freeze", "", "fleet/berlin: --until 2026-05-01T00:00:00Z is over"},
		{"", " ", `{"spec":{"pause":{"reason":null,"until":null}}}`,
			"ClusterRegistration fleet/berlin: paused; nothing is made, changed or removed there until you resume it: chandler resume cluster berlin -n fleet. What runs stays\n"},
	} {
		order, err := rolloutview.PauseCluster(reg, tc.until, tc.reason, noon)
		if err != nil {
			if tc.patch != "" || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("--until %q ends with %v", tc.until, err)
			}
			continue
		}
		var b bytes.Buffer
		order.Print(&b)
		if patch, _ := json.Marshal(order.Patch); string(patch) != tc.patch || b.String() != tc.says {
			t.Errorf("--until %q writes %s, and says %q", tc.until, patch, b.String())
		}
	}
	if _, err := rolloutview.ResumeCluster(reg, noon); err == nil || !strings.Contains(err.Error(), "it is not paused") {
		t.Errorf("resume ends with %v", err)
	}
	reg.Spec.Pause = &hubv1.Pause{Until: new(metav1.NewTime(noon.Add(time.Hour))), Reason: "a test"}
	if order, err := rolloutview.PauseCluster(reg, "", "freeze", noon); err != nil || len(order.Notes) != 1 ||
		order.Notes[0] != "it was paused already until 2026-06-01T13:00:00Z: a test" {
		t.Errorf("a second pause says %+v, %v", order, err)
	}
	if order, err := rolloutview.ResumeCluster(reg, noon); err != nil || !strings.Contains(order.Says, "the pause is over") {
		t.Errorf("resume says %+v, %v", order, err)
	}
}

// heldSet is a set whose guard holds the removal of all of it from one cluster, and a reinstallation on another.
func heldSet(t *testing.T) *rolloutview.Input {
	t.Helper()
	in := &rolloutview.Input{Now: noon, Set: &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "base", UID: "s"}}}
	in.Set.Spec.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "prod"}}
	in.Reach = match.Reach{Namespace: "flux-system", Platform: true}
	var wanted []guard.Removal
	for _, name := range []string{"berlin", "paris", "rome"} {
		key := types.NamespacedName{Namespace: "fleet", Name: name}
		reg := hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: name, Labels: map[string]string{"tier": "prod"}}}
		d := hubv1.AddonDelivery{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: identity.Delivery("base", key), UID: types.UID("d-" + name)}}
		d.Spec.RegistrationRef = hubv1.RegistrationReference{Namespace: "fleet", Name: name}
		d.Spec.AddonSetRef.Name = "base"
		d.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "True"}}
		d.Status.Addons = []hubv1.AddonStatus{{Name: "web", State: hubv1.AddonReady, Version: "1.2.3", AppliedGeneration: 1}}
		switch name {
		case "berlin":
			reg.Labels = nil
			wanted = append(wanted, guard.Removal{Cluster: key.String(), Digest: guard.Withdrawal(string(d.UID)), Addons: []string{"web"}})
		case "paris":
			a := &d.Status.Addons[0]
			a.State, a.Reason, a.Removal, a.Message = hubv1.AddonHeld, hubv1.ReinstallReason, "r", "Flux would uninstall a and install b"
			wanted = append(wanted, guard.Removal{Cluster: key.String(), Digest: guard.Change([]string{"r"}), Addons: []string{"web"}})
		}
		in.Registrations, in.Deliveries = append(in.Registrations, reg), append(in.Deliveries, d)
	}
	since := metav1.NewTime(noon.Add(-2 * time.Hour))
	in.Set.Status.HeldRemovals = guard.Decide(guard.Input{Wanted: wanted, Now: noon, Held: &hubv1.HeldRemovals{Since: &since}}).Held
	if in.Set.Status.HeldRemovals == nil {
		t.Fatal("nothing is held")
	}
	return in
}

// TestHeldPage: what is shown is what is approved, and nothing else is.
func TestHeldPage(t *testing.T) {
	in := heldSet(t)
	show := func() string {
		var b bytes.Buffer
		if err := rolloutview.HeldPage(in).Flush(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	hash := in.Set.Status.HeldRemovals.Hash
	want := `AddonSet:  flux-system/base
Held:      2 clusters, since 2026-06-01T10:00:00Z (120m ago)
Hash:      ` + hash + `

CLUSTER        ADDON   VERSION   WOULD BE
fleet/berlin   web     1.2.3     uninstalled: the whole set leaves the cluster
fleet/paris    web     1.2.3     uninstalled, and installed again: Flux would uninstall a and install b
`
	if diff := gocmp.Diff(want, show()); diff != "" {
		t.Error(diff)
	}
	if got, err := rolloutview.MayApprove(in); err != nil || got != hash {
		t.Errorf("to approve is %q, %v", got, err)
	}
	if order, err := rolloutview.ApproveRemovals(in, hash); err != nil || !strings.Contains(order.Says, "what is held on 2 clusters is approved") {
		t.Errorf("%+v, %v", order, err)
	}
	if _, err := rolloutview.ApproveRemovals(in, "other"); err == nil || !strings.Contains(err.Error(), "nothing is approved") {
		t.Errorf("what has changed ends with %v", err)
	}
	in.Registrations[2].Labels = nil // rome
	if got := show(); !strings.Contains(got, "Note: this is not exactly what the hub holds") {
		t.Errorf("a list that is too long is\n%s", got)
	}
	if _, err := rolloutview.MayApprove(in); err == nil {
		t.Error("what is not exact is approved")
	}
	in.Set.Status.HeldRemovals = nil
	if got := show(); got != "AddonSet:  flux-system/base\nHeld:      nothing\n" {
		t.Errorf("of nothing it says %q", got)
	}
	if _, err := rolloutview.ApproveRemovals(in, hash); err == nil {
		t.Error("nothing is approved")
	}
}
