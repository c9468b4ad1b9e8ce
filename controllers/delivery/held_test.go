// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/status"
)

// TestHeldIsTold: a cluster on which the removal guard of a set holds something says so, with the command that approves it, for as long.
func TestHeldIsTold(t *testing.T) {
	m := newServedRoom(t, addonsOf(roomSet, "1", releaseAddon("app"))...)
	m.settle()
	told := func() string {
		c := status.Find(m.delivery(roomCluster, roomSet), hubv1.RemovalsHeldCondition)
		if c == nil {
			return ""
		}
		return c.Message
	}
	set := func(change func(*hubv1.AddonSet)) {
		edit(m, "flux-system", roomSet, &hubv1.AddonSet{}, change)
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
	if c := status.Find(m.delivery(roomCluster, roomSet), hubv1.ReadyCondition); !strings.Contains(c.Message, "see condition RemovalsHeld") {
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
