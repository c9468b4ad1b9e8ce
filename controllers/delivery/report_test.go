// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/assembly"
	"github.com/chandler-hub/chandler/internal/fluxstate"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/status"
)

// TestOutcome: what READY, ADDONS and REASON of a delivery say of the states of its add-ons.
func TestOutcome(t *testing.T) {
	is := func(name string, state hubv1.AddonState, reason, message string) hubv1.AddonStatus {
		return hubv1.AddonStatus{Name: name, State: state, Reason: reason, Message: message}
	}
	was := func(name string, state hubv1.AddonState) hubv1.AddonStatus {
		return hubv1.AddonStatus{Name: name, State: state, Before: hubv1.AddonReady}
	}
	ready := func(name string) hubv1.AddonStatus { return is(name, hubv1.AddonReady, "", "") }
	lost := is("b", hubv1.AddonLostTo, "", `AddonSet flux-system/base delivers add-on "b": it was there first`)
	for name, tc := range map[string]struct {
		addons []hubv1.AddonStatus
		// suspended is why the cluster's Flux objects are.
		suspended string
		// older is true if it has been Ready on an older revision only, frozen if nothing comes out of this one.
		older, frozen bool
		want          status.Phase
		reason, says  string
		counts        string
	}{
		"One":              {addons: []hubv1.AddonStatus{ready("a")}, want: status.Done, reason: "AddonsReady", says: "the add-on is Ready", counts: "1/1"},
		"Two":              {addons: []hubv1.AddonStatus{ready("a"), ready("b")}, want: status.Done, reason: "AddonsReady", says: "all 2 add-ons are Ready", counts: "2/2"},
		"None":             {want: status.Done, reason: "AddonsReady", says: "no add-on of this set is for this cluster", counts: "0/0"},
		"Excluded":         {addons: []hubv1.AddonStatus{is("a", hubv1.AddonExcluded, "", "")}, want: status.Done, reason: "AddonsReady", says: "no add-on of this set", counts: "0/0"},
		"Failed":           {addons: []hubv1.AddonStatus{ready("a"), is("b", hubv1.AddonFailed, "UpgradeFailed", "UpgradeFailed: timeout")}, want: status.Broken, reason: "AddonsFailed", says: "b: UpgradeFailed: timeout", counts: "1/2"},
		"LostAll":          {addons: []hubv1.AddonStatus{lost}, want: status.Broken, reason: "AddonsLost", says: "nothing of this set is delivered here; delivered by other sets: b (AddonSet flux-system/base delivers", counts: "0/1"},
		"LostAllButExcl":   {addons: []hubv1.AddonStatus{is("a", hubv1.AddonExcluded, "", ""), lost}, want: status.Broken, reason: "AddonsLost", says: "nothing of this set", counts: "0/1"},
		"LostSome":         {addons: []hubv1.AddonStatus{ready("a"), lost}, want: status.Done, reason: "AddonsLost", says: "1 of 2 add-ons are Ready; delivered by other sets: b (AddonSet flux-system/base", counts: "1/2"},
		"HandOver":         {addons: []hubv1.AddonStatus{is("b", hubv1.AddonLostTo, "HandOver", "AddonSet x/y delivers it")}, want: status.Working, reason: "Progressing", says: "b waits to take over (AddonSet x/y delivers it)", counts: "0/1"},
		"HandOverOfOne":    {addons: []hubv1.AddonStatus{ready("a"), is("b", hubv1.AddonLostTo, "HandOver", "y")}, want: status.Working, reason: "Progressing", says: "b waits to take over", counts: "1/2"},
		"Paused":           {addons: []hubv1.AddonStatus{was("a", hubv1.AddonPaused), was("b", hubv1.AddonPaused)}, suspended: "Paused", want: status.Done, reason: "Paused", says: "maintenance; what runs stays as it is", counts: "2/2"},
		"PausedBeforeIt":   {addons: []hubv1.AddonStatus{was("a", hubv1.AddonPaused), is("b", hubv1.AddonPaused, "", "")}, suspended: "Paused", want: status.Working, reason: "Paused", says: "maintenance", counts: "1/2"},
		"PausedAndOutdate": {addons: []hubv1.AddonStatus{was("a", hubv1.AddonPaused)}, suspended: "Paused", older: true, want: status.Working, reason: "Paused", says: "maintenance", counts: "1/1"},
		"PausedRemoving":   {addons: []hubv1.AddonStatus{was("a", hubv1.AddonPaused), is("b", hubv1.AddonRemoving, "", "")}, suspended: "Paused", want: status.Working, reason: "Paused", says: "maintenance", counts: "1/1"},
		"PausedAndFrozen":  {addons: []hubv1.AddonStatus{was("a", hubv1.AddonPaused)}, suspended: "Paused", frozen: true, want: status.Done, reason: "Paused", says: "maintenance", counts: "1/1"},
		"PausedAndLost":    {addons: []hubv1.AddonStatus{was("a", hubv1.AddonPaused), lost}, suspended: "Paused", want: status.Done, reason: "Paused", says: "maintenance", counts: "1/2"},
		"Asleep":           {addons: []hubv1.AddonStatus{was("a", hubv1.AddonPaused)}, suspended: "ClusterSleeping", want: status.Done, reason: "ClusterSleeping", says: "maintenance", counts: "1/1"},
		"Silent":           {addons: []hubv1.AddonStatus{is("a", hubv1.AddonUnreachable, "", "")}, suspended: "ClusterUnreachable", want: status.Working, reason: "ClusterUnreachable", says: "maintenance", counts: "0/1"},
		"Suspended":        {addons: []hubv1.AddonStatus{was("a", hubv1.AddonSuspended), ready("b")}, want: status.Done, reason: "Suspended", says: "1 add-on suspended: a; `flux resume` lets it go on", counts: "2/2"},
		"SuspendedEarly":   {addons: []hubv1.AddonStatus{is("a", hubv1.AddonSuspended, "", ""), ready("b")}, want: status.Working, reason: "Suspended", says: "1 add-on suspended: a", counts: "1/2"},
		"SuspendedAndNot":  {addons: []hubv1.AddonStatus{was("a", hubv1.AddonSuspended), is("b", hubv1.AddonProgressing, "", "")}, want: status.Working, reason: "Progressing", says: "b is Progressing", counts: "1/2"},
	} {
		t.Run(name, func(t *testing.T) {
			reg := &hubv1.ClusterRegistration{}
			status.Set(reg, hubv1.ReachableCondition, metav1.ConditionTrue, hubv1.ProbeSucceededReason, "", moment)
			reg.Status.ClusterUID, reg.Status.Credential = "u", &hubv1.CredentialStatus{Fingerprint: "f"}
			if tc.suspended != "" {
				status.Set(reg, hubv1.SuspendedCondition, metav1.ConditionTrue, tc.suspended, "maintenance", moment)
			}
			d := &delivery{AddonDelivery: &hubv1.AddonDelivery{}, result: &render.Result{}}
			d.Spec.RevisionName, d.Status.ReadyRevision = "base-2", "base-2"
			if tc.older {
				d.Status.ReadyRevision = "base-1"
			}
			if tc.frozen {
				d.result, d.reason, d.frozen = nil, hubv1.FrozenReason, true
			}
			d.Status.Addons, d.Status.AddonCounts = tc.addons, count(tc.addons)
			got := (&Reconciler{}).summary(&cluster{registration: reg}, d)
			if got.Phase != tc.want || got.Reason != tc.reason || !strings.HasPrefix(got.Message, tc.says) && !strings.Contains(got.Message, tc.says) {
				t.Errorf("got %+v, want phase %d, %s: %s", got, tc.want, tc.reason, tc.says)
			}
			if d.Status.AddonCounts.Summary != tc.counts {
				t.Errorf("ADDONS %s, want %s", d.Status.AddonCounts.Summary, tc.counts)
			}
		})
	}
}

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
