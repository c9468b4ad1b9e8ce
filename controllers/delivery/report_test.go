// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/assembly"
	"github.com/chandler-hub/chandler/internal/fluxstate"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/status"
)

// TestPauseKeepsReady: what is paused, or suspended by somebody, stays Ready if it was, until something waits for it to go on.
func TestPauseKeepsReady(t *testing.T) {
	k := plan.Key{Kind: "HelmRelease", Namespace: "flux-system", Name: "o"}
	for name, tc := range map[string]struct {
		paused bool
		verb   plan.Verb
		was    hubv1.AddonStatus
		// hash of the object that is there, where h is wanted.
		hash string
		want metav1.ConditionStatus
		// says is the reason.
		says string
	}{
		"Pause":             {true, plan.Suspend, hubv1.AddonStatus{State: hubv1.AddonReady, AppliedGeneration: 2}, "h", metav1.ConditionTrue, hubv1.PausedReason},
		"StillPaused":       {true, plan.AwaitResume, hubv1.AddonStatus{State: hubv1.AddonPaused, Before: hubv1.AddonReady, AppliedGeneration: 3}, "h", metav1.ConditionTrue, hubv1.PausedReason},
		"ChangedMeanwhile":  {true, plan.AwaitResume, hubv1.AddonStatus{State: hubv1.AddonPaused, Before: hubv1.AddonReady, AppliedGeneration: 3}, "g", metav1.ConditionFalse, hubv1.PausedReason},
		"OnItsWay":          {true, plan.Suspend, hubv1.AddonStatus{State: hubv1.AddonProgressing, AppliedGeneration: 2}, "h", metav1.ConditionFalse, hubv1.PausedReason},
		"OnItsWayUntold":    {true, plan.Suspend, hubv1.AddonStatus{State: hubv1.AddonReady, AppliedGeneration: 1}, "h", metav1.ConditionFalse, hubv1.PausedReason},
		"FluxSuspend":       {false, plan.Update, hubv1.AddonStatus{State: hubv1.AddonReady, AppliedGeneration: 2}, "h", metav1.ConditionTrue, hubv1.SuspendedReason},
		"FluxSuspendLater":  {false, plan.Keep, hubv1.AddonStatus{State: hubv1.AddonSuspended, Before: hubv1.AddonReady, AppliedGeneration: 3}, "h", metav1.ConditionTrue, hubv1.SuspendedReason},
		"SuspendedChanged":  {false, plan.Update, hubv1.AddonStatus{State: hubv1.AddonSuspended, Before: hubv1.AddonReady, AppliedGeneration: 3}, "g", metav1.ConditionFalse, hubv1.SuspendedReason},
		"SuspendedNotReady": {false, plan.Update, hubv1.AddonStatus{State: hubv1.AddonFailed, AppliedGeneration: 2}, "h", metav1.ConditionFalse, hubv1.SuspendedReason},
	} {
		t.Run(name, func(t *testing.T) {
			reg := &hubv1.ClusterRegistration{}
			status.Set(reg, hubv1.ReachableCondition, metav1.ConditionTrue, hubv1.ProbeSucceededReason, "", moment)
			reg.Status.ClusterUID, reg.Status.Credential = "u", &hubv1.CredentialStatus{Fingerprint: "f"}
			if tc.paused {
				status.Set(reg, hubv1.SuspendedCondition, metav1.ConditionTrue, hubv1.PausedReason, "maintenance", moment)
			}
			tc.was.Name, tc.was.Kind, tc.was.Object = "a", "HelmRelease", "o"
			there := &object{delivery: "d", state: fluxstate.State{Suspended: true, Generation: 3}, Observed: plan.Observed{
				Key: k, Addon: "a", Suspended: true, Held: tc.paused, Generation: 3, Applied: 2, Hash: tc.hash,
			}}
			before := &hubv1.AddonDelivery{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "d"}}
			before.Spec.RevisionName, before.Status.ReadyRevision = "base-1", "base-1"
			before.Status.Addons = []hubv1.AddonStatus{tc.was}
			d := &delivery{AddonDelivery: before.DeepCopy(), before: before, result: &render.Result{}}
			d.Wanted = []assembly.Wanted{{Object: render.Object{Addon: "a", Kind: "HelmRelease", Name: "o", Namespace: "flux-system", Hash: "h"}}}
			c := &cluster{now: moment, registration: reg, objects: map[plan.Key]*object{k: there}, deliveries: []*delivery{d}}
			(&Reconciler{}).report(c, d, []plan.Step{{Key: k, Addon: "a", Verb: tc.verb}}, map[plan.Key]outcome{k: {applied: 3}})
			ready := status.Find(d, hubv1.ReadyCondition)
			if ready.Status != tc.want || ready.Reason != tc.says {
				t.Errorf("Ready=%s, %s: %s; want %s, %s; %+v", ready.Status, ready.Reason, ready.Message, tc.want, tc.says, d.Status.Addons)
			}
			if n := d.Status.AddonCounts.Ready; (n == 1) != (tc.want == metav1.ConditionTrue) {
				t.Errorf("READY %s, ADDONS %s", ready.Status, d.Status.AddonCounts.Summary)
			}
		})
	}
}
