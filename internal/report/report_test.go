// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/report"
	"github.com/chandler-hub/chandler/internal/status"
)

// TestPauseKeepsReady: what is paused, or suspended by somebody, stays Ready if it was, until a change waits for it to be resumed.
func TestPauseKeepsReady(t *testing.T) {
	for name, tc := range map[string]struct {
		paused bool
		verb   plan.Verb
		before hubv1.AddonStatus
		// hash of the object, where h is wanted.
		hash string
		want status.Phase
		says string
	}{
		"Pause":             {true, plan.Suspend, hubv1.AddonStatus{State: hubv1.AddonReady, AppliedGeneration: 2}, "h", status.Done, hubv1.PausedReason},
		"StillPaused":       {true, plan.AwaitResume, hubv1.AddonStatus{State: hubv1.AddonPaused, Before: hubv1.AddonReady, AppliedGeneration: 3}, "h", status.Done, hubv1.PausedReason},
		"ChangedMeanwhile":  {true, plan.AwaitResume, hubv1.AddonStatus{State: hubv1.AddonPaused, Before: hubv1.AddonReady, AppliedGeneration: 3}, "g", status.Working, hubv1.PausedReason},
		"OnItsWay":          {true, plan.Suspend, hubv1.AddonStatus{State: hubv1.AddonProgressing, AppliedGeneration: 2}, "h", status.Working, hubv1.PausedReason},
		"OnItsWayUntold":    {true, plan.Suspend, hubv1.AddonStatus{State: hubv1.AddonReady, AppliedGeneration: 1}, "h", status.Working, hubv1.PausedReason},
		"FluxSuspend":       {false, plan.Update, hubv1.AddonStatus{State: hubv1.AddonReady, AppliedGeneration: 2}, "h", status.Done, hubv1.SuspendedReason},
		"FluxSuspendLater":  {false, plan.Keep, hubv1.AddonStatus{State: hubv1.AddonSuspended, Before: hubv1.AddonReady, AppliedGeneration: 3}, "h", status.Done, hubv1.SuspendedReason},
		"SuspendedChanged":  {false, plan.Update, hubv1.AddonStatus{State: hubv1.AddonSuspended, Before: hubv1.AddonReady, AppliedGeneration: 3}, "g", status.Working, hubv1.SuspendedReason},
		"SuspendedNotReady": {false, plan.Update, hubv1.AddonStatus{State: hubv1.AddonFailed, AppliedGeneration: 2}, "h", status.Working, hubv1.SuspendedReason},
	} {
		t.Run(name, func(t *testing.T) {
			tc.before.Name, tc.before.Kind, tc.before.Object = "a", addonKey.Kind, addonKey.Name
			c, d := clusterOf(objectOf(func(o *report.Object) {
				o.Suspended, o.State.Suspended, o.Held, o.Applied, o.Hash = true, true, tc.paused, 2, tc.hash
			})), deliveryOf(tc.before)
			if tc.paused {
				suspend(c, hubv1.PausedReason)
			}
			c.Steps = []report.Step{stepOf(tc.verb, report.Outcome{Applied: 3})}
			d.Status.ReadyRevision = d.Spec.RevisionName
			got, ready := report.Status(c, d)
			if ready.Phase != tc.want || ready.Reason != tc.says {
				t.Errorf("%+v, want phase %d, %s; %+v", ready, tc.want, tc.says, got.Addons)
			}
			if n := got.AddonCounts.Ready; (n == 1) != (tc.want == status.Done) {
				t.Errorf("%+v, and ADDONS %s", ready, got.AddonCounts.Summary)
			}
		})
	}
}

// TestRevisions: which revision the status says that the cluster has, and has been Ready with.
func TestRevisions(t *testing.T) {
	step := func(verb plan.Verb, applied int64) []report.Step {
		return []report.Step{stepOf(verb, report.Outcome{Applied: applied})}
	}
	frozen := func(d *report.Delivery) { d.Frozen, d.Stays = true, map[string]bool{"a": true} }
	for name, tc := range map[string]struct {
		steps    []report.Step
		object   func(*report.Object)
		delivery func(*report.Delivery)
		// observed and ready are whether the status names the delivery's revision as the one that was written, and that was Ready.
		observed, ready bool
	}{
		"Ready":         {steps: step(plan.Keep, 3), observed: true, ready: true},
		"Written":       {steps: step(plan.Update, 4), observed: true},
		"NotWritten":    {steps: step(plan.Create, 0)},
		"WaitsToChange": {steps: step(plan.AwaitDependency, 3), object: func(o *report.Object) { o.Hash = "g" }},
		"ReinstallHeld": {steps: []report.Step{func() report.Step {
			s := stepOf(plan.Ask, report.Outcome{Applied: 3})
			s.Reinstall = &plan.Place{Namespace: "new"}
			return s
		}()}},
		"RemovalHeld":    {steps: step(plan.Ask, 3), observed: true},
		"Suspended":      {steps: step(plan.Suspend, 3), observed: true},
		"SuspendedOlder": {steps: step(plan.Suspend, 3), object: func(o *report.Object) { o.Hash = "g" }},
		"DoesNotRender": {delivery: func(d *report.Delivery) {
			d.Result.Failed = map[string]render.Errors{"a": nil}
		}},
		"Unrendered":   {delivery: func(d *report.Delivery) { d.Result = nil }},
		"Nothing":      {object: func(o *report.Object) { o.Delivery = other.Name }, observed: true, ready: true},
		"Frozen":       {delivery: frozen, ready: true},
		"FrozenBefore": {delivery: func(d *report.Delivery) { frozen(d); d.Status.ObservedRevision = "base-0" }},
		"Leaving":      {delivery: func(d *report.Delivery) { d.Leaving = true }, object: func(o *report.Object) { o.Delivery = other.Name }},
		// The object is the delivery's, another one wants it, and waits to write it.
		"HandsOn": {steps: []report.Step{func() report.Step {
			s := stepOf(plan.AwaitDependency, report.Outcome{Applied: 3})
			s.By = other
			return s
		}()}, ready: true},
	} {
		t.Run(name, func(t *testing.T) {
			c, d := clusterOf(objectOf(tc.object)), deliveryOf()
			c.Steps = tc.steps
			if len(tc.steps) > 0 && tc.steps[0].Verb == plan.Suspend {
				suspend(c, hubv1.PausedReason)
			}
			if tc.delivery != nil {
				tc.delivery(d)
			}
			got, ready := report.Status(c, d)
			if got.ObservedRevision == d.Spec.RevisionName != tc.observed || got.ReadyRevision == d.Spec.RevisionName != tc.ready {
				t.Errorf("observed %q, ready %q, %+v", got.ObservedRevision, got.ReadyRevision, ready)
			}
			if tc.ready != (got.ReadyTime != nil && got.ReadyTime.Time.Equal(moment)) {
				t.Errorf("ready at %v", got.ReadyTime)
			}
		})
	}
}

