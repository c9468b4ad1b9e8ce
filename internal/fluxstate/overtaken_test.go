// SPDX-License-Identifier: Apache-2.0

package fluxstate_test

import (
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/fluxstate"
)

// TestOvertakenFailure: the hub writes the mend (generation 3) while helm-controller still waits for what generation 2 has broken. The
// attempt fails, and the patch of the conditions says generation 3 of it (fluxcd/pkg/runtime/conditions, Set: "always set the observed
// generation"). That is no failure of the mend: status.lastAttemptedGeneration says of which generation it is.
func TestOvertakenFailure(t *testing.T) {
	const timeout = "Helm upgrade failed for release hello/hello with chart hello@1.0.0: timeout waiting for: [Deployment/hello/hello]"
	before := hubv1.AddonStatus{State: hubv1.AddonProgressing, AppliedGeneration: 3}
	notReady, released := condition("Ready", "False", "UpgradeFailed", 3, timeout), condition("Released", "False", "UpgradeFailed", 3, timeout)
	for _, step := range []struct {
		what       string
		conditions []metav1.Condition
		attempted  int64
	}{
		{"the attempt before the mend fails", []metav1.Condition{notReady, released}, 2},
		{"Flux begins with the mend", []metav1.Condition{condition("Ready", "Unknown", "Progressing", 3, "Running 'upgrade' action"), released}, 3},
		{"the wait was canceled", []metav1.Condition{condition("Ready", "False", "HealthCheckCanceled", 3, "new"), released}, 2},
	} {
		s := fluxstate.Of(&helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{Generation: 3}, Status: helmv2.HelmReleaseStatus{
			Conditions: step.conditions, ObservedGeneration: 1, LastAttemptedGeneration: step.attempted}})
		if got, says := fluxstate.Addon(before, s, 3); got != hubv1.AddonProgressing {
			t.Errorf("%s: %s (%q), want Progressing", step.what, got, says)
		}
		if fluxstate.Failing(s) {
			t.Errorf("%s: it counts as failing at generation 3, and so for the whole attempt (delivery/sightings)", step.what)
		}
	}
}
