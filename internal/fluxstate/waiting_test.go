// SPDX-License-Identifier: Apache-2.0

package fluxstate_test

import (
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandler-hub/chandler/internal/fluxstate"
)

// The conditions are as Flux 2.9 writes them.
func TestWaiting(t *testing.T) {
	began := metav1.NewTime(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
	is := func(typ string, s metav1.ConditionStatus, reason, message string, generation int64) metav1.Condition {
		return metav1.Condition{Type: typ, Status: s, Reason: reason, Message: message, ObservedGeneration: generation, LastTransitionTime: began}
	}
	ready := func(s metav1.ConditionStatus, reason string, generation int64) metav1.Condition {
		return is("Ready", s, reason, "", generation)
	}
	reconciling := func(message string, generation int64) metav1.Condition {
		return is("Reconciling", "True", "Progressing", message, generation)
	}
	const fetching = "Fetching manifests for revision main@sha1:abc with a timeout of 4m30s"
	for name, tc := range map[string]struct {
		conditions   []metav1.Condition
		now, earlier bool // it waits, with the present generation, and with any
	}{
		"New":                  {nil, false, false},
		"HelmBegins":           {[]metav1.Condition{reconciling("Fulfilling prerequisites", 2)}, true, true},
		"HelmBeginsAnUpgrade":  {[]metav1.Condition{ready("True", "UpgradeSucceeded", 1), reconciling("Fulfilling prerequisites", 2)}, true, true},
		"WrittenSince":         {[]metav1.Condition{ready("True", "UpgradeSucceeded", 1), reconciling("Fulfilling prerequisites", 1)}, false, true},
		"HelmWaitsForASource":  {[]metav1.Condition{ready("False", "SourceNotReady", 2), reconciling("Fulfilling prerequisites", 2)}, false, false},
		"HelmInstalls":         {[]metav1.Condition{ready("Unknown", "Progressing", 2), reconciling("Running 'install' action with timeout of 5m0s", 2)}, false, false},
		"HelmTriesAgain":       {[]metav1.Condition{is("Reconciling", "True", "ProgressingWithRetry", "Fulfilling prerequisites", 2)}, false, false},
		"KustomizeFetches":     {[]metav1.Condition{ready("Unknown", "Progressing", 2), reconciling(fetching, 2)}, true, true},
		"KustomizeBuilds":      {[]metav1.Condition{ready("Unknown", "Progressing", 2), reconciling("Building manifests for revision x", 2)}, true, true},
		"KustomizeWaitsForPod": {[]metav1.Condition{ready("Unknown", "Progressing", 2), reconciling("Running health checks for revision x", 2)}, false, false},
		"Done":                 {[]metav1.Condition{ready("True", "ReconciliationSucceeded", 2)}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			meta := metav1.ObjectMeta{Generation: 2}
			release := &helmv2.HelmRelease{ObjectMeta: meta, Status: helmv2.HelmReleaseStatus{Conditions: tc.conditions}}
			kustomization := &kustomizev1.Kustomization{ObjectMeta: meta, Status: kustomizev1.KustomizationStatus{Conditions: tc.conditions}}
			for _, current := range []bool{true, false} {
				want := tc.earlier && !current || tc.now && current
				for _, got := range []time.Time{fluxstate.Waiting(release, current), fluxstate.Waiting(kustomization, current)} {
					if got.IsZero() == want || want && !got.Equal(began.Time) {
						t.Errorf("current: %t; got %s", current, got)
					}
				}
			}
		})
	}
}
