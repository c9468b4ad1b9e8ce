// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// applied is what the hub has seen Flux apply of a Kustomization. status.observedGeneration alone does not say it: a suspension raises it,
// and nothing lowers it when the object is resumed and fails.
type applied struct {
	// succeeded is the last generation that Flux has applied with success, and observed the one that it has observed.
	succeeded, observed int64
	// from and to are the generations at which the object was suspended last, and suspended is whether it is.
	from, to  int64
	suspended bool
}

// succeeded returns the last generation of a Kustomization that Flux has applied with success, as far as the hub has seen. A hub that sees
// the object for the first time goes by its status.
func (s *sightings) succeeded(k *kustomizev1.Kustomization) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	was, known := s.objects[k.UID]
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
		is.succeeded = saysSucceeded(k)
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

// saysSucceeded returns the last generation that Flux has applied with success, as far as the status says. Flux also raises
// observedGeneration where it has applied nothing: when it stalls because an expression does not compile, and when it is suspended
// while Ready=True is of a generation before (kustomize-controller, Reconcile and finalizeStatus).
func saysSucceeded(k *kustomizev1.Kustomization) int64 {
	if uncompiled(k) {
		return 0
	}
	if c := meta.FindStatusCondition(k.Status.Conditions, hubv1.ReadyCondition); c != nil && c.Status == metav1.ConditionTrue {
		return min(k.Status.ObservedGeneration, c.ObservedGeneration)
	}
	return k.Status.ObservedGeneration
}
