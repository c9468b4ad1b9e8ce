// SPDX-License-Identifier: Apache-2.0

package fluxstate_test

import (
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/fluxstate"
)

// TestDriftsAtOnce goes through what helm-controller 1.6.4 writes of a release that something on the cluster changes back before Flux has
// looked again, with the hub's defaults (driftDetection: enabled, RetryOnFailure). Ready is True between the upgrade and the correction of
// the drift, when observedGeneration is still the one before; CorrectClusterDrift sets Ready to Unknown, and AtomicRelease ends with
// ErrRetryAfterInterval, which raises observedGeneration and leaves Ready as it is. So the two never say it together. Whoever waits has to
// be told something.
func TestDriftsAtOnce(t *testing.T) {
	upgraded := condition("Ready", "True", "UpgradeSucceeded", 2, "ok")
	correcting := condition("Ready", "Unknown", "Progressing", 2, "correcting cluster drift")
	before := hubv1.AddonStatus{State: hubv1.AddonProgressing, AppliedGeneration: 2}
	for _, step := range []struct {
		ready    metav1.Condition
		observed int64
	}{{upgraded, 1}, {correcting, 1}, {correcting, 2}, {correcting, 2}} {
		s := fluxstate.Of(&helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Status: helmv2.HelmReleaseStatus{
			Conditions:         []metav1.Condition{step.ready, condition("Released", "True", "UpgradeSucceeded", 2, "ok")},
			ObservedGeneration: step.observed, LastAttemptedGeneration: 2}})
		state, says := fluxstate.Addon(before, s, 2)
		before = hubv1.AddonStatus{State: state, Message: says, AppliedGeneration: 2}
	}
	if before.State != hubv1.AddonReady && before.Message == "" {
		t.Errorf("it is %s for good, and nobody says why; Helm has upgraded the release, and Flux corrects what drifts", before.State)
	}
}
