// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/fluxstate"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/report"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/internal/teardown"
)

// TestStaying: the add-ons of a delivery that no step is about, and what is said of them.
func TestStaying(t *testing.T) {
	unrendered := func(d *report.Delivery) { d.Result = nil }
	frozen := func(d *report.Delivery) { d.Frozen, d.Stays = true, map[string]bool{"a": true} }
	failed := func(d *report.Delivery) {
		d.Result.Failed = map[string]render.Errors{"a": {compile.Error{Addon: "a", Path: "values", Message: "no such key"}}}
	}
	both := func(changes ...func(*report.Delivery)) func(*report.Delivery) {
		return func(d *report.Delivery) {
			for _, change := range changes {
				change(d)
			}
		}
	}
	excluded := func(d *report.Delivery) {
		d.Result.Excluded = map[string]string{"a": "the cluster's override leaves it out"}
	}
	awaited := func(o *report.Object) { o.Awaited = "add-on b cannot be delivered" }
	ready := hubv1.AddonStatus{State: hubv1.AddonReady, AppliedGeneration: 3, Version: "1.0.0"}
	for name, tc := range map[string]struct {
		delivery  func(*report.Delivery)
		before    hubv1.AddonStatus
		none      bool
		object    func(*report.Object)
		suspended string
		// want has no Name, Kind and Object; nil for no entry.
		want *hubv1.AddonStatus
	}{
		"Unrendered": {delivery: unrendered, want: &ready},
		"Frozen":     {delivery: frozen, want: &ready},
		"FrozenAndExcluded": {delivery: both(func(d *report.Delivery) { d.Frozen = true }, excluded), want: &hubv1.AddonStatus{
			State: hubv1.AddonReady, AppliedGeneration: 3, Version: "1.0.0",
			Message: "the cluster's override leaves it out; what is there stays until the rollout comes to this cluster",
		}},
		"FrozenByAnotherVersion":  {delivery: frozen, object: func(o *report.Object) { o.Applied = 0 }, want: &ready},
		"UnrenderedAndUnrecorded": {delivery: unrendered, object: func(o *report.Object) { o.Applied = 0 }, want: &hubv1.AddonStatus{State: hubv1.AddonReady, Version: "1.0.0"}},
		"Awaited": {object: awaited, want: &hubv1.AddonStatus{
			State: hubv1.AddonReady, AppliedGeneration: 3, Version: "1.0.0", Message: "add-on b cannot be delivered",
		}},
		"Paused": {delivery: unrendered, suspended: hubv1.PausedReason, object: func(o *report.Object) { o.Held, o.State.Suspended = true, true },
			before: hubv1.AddonStatus{State: hubv1.AddonReady, AppliedGeneration: 3},
			want:   &hubv1.AddonStatus{State: hubv1.AddonPaused, Before: hubv1.AddonReady, AppliedGeneration: 3, Version: "1.0.0", Message: "maintenance"}},
		"FluxFails": {
			delivery: unrendered, object: func(o *report.Object) {
				o.State.Ready, o.State.Reason, o.State.Message = metav1.ConditionFalse, "InstallFailed", "no"
			},
			want: &hubv1.AddonStatus{State: hubv1.AddonFailed, Reason: "InstallFailed", AppliedGeneration: 3, LastAttempt: hubv1.AttemptFailed, Version: "1.0.0", Message: `InstallFailed: Flux says, perhaps in the cluster's words: "no"`},
		},
		// Also while the origin is missing, it is no fault of a revision that Flux does not reach the cluster.
		"FluxDoesNotReachTheCluster": {
			delivery: unrendered, object: func(o *report.Object) {
				o.State.Ready, o.State.Reason, o.State.Message = metav1.ConditionFalse, "StateError", "no"
			},
			want: &hubv1.AddonStatus{State: hubv1.AddonFailed, Reason: "StateError", AppliedGeneration: 3, Version: "1.0.0", LastAttempt: hubv1.AttemptUnreached,
				Message: `StateError: Flux says, perhaps in the cluster's words: "no"`},
		},
		"FluxTriesAgainToReachTheCluster": {
			delivery: unrendered, object: func(o *report.Object) { o.State.Ready = metav1.ConditionUnknown },
			before: hubv1.AddonStatus{State: hubv1.AddonFailed, Reason: "StateError", AppliedGeneration: 3, Message: `StateError: Flux says, perhaps in the cluster's words: "no"`, LastAttempt: hubv1.AttemptUnreached},
			want:   &hubv1.AddonStatus{State: hubv1.AddonFailed, Reason: "StateError", AppliedGeneration: 3, Version: "1.0.0", Message: `StateError: Flux says, perhaps in the cluster's words: "no"`, LastAttempt: hubv1.AttemptUnreached},
		},
		"DoesNotRenderAndFluxDoesNotReachTheCluster": {
			delivery: failed, object: func(o *report.Object) {
				o.State.Ready, o.State.Reason, o.State.Message = metav1.ConditionFalse, "StateError", "no"
			},
			want: &hubv1.AddonStatus{State: hubv1.AddonFailed, Reason: hubv1.RenderFailedReason, AppliedGeneration: 3, Version: "1.0.0", Message: "values: no such key"},
		},
		"SourceIsMissing": {
			delivery: frozen, object: func(o *report.Object) {
				o.State.Ready, o.State.Reason, o.State.Message = metav1.ConditionFalse, "ArtifactFailed", `HelmChart.source.toolkit.fluxcd.io "web" not found`
				o.Lacks = true
			},
			want: &hubv1.AddonStatus{State: hubv1.AddonProgressing, Reason: hubv1.SourceNotFoundReason, AppliedGeneration: 3, Version: "1.0.0",
				Message: `Flux waits for HelmChart "web", which does not exist, and which the hub does not make: make it, or have the AddonSet ` +
					`refer to one that exists`},
		},
		"FluxTriesAgainAfterARestart": {
			delivery: frozen, object: func(o *report.Object) { o.State.Ready = metav1.ConditionUnknown },
			before: hubv1.AddonStatus{State: hubv1.AddonFailed, Reason: "HealthCheckFailed", AppliedGeneration: 3, LastAttempt: hubv1.AttemptFailed, Message: `HealthCheckFailed: Flux says, perhaps in the cluster's words: "no"`},
			want:   &hubv1.AddonStatus{State: hubv1.AddonFailed, Reason: "HealthCheckFailed", AppliedGeneration: 3, LastAttempt: hubv1.AttemptFailed, Version: "1.0.0", Message: `HealthCheckFailed: Flux says, perhaps in the cluster's words: "no"`},
		},
		"DoesNotRender": {delivery: failed, want: &hubv1.AddonStatus{
			State: hubv1.AddonFailed, Reason: hubv1.RenderFailedReason, AppliedGeneration: 3, Version: "1.0.0", Message: "values: no such key",
		}},
		"DoesNotRenderAndIsFrozen": {delivery: both(failed, frozen), want: &ready},
		"DoesNotRenderAndIsLost": {
			delivery: both(failed, func(d *report.Delivery) { d.Lost = map[string]string{"a": "other"} }), none: true,
			want: &hubv1.AddonStatus{State: hubv1.AddonLostTo, Message: "other"},
		},
		"LeavesMeanwhile": {
			delivery: both(unrendered, func(d *report.Delivery) { d.Failed = true }), before: hubv1.AddonStatus{State: hubv1.AddonRemoving, Message: "before"},
			want: &hubv1.AddonStatus{State: hubv1.AddonRemoving, Message: "before"},
		},
		"Abandoned": {delivery: both(unrendered, func(d *report.Delivery) { d.Abandoned = true }), want: &hubv1.AddonStatus{
			State: hubv1.AddonOrphaned, Version: "1.0.0",
			Message: "its AddonDelivery was deleted by hand while there was no set or registration to withdraw it; HelmRelease flux-system/o is left, and Flux goes on with it",
		}},
		"Withdrawn":        {delivery: both(unrendered, func(d *report.Delivery) { d.Leaving = true })},
		"AnotherDeliverys": {delivery: unrendered, object: func(o *report.Object) { o.Delivery = other.Name }},
		"Yields":           {delivery: unrendered, object: func(o *report.Object) { o.Yields = true }},
		"OfAnotherCluster": {delivery: unrendered, object: func(o *report.Object) { o.Replaced = "another cluster" }},
		"Rendered":         {},
	} {
		t.Run(name, func(t *testing.T) {
			var before []hubv1.AddonStatus
			if tc.before.State != "" {
				tc.before.Name, tc.before.Kind, tc.before.Object = "a", addonKey.Kind, addonKey.Name
				before = append(before, tc.before)
			}
			c, d := clusterOf(), deliveryOf(before...)
			if !tc.none {
				c = clusterOf(objectOf(tc.object))
			}
			if tc.delivery != nil {
				tc.delivery(d)
			}
			suspend(c, tc.suspended)
			var want []hubv1.AddonStatus
			if tc.want != nil {
				w := *tc.want
				w.Name = "a"
				if !tc.none {
					w.Kind, w.Object = addonKey.Kind, addonKey.Name
				}
				want = append(want, w)
			}
			got, _ := report.Status(c, d)
			must.Equal(t, want, got.Addons, cmpopts.IgnoreFields(hubv1.AddonStatus{}, "Since"), cmpopts.EquateEmpty())
		})
	}
}