// TestHandsOnAsItLeaves: a delivery that is withdrawn, and stays for what another one has now and cannot write yet, says so.
func TestHandsOnAsItLeaves(t *testing.T) {
	for name, tc := range map[string]struct {
		verb plan.Verb
		want string
	}{
		"Waits":   {plan.AwaitCluster, "being withdrawn, a stays until AddonDelivery " + other.Name + " goes on with it (why)"},
		"Written": {plan.Update, "being withdrawn"},
	} {
		c, d := clusterOf(objectOf(nil)), deliveryOf()
		s := stepOf(tc.verb, report.Outcome{Applied: 3})
		s.By, d.Leaving = other, true
		c.Steps = []report.Step{s}
		if _, ready := report.Status(c, d); ready.Message != tc.want {
			t.Errorf("%s: %q, want %q", name, ready.Message, tc.want)
		}
	}
}

// TestSince: an add-on keeps the time of its state while the state is the same. A removal that is held, and then goes on, is one state.
func TestSince(t *testing.T) {
	earlier := metav1.NewTime(moment.Add(-time.Hour))
	for name, tc := range map[string]struct {
		before hubv1.AddonStatus
		verb   plan.Verb
		kept   bool
	}{
		"New":                   {verb: plan.Keep},
		"StillReady":            {hubv1.AddonStatus{State: hubv1.AddonReady, AppliedGeneration: 3}, plan.Keep, true},
		"NowReady":              {hubv1.AddonStatus{State: hubv1.AddonProgressing}, plan.Keep, false},
		"StillLeaves":           {hubv1.AddonStatus{State: hubv1.AddonRemoving}, plan.Uninstall, true},
		"HeldThenGoes":          {hubv1.AddonStatus{State: hubv1.AddonHeld, Reason: hubv1.DroppedReason}, plan.Uninstall, true},
		"ReinstallHeldThenGoes": {hubv1.AddonStatus{State: hubv1.AddonHeld, Reason: hubv1.ReinstallReason}, plan.Uninstall, false},
	} {
		tc.before.Name, tc.before.Since = "a", &earlier
		c, d := clusterOf(objectOf(nil)), deliveryOf(tc.before)
		c.Steps = []report.Step{stepOf(tc.verb, report.Outcome{Applied: 3})}
		got, _ := report.Status(c, d)
		if since := got.Addons[0].Since.Time; since.Equal(earlier.Time) != tc.kept || !tc.kept && !since.Equal(moment) {
			t.Errorf("%s: since %s", name, since)
		}
	}
}

// TestOneEntryEach: an add-on that changes its form has two steps, and one entry: what still has to go is the news. The entries are
// sorted by name.
func TestOneEntryEach(t *testing.T) {
	old := objectOf(func(o *report.Object) { o.Key = plan.Key{Kind: "Kustomization", Namespace: "flux-system", Name: "o"} })
	goes := stepOf(plan.Uninstall, report.Outcome{})
	goes.Key, goes.Wanted = old.Key, nil
	c, d := clusterOf(old), deliveryOf()
	c.Steps = []report.Step{goes, stepOf(plan.AwaitRemoval, report.Outcome{})}
	d.Result.Excluded = map[string]string{"z": "not here", "0": "not here"}
	d.NotOwned = map[string]string{"b": "somebody's"}
	d.Lost, d.HandedOver = map[string]string{"c": "other", "e": "other"}, map[string]bool{"e": true}
	got, _ := report.Status(c, d)
	var all []string
	for _, a := range got.Addons {
		all = append(all, a.Name+" "+string(a.State)+" "+a.Reason)
	}
	want := []string{"0 Excluded ", "a Removing ", "b NotOwned ", "c LostTo ", "e LostTo HandOver", "z Excluded "}
	if len(all) != len(want) {
		t.Fatalf("got %q", all)
	}
	for i := range want {
		if all[i] != want[i] {
			t.Errorf("got %q, want %q", all[i], want[i])
		}
	}
}
