// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// TestSucceeded: status.observedGeneration alone does not say that Flux has applied a generation.
func TestSucceeded(t *testing.T) {
	for name, tc := range map[string]struct {
		ready    metav1.Condition
		observed int64
		want     string
	}{
		"an expression does not compile":             {metav1.Condition{Status: metav1.ConditionFalse, Reason: "InvalidCELExpression", ObservedGeneration: 4}, 4, "abc"},
		"suspended before Flux has come to it":       {metav1.Condition{Status: metav1.ConditionTrue, ObservedGeneration: 3}, 5, "abc"},
		"the condition names what Flux has not read": {metav1.Condition{Status: metav1.ConditionTrue, ObservedGeneration: 4}, 3, "abc"},
		"it failed":     {metav1.Condition{Status: metav1.ConditionFalse, Reason: "ReconciliationFailed", ObservedGeneration: 4}, 3, "abc"},
		"it is applied": {metav1.Condition{Status: metav1.ConditionTrue, ObservedGeneration: 4}, 4, ""},
		"it is applied, and what came then has failed": {metav1.Condition{Status: metav1.ConditionFalse, Reason: "ReconciliationFailed", ObservedGeneration: 5}, 4, ""},
	} {
		t.Run(name, func(t *testing.T) {
			k := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Generation: 5, Annotations: map[string]string{hubv1.AppliedAsAnnotation: "3 abc"}}}
			tc.ready.Type = hubv1.ReadyCondition
			k.Spec.Path, k.Status.ObservedGeneration, k.Status.Conditions = "/b", tc.observed, []metav1.Condition{tc.ready}
			o := &object{}
			o.applies(k)
			if o.AppliedAs != tc.want {
				t.Errorf("the hub takes %q for applied, want %q", o.AppliedAs, tc.want)
			}
		})
	}
}
