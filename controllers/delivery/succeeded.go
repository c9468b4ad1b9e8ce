// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// succeeded returns the last generation that Flux has applied with success, as far as the hub has seen. status.observedGeneration alone
// does not say so: a suspension raises it, and nothing lowers it when the object is resumed and fails. A hub that has not seen the
// object before it was suspended goes by its status then.
func (s *sightings) succeeded(k *kustomizev1.Kustomization) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	was, known := s.objects[k.UID]
	return was.done(known, k)
}

// done is succeeded, with the sighting before.
func (was sighting) done(known bool, k *kustomizev1.Kustomization) int64 {
	says := saysSucceeded(k)
	// Of a suspended object, Flux may end what it was at work on; then it observes the suspension itself, and tries nothing.
	idle := k.Spec.Suspend && (k.Status.ObservedGeneration == was.observed || k.Status.ObservedGeneration == k.Generation)
	if known && (idle || !meta.IsStatusConditionTrue(k.Status.Conditions, hubv1.ReadyCondition)) {
		return min(says, was.succeeded)
	}
	return says
}

// saysSucceeded returns the last generation that Flux has applied with success, as far as the status says. Flux also raises
// observedGeneration where it has applied nothing: when it stalls because an expression does not compile, and when it is suspended
// while Ready=True is of a generation before (kustomize-controller, Reconcile and finalizeStatus).
func saysSucceeded(k *kustomizev1.Kustomization) int64 {
	c := meta.FindStatusCondition(k.Status.Conditions, hubv1.ReadyCondition)
	switch {
	case c != nil && c.Reason == fluxmeta.InvalidCELExpressionReason:
		return 0
	case c != nil && c.Status == metav1.ConditionTrue:
		return min(k.Status.ObservedGeneration, c.ObservedGeneration)
	}
	return k.Status.ObservedGeneration
}
