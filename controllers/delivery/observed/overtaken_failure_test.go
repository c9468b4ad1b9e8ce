// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/fluxstate"
)

// TestOvertakenFailureOfAKustomization: kustomize-controller works on generation 1 when the hub writes generation 2, and fails with
// generation 1 then. The patch of the conditions says generation 2 of that. Each attempt of its own begins with Ready=Unknown.
func TestOvertakenFailureOfAKustomization(t *testing.T) {
	var seen Sightings
	var before hubv1.AddonStatus
	for _, step := range []struct {
		what       string
		generation int64
		status     metav1.ConditionStatus
		of         int64
		reason     string
		want       hubv1.AddonState
	}{
		{"it is at work on generation 1", 1, "Unknown", 1, "Progressing", hubv1.AddonProgressing},
		{"the hub writes generation 2", 2, "Unknown", 1, "Progressing", hubv1.AddonProgressing},
		{"the attempt at generation 1 fails", 2, "False", 2, "HealthCheckFailed", hubv1.AddonProgressing},
		{"it begins with generation 2", 2, "Unknown", 2, "Progressing", hubv1.AddonProgressing},
		{"that fails too", 2, "False", 2, "HealthCheckFailed", hubv1.AddonFailed},
	} {
		k := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "a", Generation: step.generation}}
		k.Status.Conditions = []metav1.Condition{{Type: hubv1.ReadyCondition, Status: step.status, Reason: step.reason, Message: "timeout", ObservedGeneration: step.of}}
		seen.news(k)
		state, says := fluxstate.Addon(before, seen.settled(k.UID, fluxstate.Of(k)), step.generation)
		if state != step.want {
			t.Errorf("%s: %s (%q), want %s", step.what, state, says, step.want)
		}
		before = hubv1.AddonStatus{State: state, Message: says, AppliedGeneration: step.generation}
	}
}
