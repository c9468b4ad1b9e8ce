// SPDX-License-Identifier: Apache-2.0

package fluxstate_test

import (
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/fluxstate"
)

// condition is one condition of a HelmRelease: type, status, reason, generation, message.
func condition(typ string, s metav1.ConditionStatus, reason string, generation int64, message string) metav1.Condition {
	return metav1.Condition{Type: typ, Status: s, Reason: reason, ObservedGeneration: generation, Message: message}
}

// TestHelmRetries goes through what helm-controller 1.6.4 writes while an upgrade fails again and again, and then does not: an add-on
// that is tried again stays Failed, for the same reason and without news, until another generation is applied or Flux is Ready.
func TestHelmRetries(t *testing.T) {
	const timeout = "Helm upgrade failed for release hello/hello with chart hello@1.0.0: timeout waiting for: [Deployment/hello/hello status: 'InProgress']"
	released := condition("Released", "True", "InstallSucceeded", 1, "Helm install succeeded for release hello/hello.v1 with chart hello@1.0.0")
	failed := condition("Released", "False", "UpgradeFailed", 2, timeout)
	running := func(generation int64) metav1.Condition {
		return condition("Ready", "Unknown", "Progressing", generation, "Running 'upgrade' action with timeout of 5m0s")
	}
	notReady := condition("Ready", "False", "UpgradeFailed", 2, timeout)
	reconciling := func(generation int64, reason, message string) metav1.Condition {
		return condition("Reconciling", "True", reason, generation, message)
	}
	var before hubv1.AddonStatus
	var last fluxstate.State
	for _, step := range []struct {
		what       string
		generation int64
		conditions []metav1.Condition
		want       hubv1.AddonState
		// news is false if nobody has to be woken for it.
		news bool
	}{
		{"installed", 1, []metav1.Condition{condition("Ready", "True", "InstallSucceeded", 1, "ok"), released}, hubv1.AddonReady, true},
		{"the hub applies an upgrade", 2, []metav1.Condition{condition("Ready", "True", "InstallSucceeded", 1, "ok"), released}, hubv1.AddonProgressing, true},
		{"Flux begins", 2, []metav1.Condition{running(2), reconciling(2, "Progressing", "Running"), released}, hubv1.AddonProgressing, true},
		{"it fails", 2, []metav1.Condition{notReady, reconciling(2, "Progressing", "Running"), failed}, hubv1.AddonFailed, true},
		{"it waits for its retry interval", 2, []metav1.Condition{notReady, reconciling(2, "ProgressingWithRetry", "retrying after 5m0s"), failed}, hubv1.AddonFailed, false},
		{"it begins again", 2, []metav1.Condition{notReady, reconciling(2, "Progressing", "Fulfilling prerequisites"), failed}, hubv1.AddonFailed, false},
		{"it upgrades again", 2, []metav1.Condition{running(2), reconciling(2, "Progressing", "Running"), failed}, hubv1.AddonFailed, false},
		{"it fails again", 2, []metav1.Condition{notReady, reconciling(2, "ProgressingWithRetry", "retrying after 5m0s"), failed}, hubv1.AddonFailed, false},
		{"it upgrades once more", 2, []metav1.Condition{running(2), failed}, hubv1.AddonFailed, false},
		{"the hub applies something else", 3, []metav1.Condition{notReady, failed}, hubv1.AddonProgressing, true},
		{"Flux begins with that", 3, []metav1.Condition{running(3), failed}, hubv1.AddonProgressing, true},
		{"it succeeds", 3, []metav1.Condition{condition("Ready", "True", "UpgradeSucceeded", 3, "ok"), condition("Released", "True", "UpgradeSucceeded", 3, "ok")}, hubv1.AddonReady, true},
	} {
		s := fluxstate.Of(&helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{Generation: step.generation}, Status: helmv2.HelmReleaseStatus{Conditions: step.conditions, ObservedGeneration: step.generation}})
		state, message := fluxstate.Addon(before, s, step.generation)
		if state != step.want {
			t.Errorf("%s: %s, want %s", step.what, state, step.want)
		}
		if want := `UpgradeFailed: Flux says, perhaps in the cluster's words: "` + timeout + `"`; state == hubv1.AddonFailed && message != want {
			t.Errorf("%s: it says %q, want %q", step.what, message, want)
		}
		if news := s != last; news != step.news {
			t.Errorf("%s: news: %t, want %t", step.what, news, step.news)
		}
		before, last = hubv1.AddonStatus{State: state, Message: message, AppliedGeneration: step.generation}, s
	}
}

