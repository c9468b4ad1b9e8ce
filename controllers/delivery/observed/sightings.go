// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"context"
	"hash/maphash"
	"maps"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/fluxstate"
	"github.com/chandler-hub/chandler/internal/memory"
)

// FluxChanges hands events on to a handler, but for Flux's many status writes that change nothing of substance. It calls the same function
// as the report, so that the two cannot disagree. What is remembered of an object goes with it, also if the hub has not deleted it.
func FluxChanges(of handler.EventHandler, seen *Sightings, written *Ledger) handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			seen.news(e.Object)
			of.Create(ctx, e, q)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if seen.news(e.ObjectNew) || !maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) ||
				e.ObjectOld.GetAnnotations()[hubv1.HashAnnotation] != e.ObjectNew.GetAnnotations()[hubv1.HashAnnotation] {
				of.Update(ctx, e, q)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			seen.objects.Delete(e.Object.GetUID())
			written.forget(e.Object)
			of.Delete(ctx, e, q)
		},
	}
}

// Sightings remember the state of each Flux object when it last woke the controller. Flux sets Ready to Unknown at the
// start of each routine reconcile, and to True at its end. Compared with the event before, each of the two is a
// change, and 50,000 objects every ten minutes make 160 events a second that change nothing. The end of a routine
// reconcile wakes no controller. So a reader in the middle of one must see the state before it: settled. The
// same is true of an object that has failed and is tried again: it counts as failed until it succeeds.
type Sightings struct {
	objects memory.Map[types.UID, sighting]
}

type sighting struct {
	state      uint64 // its hash: 50,000 messages would be megabytes
	generation int64
	// begun is whether Flux may have begun with this generation. A Kustomization says so by Ready=Unknown; before that, what it says
	// has failed is an attempt at the generation before (fluxstate.State.ReadyGeneration).
	begun bool
	// ready is the last generation for which Flux has said True, if that was the last thing that it said; else 0.
	ready int64
	// failed is the state when Flux said that the object had failed, if that was the last thing that it said; else nil.
	// Few objects have it.
	failed *fluxstate.State
	// applied is of a Kustomization.
	applied applied
}

var seed = maphash.MakeSeed()

// news returns whether an object's state differs from the one before.
func (s *Sightings) news(obj client.Object) (news bool) {
	s.objects.Update(obj.GetUID(), func(was sighting, known bool) (is sighting, keep bool) {
		is, news = was.and(known, obj)
		return is, true
	})
	return news
}

// and is what is known when an object has been seen once more, and whether that is news.
func (was sighting) and(known bool, obj client.Object) (is sighting, news bool) {
	state := fluxstate.Of(obj)
	begins := state.Ready == metav1.ConditionUnknown && state.ReadyGeneration == state.Generation
	// Of one that is seen for the first time, Flux has not begun with a generation of which it has said nothing.
	begun := begins || !known && state.ReadyGeneration >= state.Generation || was.begun && was.generation == state.Generation
	if !begun {
		state = unbegun(state)
	}
	is = sighting{state: maphash.Comparable(seed, state), generation: state.Generation, begun: begun}
	if k, ok := obj.(*kustomizev1.Kustomization); ok {
		is.applied = was.applied.and(known, k)
	}
	if state.Ready == metav1.ConditionTrue {
		is.ready = state.ReadyGeneration
	}
	if fluxstate.Failing(state) {
		is.failed = &state
	}
	if known && (was.state == is.state || was.routine(state)) {
		was.begun, was.applied = begun, is.applied
		return was, false
	}
	return is, true
}

// unbegun returns the state of an object whose generation Flux has not begun with.
func unbegun(state fluxstate.State) fluxstate.State {
	if fluxstate.OfAttempt(state) && state.ReadyGeneration == state.Generation {
		state.Ready, state.Reason, state.Message, state.ReadyGeneration = metav1.ConditionUnknown, "", "", state.Generation-1
	}
	return state
}

// routine returns whether a state is the middle of a reconcile of an object that was Ready, or had failed, and that
// no other writer has changed since.
func (was sighting) routine(state fluxstate.State) bool {
	return (was.ready != 0 || was.failed != nil) && was.generation == state.Generation && state.Ready == metav1.ConditionUnknown &&
		!state.Deleting && !state.Suspended
}

// settled returns an object's state. In the middle of a routine reconcile, it returns the state before that.
func (s *Sightings) settled(uid types.UID, state fluxstate.State) fluxstate.State {
	was, known := s.objects.Get(uid)
	if known && (was.generation != state.Generation || !was.begun) {
		state = unbegun(state)
	}
	switch {
	case !was.routine(state):
	case was.failed != nil:
		state.Ready, state.ReadyGeneration, state.Reason, state.Message, state.Begun = was.failed.Ready, was.failed.ReadyGeneration,
			was.failed.Reason, was.failed.Message, was.failed.Begun
	default:
		state.Ready, state.ReadyGeneration = metav1.ConditionTrue, was.ready
	}
	return state
}

// applied is what the hub has seen Flux apply of a Kustomization. status.observedGeneration alone does not say it: a suspension raises it,
// and nothing lowers it when the object is resumed and fails.
type applied struct {
	// succeeded is the last generation that Flux has applied with success, and observed the one that it has observed.
	succeeded, observed int64
	// from and to are the generations at which the object was suspended last, and suspended is whether it is.
	from, to  int64
	suspended bool
}

// Succeeded returns the last generation of a Kustomization that Flux has applied with success, as far as the hub has seen. A hub that sees
// the object for the first time goes by its status.
func (s *Sightings) Succeeded(k *kustomizev1.Kustomization) int64 {
	was, known := s.objects.Get(k.UID)
	return was.applied.and(known, k).succeeded
}

// and is what is known when an object has been seen once more.
func (was applied) and(known bool, k *kustomizev1.Kustomization) applied {
	is := was
	is.observed, is.suspended = k.Status.ObservedGeneration, k.Spec.Suspend
	if is.suspended {
		is.to = k.Generation
		if !was.suspended {
			is.from = k.Generation
		}
	}
	// Flux observes a suspension, and an expression that does not compile, and tries nothing.
	tried := is.observed != was.observed && (is.observed < is.from || is.observed > is.to) && !uncompiled(k)
	switch {
	case !known:
		is.succeeded = SaysSucceeded(k)
	case tried:
		is.succeeded = is.observed
	}
	return is
}

// uncompiled returns whether Flux has stalled, because an expression of the Kustomization does not compile.
func uncompiled(k *kustomizev1.Kustomization) bool {
	c := meta.FindStatusCondition(k.Status.Conditions, hubv1.ReadyCondition)
	return c != nil && c.Reason == fluxmeta.InvalidCELExpressionReason
}

// SaysSucceeded returns the last generation that Flux has applied with success, as far as the status says. Flux also raises
// observedGeneration where it has applied nothing: when it stalls because an expression does not compile, and when it is suspended
// while Ready=True is of a generation before (kustomize-controller, Reconcile and finalizeStatus).
func SaysSucceeded(k *kustomizev1.Kustomization) int64 {
	if uncompiled(k) {
		return 0
	}
	if c := meta.FindStatusCondition(k.Status.Conditions, hubv1.ReadyCondition); c != nil && c.Status == metav1.ConditionTrue {
		return min(k.Status.ObservedGeneration, c.ObservedGeneration)
	}
	return k.Status.ObservedGeneration
}
