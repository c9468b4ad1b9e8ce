// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"context"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/fluxstate"
)

// TestFluxChanges goes through the life of one object: what wakes the controller, and what does not.
func TestFluxChanges(t *testing.T) {
	seen := &Sightings{}
	woken := false
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	p := FluxChanges(handler.Funcs{
		CreateFunc: func(context.Context, event.CreateEvent, queue) { woken = true },
		UpdateFunc: func(context.Context, event.UpdateEvent, queue) { woken = true },
		DeleteFunc: func(context.Context, event.DeleteEvent, queue) { woken = true },
	}, seen, &Ledger{})
	release := func(generation, ready int64, status metav1.ConditionStatus, message string) *helmv2.HelmRelease {
		o := &helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "a", Generation: generation}}
		o.Status.Conditions = []metav1.Condition{{Type: hubv1.ReadyCondition, Status: status, Reason: "R", Message: message, ObservedGeneration: ready}}
		o.Status.ObservedGeneration = ready
		return o
	}
	labelled := release(2, 2, "Unknown", "again")
	labelled.Labels = map[string]string{"a": "b"}
	suspended := release(3, 2, "Unknown", "again")
	suspended.Spec.Suspend = true
	at := &helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "a", Generation: 1}}
	if p.Create(t.Context(), event.CreateEvent{Object: at}, nil); !woken {
		t.Error("one that comes wakes nobody")
	}
	for _, step := range []struct {
		what string
		to   *helmv2.HelmRelease
		want bool
		// ready is true if Flux said that it was, and has found nothing else since.
		ready bool
	}{
		{"Flux begins, of which nothing is told", release(1, 1, "Unknown", "installing"), true, false}, // it speaks of generation 1 now
		{"and goes on", release(1, 1, "Unknown", "still installing"), false, false},
		{"it is Ready", release(1, 1, "True", "installed"), true, true},
		{"a routine look begins", release(1, 1, "Unknown", "looking"), false, true},
		{"and ends", release(1, 1, "True", "installed"), false, true},
		{"another begins", release(1, 1, "Unknown", "looking"), false, true},
		{"and fails", release(1, 1, "False", "no"), true, false},
		{"it is tried again", release(1, 1, "Unknown", "looking"), false, false},
		{"and fails as before", release(1, 1, "False", "no"), false, false},
		{"and once more", release(1, 1, "Unknown", "looking"), false, false},
		{"and fails for another reason", release(1, 1, "False", "nor that"), true, false},
		{"it is tried again", release(1, 1, "Unknown", "looking"), false, false},
		{"and recovers", release(1, 1, "True", "installed"), true, true},
		{"its spec changes", release(2, 1, "True", "installed"), true, false},
		{"Flux begins with that: it was on its way already", release(2, 2, "Unknown", "upgrading"), false, false},
		{"it is Ready again", release(2, 2, "True", "upgraded"), true, true},
		{"a label, in a routine look", labelled, true, false},
		{"it is suspended in one", suspended, true, false},
	} {
		woken = false
		if p.Update(t.Context(), event.UpdateEvent{ObjectOld: at, ObjectNew: step.to}, nil); woken != step.want {
			t.Errorf("%s: wakes the controller: %t, want %t", step.what, woken, step.want)
		}
		at = step.to
		// What wakes no controller at its end must look the same in its middle, or a controller that looks just then sees it on its way for ever.
		if s := seen.settled(at.UID, fluxstate.Of(at)); !step.want && s.Ready == metav1.ConditionUnknown && step.ready {
			t.Errorf("%s: looked at just then, it is not Ready", step.what)
		}
		if s := seen.settled(at.UID, fluxstate.Of(at)); strings.Contains(step.what, "tried again") && (s.Ready != metav1.ConditionFalse || s.Reason != "R" || s.Message == "") {
			t.Errorf("%s: looked at just then, nobody knows that it has failed: %+v", step.what, s)
		}
	}
	woken = false
	if p.Delete(t.Context(), event.DeleteEvent{Object: at}, nil); !woken {
		t.Error("one that goes wakes nobody")
	}
}
