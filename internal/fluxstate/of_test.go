// SPDX-License-Identifier: Apache-2.0

package fluxstate_test

import (
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/fluxstate"
	"github.com/chandler-hub/chandler/internal/must"
)

func TestOf(t *testing.T) {
	gone := metav1.NewTime(time.Unix(1_700_000_000, 0))
	ready := []metav1.Condition{
		{Type: "Released", Status: metav1.ConditionFalse, Reason: "Other", ObservedGeneration: 9},
		{Type: "Ready", Status: metav1.ConditionFalse, Reason: "InstallFailed", Message: "no", ObservedGeneration: 4},
	}
	unknown := []metav1.Condition{{Type: "Ready", Status: metav1.ConditionUnknown, Reason: "Progressing", Message: "working", ObservedGeneration: 4}}
	history := helmv2.Snapshots{{Version: 1, ChartVersion: "6.0.0"}, {Version: 2, ChartVersion: "6.1.0"}}
	cases := map[string]struct {
		obj  client.Object
		want fluxstate.State
	}{
		"NewHelmRelease":   {&helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{Generation: 1}}, fluxstate.State{Generation: 1, Ready: metav1.ConditionUnknown}},
		"NewKustomization": {&kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Generation: 1}}, fluxstate.State{Generation: 1, Ready: metav1.ConditionUnknown}},
		"HelmRelease": {
			&helmv2.HelmRelease{
				ObjectMeta: metav1.ObjectMeta{Generation: 5},
				Status:     helmv2.HelmReleaseStatus{Conditions: ready, History: history},
			},
			fluxstate.State{Generation: 5, Ready: metav1.ConditionFalse, ReadyGeneration: 4, Reason: "InstallFailed", Message: "no", Version: "6.1.0"},
		},
		"Kustomization": {
			&kustomizev1.Kustomization{
				ObjectMeta: metav1.ObjectMeta{Generation: 5},
				Status:     kustomizev1.KustomizationStatus{Conditions: ready, LastAppliedRevision: "main@sha1:abc", LastAttemptedRevision: "main@sha1:def"},
			},
			fluxstate.State{Generation: 5, Ready: metav1.ConditionFalse, ReadyGeneration: 4, Reason: "InstallFailed", Message: "no", Version: "main@sha1:abc"},
		},
		"UnknownSaysNothing": {
			&kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Generation: 4}, Status: kustomizev1.KustomizationStatus{Conditions: unknown}},
			fluxstate.State{Generation: 4, Ready: metav1.ConditionUnknown, ReadyGeneration: 4, Begun: true},
		},
		"SuspendedAndDeleting": {
			&helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{Generation: 2, DeletionTimestamp: &gone}, Spec: helmv2.HelmReleaseSpec{Suspend: true}},
			fluxstate.State{Generation: 2, Ready: metav1.ConditionUnknown, Suspended: true, Deleting: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			must.Equal(t, tc.want, fluxstate.Of(tc.obj))
		})
	}
}

// What Flux says of a failed release runs over many lines; a status has one.
func TestMessages(t *testing.T) {
	prefix := `InstallFailed: Flux says, perhaps in the cluster's words: "`
	cases := map[string]struct{ message, want string }{
		"ManyLines":     {"Helm install failed:\n\n  Error:\ttimed out\r\n", prefix + `Helm install failed: Error: timed out"`},
		"JustFits":      {strings.Repeat("x", 299-len(prefix)), prefix + strings.Repeat("x", 299-len(prefix)) + `"`},
		"OneTooMany":    {strings.Repeat("x", 300-len(prefix)), prefix + strings.Repeat("x", 298-len(prefix)) + `…"`},
		"LongManyLines": {strings.Repeat("12345678\n\t 9", 200), prefix + strings.Repeat("12345678 9", 200)[:298-len(prefix)] + `…"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := fluxstate.State{Generation: 1, Ready: metav1.ConditionFalse, ReadyGeneration: 1, Reason: "InstallFailed", Message: tc.message}
			state, got := fluxstate.Addon(hubv1.AddonStatus{}, s, 1)
			if state != hubv1.AddonFailed {
				t.Errorf("state %s", state)
			}
			must.Equal(t, tc.want, got)
		})
	}
}

// A reason that is not known to mean "not yet" is a failure: it is better to look in vain than not at all.
func TestReasons(t *testing.T) {
	cases := map[string]hubv1.AddonState{
		"SourceNotReady": hubv1.AddonProgressing, "HelmChartNotReady": hubv1.AddonProgressing, "ArtifactFailed": hubv1.AddonProgressing,
		"Progressing": hubv1.AddonProgressing, "ProgressingWithRetry": hubv1.AddonProgressing,
		"DependencyNotReady": hubv1.AddonWaitingForDependency,
		"InstallFailed":      hubv1.AddonFailed, "UpgradeFailed": hubv1.AddonFailed, "BuildFailed": hubv1.AddonFailed,
		"HealthCheckFailed": hubv1.AddonFailed, "ReconciliationFailed": hubv1.AddonFailed, "NeverHeardOf": hubv1.AddonFailed,
	}
	for reason, want := range cases {
		t.Run(reason, func(t *testing.T) {
			s := fluxstate.State{Generation: 2, Ready: metav1.ConditionFalse, ReadyGeneration: 2, Reason: reason, Message: "m"}
			if got, says := fluxstate.Addon(hubv1.AddonStatus{}, s, 2); got != want || says != fluxstate.Words(reason, "m") {
				t.Errorf("%s (%q), want %s", got, says, want)
			}
		})
	}
}

// TestTheSameFailureTwice: what is another one at each try would make news of each.
func TestTheSameFailureTwice(t *testing.T) {
	of := func(message string) fluxstate.State {
		return fluxstate.Of(&kustomizev1.Kustomization{Status: kustomizev1.KustomizationStatus{Conditions: []metav1.Condition{
			{Type: "Ready", Status: metav1.ConditionFalse, Reason: "ReconciliationFailed", Message: message},
		}}})
	}
	for name, tc := range map[string][2]string{
		"Folder":    {"stat /tmp/kustomization-123/a/b: no such file", "stat /tmp/kustomization-456/a/b: no such file"},
		"LocalPort": {`Get "https://10.0.0.9:6443/api": read tcp 10.0.0.1:40112->10.0.0.9:6443: i/o timeout`, `Get "https://10.0.0.9:6443/api": read tcp 10.0.0.1:40996->10.0.0.9:6443: i/o timeout`},
		"IPv6":      {"read tcp [fd00::1]:40112->[fd00::9]:6443: i/o timeout", "read tcp [fd00::1]:40113->[fd00::9]:6443: i/o timeout"},
		"RequestID": {"https response error StatusCode: 403, RequestID: 11111111-2222-3333-4444-555555555555, AccessDenied", "https response error StatusCode: 403, RequestID: 66666666-2222-3333-4444-555555555555, AccessDenied"},
	} {
		t.Run(name, func(t *testing.T) {
			if a, b := of(tc[0]), of(tc[1]); a != b {
				t.Errorf("%q differs from %q", a.Message, b.Message)
			}
			if strings.Contains(tc[0], "10.0.0.9") && !strings.Contains(of(tc[0]).Message, "10.0.0.9:6443: i/o timeout") {
				t.Errorf("whom it did not reach is lost: %q", of(tc[0]).Message)
			}
		})
	}
}