// TestComesInstead: an add-on that waits for the object under its name to go on as another set's is not Ready with that.
func TestComesInstead(t *testing.T) {
	c, d := clusterOf(objectOf(func(o *report.Object) { o.Awaited = "add-on b cannot be delivered" })), deliveryOf()
	s := stepOf(plan.AwaitDependency, report.Outcome{})
	s.Key.Kind, s.Wanted.Kind = "Kustomization", "Kustomization"
	c.Steps = []report.Step{s}
	got, ready := report.Status(c, d)
	if len(got.Addons) != 1 || got.Addons[0].State != hubv1.AddonWaitingForDependency || got.Addons[0].Kind != "Kustomization" ||
		ready.Phase != status.Working || got.ObservedRevision != "" {
		t.Errorf("%+v, %+v", ready, got)
	}
}

// TestState: of an object that stays as it is, Flux's word counts, whoever wrote it last.
func TestState(t *testing.T) {
	rewritten := fluxstate.State{Generation: 5, Ready: metav1.ConditionTrue, ReadyGeneration: 5}
	routine := fluxstate.State{Generation: 5, Ready: metav1.ConditionUnknown, Observed: true}
	behind := fluxstate.State{Generation: 2, Ready: metav1.ConditionFalse, ReadyGeneration: 2, Reason: "BuildFailed", Observed: true}
	again := fluxstate.State{Generation: 4, Ready: metav1.ConditionUnknown}
	for name, tc := range map[string]struct {
		object fluxstate.State
		stays  bool
		want   hubv1.AddonState
	}{
		"EditedByOthers":          {object: rewritten, want: hubv1.AddonProgressing},
		"StaysAsOthersWroteIt":    {object: rewritten, stays: true, want: hubv1.AddonReady},
		"StaysInARoutine":         {object: routine, stays: true, want: hubv1.AddonReady},
		"EditedByOthersRoutinely": {object: routine, want: hubv1.AddonProgressing},
		"OlderThanTheLastWrite":   {object: behind, stays: true, want: hubv1.AddonProgressing},
		"MadeAgain":               {object: again, stays: true, want: hubv1.AddonProgressing},
	} {
		before := hubv1.AddonStatus{State: hubv1.AddonReady, AppliedGeneration: 3}
		if got, _ := report.State(before, tc.object, 3, tc.stays); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// TestDeletedWhileSuspended: Flux removes nothing for what is deleted while it is suspended, as with its namespace. The status names the
// orphan when the object is gone, whatever the hub knew of the add-on while the object went.
func TestDeletedWhileSuspended(t *testing.T) {
	step := func(verb plan.Verb, out report.Outcome) func(*report.Cluster, *report.Delivery) {
		return func(c *report.Cluster, _ *report.Delivery) { c.Steps = []report.Step{stepOf(verb, out)} }
	}
	for name, meanwhile := range map[string]func(*report.Cluster, *report.Delivery){
		"Wanted":          step(plan.AwaitRemoval, report.Outcome{}),
		"Gated":           step(plan.AwaitDependency, report.Outcome{}),
		"ClusterIsSilent": step(plan.AwaitCluster, report.Outcome{}),
		"WriteFailed":     step(plan.AwaitRemoval, report.Outcome{Err: errors.New("the namespace is being deleted")}),
		"Frozen":          func(_ *report.Cluster, d *report.Delivery) { d.Frozen, d.Stays = true, map[string]bool{"a": true} },
		"Unrendered":      func(_ *report.Cluster, d *report.Delivery) { d.Result = nil },
		"Held": func(c *report.Cluster, _ *report.Delivery) {
			s := stepOf(plan.Hold, report.Outcome{})
			s.Wanted = nil
			c.Steps = []report.Step{s}
		},
	} {
		before := hubv1.AddonStatus{
			Name: "a", Kind: addonKey.Kind, Object: addonKey.Name, State: hubv1.AddonPaused, AppliedGeneration: 3, Version: "1.0.0",
		}
		goes := objectOf(func(o *report.Object) {
			o.Held, o.Suspended, o.State.Suspended, o.Deleting, o.State.Deleting = true, true, true, true, true
		})
		c, d := clusterOf(goes), deliveryOf(before)
		suspend(c, hubv1.PausedReason)
		meanwhile(c, d)
		going, _ := report.Status(c, d)
		gone, _ := report.Status(clusterOf(), deliveryOf(going.Addons...))
		if len(gone.Addons) != 1 || gone.Addons[0].State != hubv1.AddonOrphaned || gone.Addons[0].Message != teardown.DeletedSuspended {
			t.Errorf("%s: %+v, and before that %+v", name, gone.Addons, going.Addons)
		}
	}
}

// TestGone: what becomes of entries of add-ons that have no object and no step any more.
func TestGone(t *testing.T) {
	orphan := hubv1.AddonStatus{Name: "a", Kind: addonKey.Kind, Object: addonKey.Name, State: hubv1.AddonOrphaned, Message: "told"}
	paused := hubv1.AddonStatus{Name: "a", Kind: addonKey.Kind, Object: addonKey.Name, State: hubv1.AddonPaused, AppliedGeneration: 1, Version: "1.0.0"}
	removing := paused
	removing.State = hubv1.AddonRemoving
	waits := removing
	waits.Reason = hubv1.SuspendedReason
	takenOver := orphan
	takenOver.Object, takenOver.TakenOverBy = "old", &hubv1.FluxObjectReference{Kind: addonKey.Kind, Namespace: addonKey.Namespace, Name: addonKey.Name}
	// others returns the object, which is another delivery's now.
	others := func(deleting bool) *report.Object {
		return objectOf(func(o *report.Object) { o.Delivery, o.Deleting = other.Name, deleting })
	}
	uninstalled, orphaned := "", "left"
	for name, tc := range map[string]struct {
		before hubv1.AddonStatus
		object *report.Object
		// removed is what the object left that the hub has deleted a moment ago; nil if the hub has not.
		removed *string
		failed  bool
		// says is the message of the entry; "" for no entry.
		says string
	}{
		"Orphan":                      {before: orphan, says: "told"},
		"Uninstalled":                 {before: removing},
		"DeletedBySomebodyElse":       {before: paused, says: teardown.DeletedSuspended},
		"DeletedWhileItWaitedToGo":    {before: waits, says: teardown.DeletedSuspended},
		"OrphanedAMomentAgo":          {before: paused, removed: &orphaned, says: "left"},
		"UninstalledAMomentAgo":       {before: paused, removed: &uninstalled},
		"TakenOver":                   {before: takenOver, object: objectOf(func(o *report.Object) { o.Delivery, o.State.Version = other.Name, "" }), says: "told"},
		"ItsSuccessorDoesNotCome":     {before: takenOver, says: "told"},
		"NeverHadAnObject":            {before: hubv1.AddonStatus{Name: "a", Kind: addonKey.Kind, Object: addonKey.Name, State: hubv1.AddonPaused}},
		"TakenOverAndRecorded":        {before: takenOver, object: others(false)},
		"AnotherDeliveryGoesOn":       {before: paused, object: others(false)},
		"AnotherGoesOnWithOrphan":     {before: orphan, object: others(false)},
		"OrphanIsBeingDeleted":        {before: orphan, object: others(true), says: "told"},
		"OrphanInAnOlderCache":        {before: orphan, object: others(false), removed: &orphaned, says: "told"},
		"CannotBeRead":                {before: hubv1.AddonStatus{Name: "a", State: hubv1.AddonFailed, Message: "before"}, failed: true, says: "before"},
		"OrphanedBeforeItWasReadBack": {before: paused, removed: &orphaned, object: others(false), says: "left"},
	} {
		t.Run(name, func(t *testing.T) {
			c, d := clusterOf(), deliveryOf(tc.before)
			if tc.object != nil {
				c = clusterOf(tc.object)
			}
			c.Removed = func(k plan.Key) (string, bool) {
				if tc.removed == nil || k != addonKey {
					return "", false
				}
				return *tc.removed, true
			}
			d.Failed = tc.failed
			got, _ := report.Status(c, d)
			switch {
			case tc.says == "" && len(got.Addons) > 0:
				t.Errorf("%+v", got.Addons)
			case name == "TakenOver" != (len(got.Addons) == 1 && got.Addons[0].TakenOverBy != nil):
				t.Errorf("%+v", got.Addons)
			case tc.says != "" && (len(got.Addons) != 1 || got.Addons[0].Message != tc.says || !tc.failed && got.Addons[0].State != hubv1.AddonOrphaned):
				t.Errorf("%+v, want %q", got.Addons, tc.says)
			}
		})
	}
}
