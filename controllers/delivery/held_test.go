// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/status"
)

// TestHeldIsTold: a cluster on which the removal guard of a set holds something says so, with the command that approves it, for as long.
func TestHeldIsTold(t *testing.T) {
	m := newServedFixture(t, addonsOf(testSet, "1", releaseAddon("app"))...)
	m.settle()
	told := func() string {
		c := status.Find(m.delivery(testCluster, testSet), hubv1.RemovalsHeldCondition)
		if c == nil {
			return ""
		}
		return c.Message
	}
	set := func(change func(*hubv1.AddonSet)) {
		edit(m, "flux-system", testSet, &hubv1.AddonSet{}, change)
		m.settle()
	}
	set(func(s *hubv1.AddonSet) { s.Status.HeldRemovals = &hubv1.HeldRemovals{Count: 4, Hash: "0123abcd"} })
	if got := told(); got != "" {
		t.Errorf("nothing is held here, and it says %s", got)
	}
	set(func(s *hubv1.AddonSet) {
		s.Spec.SelectAll, s.Spec.ClusterSelector = false, &metav1.LabelSelector{MatchLabels: map[string]string{"env": "none"}}
	})
	want := "kubectl annotate addonset -n flux-system base --overwrite chandler.dev/approve-removal=$(kubectl get addonset -n flux-system base -o jsonpath='{.status.heldRemovals.hash}')"
	if got := told(); !strings.Contains(got, want) {
		t.Errorf("it says %q, want %s", got, want)
	}
	if c := status.Find(m.delivery(testCluster, testSet), hubv1.ReadyCondition); !strings.Contains(c.Message, "see condition RemovalsHeld") {
		t.Errorf("Ready says %s", c.Message)
	}
	before := m.writes
	set(func(s *hubv1.AddonSet) { s.Status.HeldRemovals = &hubv1.HeldRemovals{Count: 5, Hash: "4567abcd"} })
	if m.writes != before {
		t.Errorf("%d writes because another cluster joins", m.writes-before)
	}
	set(func(s *hubv1.AddonSet) {
		s.Spec.SelectAll, s.Spec.ClusterSelector, s.Status.HeldRemovals = true, nil, nil
	})
	if got := told(); got != "" {
		t.Errorf("nothing is held any more, and it says %s", got)
	}
}

// TestDeselectedIsTold: a delivery of a set that does not select the cluster any more says until when that can be taken back. The removal
// guard holds nothing here before.
func TestDeselectedIsTold(t *testing.T) {
	m := newServedFixture(t, addonsOf(testSet, "1", releaseAddon("app"))...)
	m.settle()
	before := status.Find(m.delivery(testCluster, testSet), hubv1.ReadyCondition).Message
	after := metav1.NewTime(m.clock.Now().Add(5 * time.Minute).Truncate(time.Second))
	edit(m, "flux-system", testSet, &hubv1.AddonSet{}, func(s *hubv1.AddonSet) {
		s.Spec.SelectAll, s.Spec.ClusterSelector = false, &metav1.LabelSelector{MatchLabels: map[string]string{"env": "none"}}
		s.Status.HeldRemovals = &hubv1.HeldRemovals{Count: 4, Hash: "0123abcd"}
	})
	edit(m, "flux-system", m.delivery(testCluster, testSet).Name, &hubv1.AddonDelivery{}, func(d *hubv1.AddonDelivery) { d.Spec.WithdrawAfter = &after })
	m.settle()
	d := m.delivery(testCluster, testSet)
	ready := status.Find(d, hubv1.ReadyCondition)
	want := before + "; AddonSet flux-system/base does not select the cluster any more; it leaves after " + after.UTC().Format(time.RFC3339) + ", unless it is selected again"
	if ready.Message != want || ready.Status != metav1.ConditionTrue {
		t.Errorf("it says %s %q, want %q", ready.Status, ready.Message, want)
	}
	if status.Find(d, hubv1.RemovalsHeldCondition) != nil {
		t.Error("it says that its removal is held, and nobody has asked for that")
	}
	m.clock.SetTime(m.clock.Now().Add(6 * time.Minute))
	m.settle()
	d = m.delivery(testCluster, testSet)
	want = before + "; AddonSet flux-system/base does not select the cluster any more; a removal is held: see condition RemovalsHeld"
	if got := status.Find(d, hubv1.ReadyCondition).Message; got != want {
		t.Errorf("after that time it says %q, want %q", got, want)
	}
	edit(m, "flux-system", d.Name, &hubv1.AddonDelivery{}, func(d *hubv1.AddonDelivery) { d.Spec.WithdrawAfter = nil })
	edit(m, "flux-system", testSet, &hubv1.AddonSet{}, func(s *hubv1.AddonSet) { s.Spec.SelectAll, s.Spec.ClusterSelector = true, nil })
	m.settle()
	if got := status.Find(m.delivery(testCluster, testSet), hubv1.ReadyCondition).Message; got != before {
		t.Errorf("it is selected again, and says %q, want %q", got, before)
	}
}
