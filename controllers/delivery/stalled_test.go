// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// kustomize-controller sets status.observedGeneration of a Kustomization whose healthCheckExprs it cannot compile (kustomization_controller.go,
// "Configure custom health checks"), and has applied nothing of that generation.
func TestStalledIsNotApplied(t *testing.T) {
	k := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Generation: 4, Annotations: map[string]string{hubv1.AppliedAsAnnotation: "3 abc"}}}
	k.Spec.Path = "/b"
	k.Status.ObservedGeneration = 4
	k.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, Reason: "InvalidCELExpression"}, {Type: "Stalled", Status: metav1.ConditionTrue, Reason: "InvalidCELExpression"}}
	o := &object{}
	o.applies(k)
	if o.AppliedAs != "abc" {
		t.Errorf("the hub takes the new folder for applied: AppliedAs %q", o.AppliedAs)
	}
}
