// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/probe"
	"github.com/chandler-hub/chandler/internal/status"
)

// TestLedElsewhere: a kubeconfig that leads elsewhere says nothing of the cluster until it is answered. One that is merely renewed is for the
// cluster that answered before.
func TestLedElsewhere(t *testing.T) {
	old := candidateFor(t, "https://192.0.2.1:6443", "old")
	refused := probe.Result{Err: &probe.Failure{Reason: probe.ReasonConnectionRefused}, Failures: 1}
	for name, tc := range map[string]struct {
		was    metav1.ConditionStatus
		next   candidate
		result probe.Result
		fresh  bool
		want   metav1.ConditionStatus
	}{
		"Renewed":                  {metav1.ConditionTrue, candidateFor(t, "https://192.0.2.1:6443", "new"), probe.Result{}, false, metav1.ConditionTrue},
		"Elsewhere":                {metav1.ConditionTrue, candidateFor(t, "https://192.0.2.2:6443", "old"), probe.Result{}, false, metav1.ConditionUnknown},
		"ElsewhereAndRefused":      {metav1.ConditionTrue, candidateFor(t, "https://192.0.2.2:6443", "old"), refused, true, metav1.ConditionFalse},
		"ElsewhereAfterItWasDown":  {metav1.ConditionFalse, candidateFor(t, "https://192.0.2.2:6443", "old"), probe.Result{}, false, metav1.ConditionFalse},
		"RenewedAndRefusedOnce":    {metav1.ConditionTrue, candidateFor(t, "https://192.0.2.1:6443", "new"), refused, true, metav1.ConditionTrue},
		"ElsewhereAndItAnswers":    {metav1.ConditionTrue, candidateFor(t, "https://192.0.2.2:6443", "old"), probe.Result{ClusterUID: "u"}, true, metav1.ConditionTrue},
		"ElsewhereAndStillUnknown": {metav1.ConditionUnknown, candidateFor(t, "https://192.0.2.2:6443", "old"), refused, true, metav1.ConditionUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			r, reg := &Reconciler{Clock: clock.RealClock{}, Pool: probe.NewPool(probe.PoolOptions{})}, &hubv1.ClusterRegistration{}
			r.publish(reg, resolution{secret: "one"}, old, true)
			status.Set(reg, hubv1.ReachableCondition, tc.was, "Before", "", time.Now())
			r.reachable(reg, resolution{candidates: []candidate{tc.next}}, tc.next, tc.result, tc.fresh)
			if got := status.Find(reg, hubv1.ReachableCondition).Status; got != tc.want {
				t.Errorf("Reachable=%s, want %s", got, tc.want)
			}
		})
	}
}
