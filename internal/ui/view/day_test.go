// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/ui/uitest"
	"github.com/chandler-hub/chandler/internal/ui/view"
)

func ago(d time.Duration) *metav1.Time { return new(metav1.NewTime(uitest.Now.Add(-d))) }

// told is what a day says, without its times.
func told(d *view.Day) string {
	var lines []string
	for _, lane := range d.Lanes {
		if lane.N > 0 {
			lines = append(lines, lane.Name+" "+strings.Repeat("|", len(lane.Bars)))
		}
	}
	for _, e := range d.Entries {
		lines = append(lines, e.Class.Sign()+" "+e.Text)
	}
	return strings.Join(lines, "\n")
}

// TestDay: what happened in the last 24 hours is told by kind, with how many clusters it was about, the newest first; what was before is not.
func TestDay(t *testing.T) {
	f := uitest.Fleet(12, 2)
	for _, d := range f.Deliveries {
		d.Status.ReadyTime, d.Status.Addons[0].Since = ago(30*time.Hour), ago(30*time.Hour)
	}
	for i, hours := range []time.Duration{2, 3, 26} { // of cert-manager
		a := &f.Deliveries[2*i].Status.Addons[0]
		a.State, a.Since = hubv1.AddonFailed, ago(hours*time.Hour)
	}
	f.Deliveries[1].Status.ReadyTime = ago(5 * time.Hour) // of cilium
	r := f.Sets[1].Status.Rollout
	r.Started, r.CompletedTime = ago(6*time.Hour), ago(25*time.Hour)
	f.Sets[0].Status.HeldRemovals = &hubv1.HeldRemovals{Count: 1200, Since: ago(time.Hour)}
	b := board(t, f, "")
	want := `Revisions |
Became Ready |
Failed ||
Unreachable |
Removals |
! cert-manager: removals from 1,200 clusters need approval
! tenants-3/cluster-0003 stopped answering
✗ cert-manager failed on 2 clusters
✓ cilium became Ready on tenants-0/cluster-0000
… cilium: the rollout of cilium-2222222222-e3 began`
	if got := told(b.Day); got != want {
		t.Errorf("%s", got)
	}
	if e := b.Day.Entries[2]; e.URL != "/?addon=cert-manager&state=failed" || !e.Time.At.Equal(ago(2*time.Hour).Time) {
		t.Errorf("%+v", e)
	}
	if got := told(board(t, f, "q=cluster-0001").Day); !strings.Contains(got, "✗ cert-manager failed on tenants-1/cluster-0001") || strings.Contains(got, "became Ready") {
		t.Errorf("of one cluster: %s", got)
	}
	got := told(view.NewIndex(f).SetDay(types.NamespacedName{Namespace: "flux-system", Name: "cilium"}, nil, uitest.Now))
	if strings.Contains(got, "cert-manager") || !strings.Contains(got, "cilium became Ready") || !strings.Contains(got, "began") {
		t.Errorf("of a set: %s", got)
	}
	if got := told(board(t, uitest.Fleet(1, 1), "q=nothing").Day); got != "" {
		t.Errorf("nothing happened, and it tells %q", got)
	}
}

// TestDayIsNotMoreExactThanItsSource: of removals the hub keeps how many began in each twelfth of the guard's window.
func TestDayIsNotMoreExactThanItsSource(t *testing.T) {
	for _, c := range []struct{ window, began, want time.Duration }{
		{0, 5*time.Minute + 21*time.Second, 5 * time.Minute},
		{0, 21 * time.Second, 5 * time.Minute},
		{0, 3*time.Hour + time.Second, 3 * time.Hour},
		{24 * time.Hour, 3 * time.Hour, 2 * time.Hour},
	} {
		f := uitest.Fleet(1, 1)
		s := f.Sets[0]
		if c.window > 0 {
			s.Spec.RemovalGuard = &hubv1.RemovalGuard{Window: &metav1.Duration{Duration: c.window}}
		}
		s.Status.Removals = &hubv1.Removals{Counts: []hubv1.RemovalCount{{Time: *ago(c.began), Count: 1}}}
		for _, e := range board(t, f, "").Day.Entries {
			if began := strings.HasSuffix(e.Text, ": 1 removal began"); began != e.Time.About || began && uitest.Now.Sub(e.Time.At) != c.want {
				t.Errorf("window %s, began %s ago: %q %s ago, about %t", c.window, c.began, e.Text, uitest.Now.Sub(e.Time.At), e.Time.About)
			}
		}
		if !strings.Contains(told(board(t, f, "").Day), "1 removal began") {
			t.Error("no removal is told")
		}
	}
}
