// SPDX-License-Identifier: Apache-2.0

package observed

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
			o := &Object{}
			o.Applies(k, new(Sightings).Succeeded(k)) // of a hub that has just started
			if o.AppliedAs != tc.want {
				t.Errorf("the hub takes %q for applied, want %q", o.AppliedAs, tc.want)
			}
		})
	}
}

// TestSucceededSoFar: what the hub has seen before tells what a suspension raised.
func TestSucceededSoFar(t *testing.T) {
	type status struct {
		generation, observed int64
		ready                metav1.ConditionStatus
		of                   int64
		suspended            bool
	}
	const yes, no, unknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	for name, tc := range map[string]struct {
		seen []status
		want int64
	}{
		"resumed, and at work":          {[]status{{3, 3, yes, 3, false}, {5, 5, yes, 3, true}, {6, 5, unknown, 6, false}}, 3},
		"resumed, and failed":           {[]status{{3, 3, yes, 3, false}, {5, 5, yes, 3, true}, {6, 5, unknown, 6, false}, {6, 5, no, 6, false}}, 3},
		"resumed, and applied":          {[]status{{3, 3, yes, 3, false}, {5, 5, yes, 3, true}, {6, 5, unknown, 6, false}, {6, 6, yes, 6, false}}, 6},
		"overtaken, and suspended":      {[]status{{3, 3, unknown, 3, false}, {4, 3, yes, 4, false}, {5, 5, yes, 4, true}}, 3},
		"overtaken, suspended, deleted": {[]status{{3, 3, unknown, 3, false}, {4, 3, yes, 4, false}, {5, 3, yes, 4, true}, {5, 5, yes, 4, true}, {6, 5, yes, 4, true}}, 3},
		"overtaken, suspended, resumed": {[]status{{3, 3, unknown, 3, false}, {4, 3, yes, 4, false}, {5, 3, yes, 4, true}, {5, 5, yes, 4, true}, {6, 5, yes, 4, false}}, 3},
		"suspended while at work":       {[]status{{3, 3, unknown, 3, false}, {4, 3, unknown, 3, false}, {5, 3, unknown, 3, true}, {5, 3, yes, 5, true}, {5, 5, yes, 5, true}, {6, 5, yes, 5, false}, {6, 5, no, 6, false}}, 3},
		"written while suspended":       {[]status{{3, 3, yes, 3, false}, {4, 3, yes, 3, true}, {5, 4, yes, 3, true}, {6, 4, yes, 3, false}, {6, 5, unknown, 6, false}}, 3},
		"success that nobody saw":       {[]status{{3, 3, yes, 3, false}, {4, 3, yes, 3, false}, {4, 4, no, 4, false}}, 4},
		"applied while it is written":   {[]status{{4, 3, unknown, 4, false}, {5, 4, yes, 5, true}, {5, 5, yes, 5, true}}, 4},
		"applied, and tried again":      {[]status{{3, 3, yes, 3, false}, {3, 3, unknown, 3, false}, {3, 3, no, 3, false}}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			var seen Sightings
			k := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{UID: "u"}}
			for _, s := range tc.seen {
				k.Generation, k.Spec.Suspend, k.Status.ObservedGeneration = s.generation, s.suspended, s.observed
				k.Status.Conditions = []metav1.Condition{{Type: hubv1.ReadyCondition, Status: s.ready, Reason: "ReconciliationFailed", ObservedGeneration: s.of}}
				seen.news(k)
			}
			if got := seen.Succeeded(k); got != tc.want {
				t.Errorf("Flux has applied generation %d, want %d", got, tc.want)
			}
		})
	}
}