// TestAttempts: what of an attempt counts as a failure while Ready is Unknown.
func TestAttempts(t *testing.T) {
	running := condition("Ready", "Unknown", "Progressing", 2, "Running 'upgrade' action with timeout of 5m0s")
	for name, tc := range map[string]struct {
		conditions []metav1.Condition
		want       hubv1.AddonState
		says       string
	}{
		"TheFirst":          {[]metav1.Condition{running}, hubv1.AddonProgressing, ""},
		"AfterAnInstall":    {[]metav1.Condition{running, condition("Released", "False", "InstallFailed", 2, "no")}, hubv1.AddonFailed, `InstallFailed: Flux says, perhaps in the cluster's words: "no"`},
		"OfTheOneBefore":    {[]metav1.Condition{running, condition("Released", "False", "UpgradeFailed", 1, "no")}, hubv1.AddonProgressing, ""},
		"AfterARollback":    {[]metav1.Condition{running, condition("Remediated", "True", "RollbackSucceeded", 2, "back"), condition("Released", "False", "UpgradeFailed", 2, "no")}, hubv1.AddonFailed, `RollbackSucceeded: Flux says, perhaps in the cluster's words: "back"`},
		"Unlocked":          {[]metav1.Condition{running, condition("Released", "False", "PendingRelease", 2, "unlocked")}, hubv1.AddonProgressing, ""},
		"Reinstalling":      {[]metav1.Condition{condition("Ready", "False", "UninstallSucceeded", 2, "gone"), condition("Released", "False", "UninstallSucceeded", 2, "gone")}, hubv1.AddonProgressing, ""},
		"SomethingNewerHas": {[]metav1.Condition{condition("Ready", "False", "HealthCheckCanceled", 2, "new")}, hubv1.AddonProgressing, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := fluxstate.Of(&helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Status: helmv2.HelmReleaseStatus{Conditions: tc.conditions}})
			if got, says := fluxstate.Addon(hubv1.AddonStatus{}, s, 2); got != tc.want || says != tc.says {
				t.Errorf("%s (%q), want %s (%q)", got, says, tc.want, tc.says)
			}
		})
	}
}

// TestTriesAgain: a hub that is restarted in the middle of a retry finds in its own status that Flux had failed.
func TestTriesAgain(t *testing.T) {
	failed := hubv1.AddonStatus{State: hubv1.AddonFailed, Reason: "HealthCheckFailed", Message: fluxstate.Words("HealthCheckFailed", "timeout"), AppliedGeneration: 2, LastAttempt: hubv1.AttemptFailed}
	with := func(change func(*hubv1.AddonStatus)) hubv1.AddonStatus {
		out := failed
		change(&out)
		return out
	}
	trying := fluxstate.State{Generation: 2, Ready: metav1.ConditionUnknown, ReadyGeneration: 2}
	routine := fluxstate.State{Generation: 2, Ready: metav1.ConditionUnknown, ReadyGeneration: 2, Observed: true}
	for name, tc := range map[string]struct {
		before  hubv1.AddonStatus
		state   fluxstate.State
		applied int64
		want    hubv1.AddonState
	}{
		"Retrying":        {failed, trying, 2, hubv1.AddonFailed},
		"SomethingElse":   {failed, fluxstate.State{Generation: 3, Ready: metav1.ConditionUnknown, ReadyGeneration: 3}, 3, hubv1.AddonProgressing},
		"NotRendered":     {with(func(a *hubv1.AddonStatus) { a.Reason, a.LastAttempt = hubv1.RenderFailedReason, "" }), trying, 2, hubv1.AddonProgressing},
		"NotApplied":      {with(func(a *hubv1.AddonStatus) { a.Reason, a.LastAttempt = "", "" }), trying, 2, hubv1.AddonProgressing},
		"WasReady":        {hubv1.AddonStatus{State: hubv1.AddonReady, AppliedGeneration: 2}, routine, 2, hubv1.AddonReady},
		"MadeAgain":       {hubv1.AddonStatus{State: hubv1.AddonReady, AppliedGeneration: 2}, trying, 2, hubv1.AddonProgressing},
		"Recovered":       {failed, fluxstate.State{Generation: 2, Ready: metav1.ConditionTrue, ReadyGeneration: 2}, 2, hubv1.AddonReady},
		"ForeignEdit":     {failed, fluxstate.State{Generation: 3, Ready: metav1.ConditionUnknown, ReadyGeneration: 3}, 2, hubv1.AddonProgressing},
		"NotBegunToRetry": {failed, fluxstate.State{Generation: 2, Ready: metav1.ConditionFalse, ReadyGeneration: 2, Reason: "BuildFailed", Message: "x"}, 2, hubv1.AddonFailed},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := fluxstate.Addon(tc.before, tc.state, tc.applied)
			if fluxstate.TriesAgain(tc.state, &tc.before, tc.applied) {
				got = tc.before.State
			}
			if got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}
