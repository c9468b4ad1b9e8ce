// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/status"
)

func TestOutcome(t *testing.T) {
	valid := func(s metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: hubv1.KubeConfigValidCondition, Status: s, Reason: reason, Message: "kubeconfig"}
	}
	reachable := func(s metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: hubv1.ReachableCondition, Status: s, Reason: reason, Message: "probe"}
	}
	good, answers := valid("True", "Succeeded"), reachable("True", "ProbeSucceeded")
	counts := func(total, ready, failed int32) Sets {
		return Sets{counts: hubv1.ObjectCounts{Total: total, Ready: ready, Failed: failed}, failed: []string{"base/a: boom"}, why: []string{"flux-system/base wants a=b"}}
	}
	with := func(s Sets, change func(*Sets)) Sets {
		change(&s)
		return s
	}
	draining := func(reason string) *metav1.Condition {
		return &metav1.Condition{Type: hubv1.DrainingCondition, Status: "True", Reason: reason, Message: "drain"}
	}
	cases := map[string]struct {
		valid, reachable metav1.Condition
		maintenance      string
		draining         *metav1.Condition
		waiting, paused  bool
		identity         string
		refused          *Refusal
		sets             []hubv1.SetResult
		serves           Sets
		want             status.Summary
	}{
		"NotReadyYet":    {valid: valid("False", hubv1.KubeConfigNotReadyReason), waiting: true, want: status.Summary{Phase: status.Working, Reason: hubv1.KubeConfigNotReadyReason, Message: "kubeconfig"}},
		"Malformed":      {valid: valid("False", "KubeConfigMalformed"), want: status.Summary{Phase: status.Broken, Reason: "KubeConfigMalformed", Message: "kubeconfig"}},
		"HubItself":      {valid: good, reachable: reachable("False", hubv1.HubItselfReason), refused: &Refusal{hubv1.HubItselfReason, "the hub"}, want: status.Summary{Phase: status.Broken, Reason: hubv1.HubItselfReason, Message: "the hub"}},
		"NobodyProbes":   {valid: good, reachable: reachable("Unknown", hubv1.NotProbedReason), identity: "aws", serves: counts(2, 0, 0), want: status.Summary{Phase: status.Working, Reason: hubv1.ProgressingReason, Message: "0 of 2 add-ons are Ready"}},
		"NobodyNeedsTo":  {valid: good, reachable: reachable("Unknown", hubv1.NotProbedReason), identity: "aws", serves: counts(0, 0, 0), want: status.Summary{Phase: status.Done, Reason: hubv1.NoAddonSetReason, Message: "no AddonSet delivers to this cluster: flux-system/base wants a=b"}},
		"FluxFails":      {valid: good, reachable: reachable("False", hubv1.FluxFailsReason), identity: "aws", serves: counts(2, 0, 0), want: status.Summary{Phase: status.Broken, Reason: hubv1.FluxFailsReason, Message: "probe"}},
		"NotProbed":      {valid: good, reachable: reachable("Unknown", hubv1.NotProbedReason), want: status.Summary{Phase: status.Working, Reason: hubv1.NotProbedReason, Message: "probe"}},
		"Unreachable":    {valid: good, reachable: reachable("False", "DialTimeout"), serves: counts(2, 2, 0), want: status.Summary{Phase: status.Broken, Reason: "DialTimeout", Message: "probe"}},
		"Upgrading":      {valid: good, reachable: reachable("False", "DialTimeout"), maintenance: "ClusterUpgrading", want: status.Summary{Phase: status.Working, Reason: "ClusterUpgrading", Message: "at work: probe"}},
		"UpgradingUp":    {valid: good, reachable: answers, maintenance: "ClusterUpgrading", serves: counts(1, 1, 0), want: status.Summary{Phase: status.Done, Reason: hubv1.SucceededReason, Message: "the add-on is Ready"}},
		"NoSet":          {valid: good, reachable: answers, serves: counts(0, 0, 0), sets: []hubv1.SetResult{{Name: "flux-system/base", Result: "NotSelected: wants a=b"}}, want: status.Summary{Phase: status.Done, Reason: hubv1.NoAddonSetReason, Message: "no AddonSet delivers to this cluster: flux-system/base wants a=b"}},
		"StalledSet":     {valid: good, reachable: answers, serves: Sets{why: []string{"flux-system/base does not compile"}}, sets: []hubv1.SetResult{{Name: "flux-system/base", Result: "Stalled: the set does not compile"}}, want: status.Summary{Phase: status.Done, Reason: hubv1.NoAddonSetReason, Message: "no AddonSet delivers to this cluster: flux-system/base does not compile"}},
		"JustSelected":   {valid: good, reachable: answers, serves: Sets{pending: []string{"flux-system/base"}}, want: status.Summary{Phase: status.Working, Reason: hubv1.ProgressingReason, Message: "about to be delivered: flux-system/base"}},
		"BeforeItsWave":  {valid: good, reachable: answers, serves: Sets{later: []string{"flux-system/base"}}, want: status.Summary{Phase: status.Done, Reason: hubv1.WaitingForWaveReason, Message: "waits for its wave: flux-system/base"}},
		"OneMore":        {valid: good, reachable: answers, serves: with(counts(2, 2, 0), func(s *Sets) { s.pending = []string{"flux-system/more"} }), want: status.Summary{Phase: status.Working, Reason: hubv1.ProgressingReason, Message: "all 2 add-ons are Ready; about to be delivered: flux-system/more"}},
		"Leaving":        {valid: good, reachable: answers, serves: with(counts(2, 2, 0), func(s *Sets) { s.leaving = []string{"flux-system/old (hello)"} }), want: status.Summary{Phase: status.Working, Reason: hubv1.AddonsLeavingReason, Message: "being withdrawn: flux-system/old (hello)"}},
		"LastOneLeaving": {valid: good, reachable: answers, serves: Sets{leaving: []string{"flux-system/old"}}, want: status.Summary{Phase: status.Working, Reason: hubv1.AddonsLeavingReason, Message: "being withdrawn: flux-system/old"}},
		"FailedLeaving":  {valid: good, reachable: answers, serves: with(counts(2, 1, 1), func(s *Sets) { s.leaving = []string{"flux-system/old"} }), want: status.Summary{Phase: status.Broken, Reason: hubv1.AddonsFailedReason, Message: "1 of 2 add-ons failed: base/a: boom; being withdrawn: flux-system/old"}},
		"OneBeingDropped": {valid: good, reachable: answers, serves: with(counts(2, 2, 0), func(s *Sets) {
			s.unready = []unready{{"flux-system/base", hubv1.ProgressingReason, "x is Removing"}}
		}), want: status.Summary{Phase: status.Working, Reason: hubv1.ProgressingReason, Message: "all 2 add-ons are Ready; flux-system/base: x is Removing"}},
		"Held": {valid: good, reachable: answers, serves: with(counts(2, 2, 0), func(s *Sets) {
			s.unready = []unready{{"flux-system/a", hubv1.ProgressingReason, "x is Removing"}, {"flux-system/base", hubv1.RemovalsHeldReason, "x stays"}}
		}), want: status.Summary{Phase: status.Working, Reason: hubv1.RemovalsHeldReason, Message: "all 2 add-ons are Ready; flux-system/base: x stays"}},
		"NotResumedYet": {valid: good, reachable: answers, serves: with(counts(2, 0, 0), func(s *Sets) {
			s.unready = []unready{{"flux-system/base", hubv1.ClusterUnreachableReason, "no answer"}}
		}), want: status.Summary{Phase: status.Working, Reason: hubv1.ProgressingReason, Message: "0 of 2 add-ons are Ready"}},
		"OneSuspended": {valid: good, reachable: answers, serves: with(counts(2, 2, 0), func(s *Sets) { s.suspended = []string{"base/a"} }), want: status.Summary{Phase: status.Done, Reason: hubv1.SuspendedReason, Message: "all 2 add-ons are Ready; suspended: base/a"}},
		"Paused":       {valid: good, reachable: answers, paused: true, serves: counts(2, 2, 0), want: status.Summary{Phase: status.Done, Reason: hubv1.PausedReason, Message: "a test; its Flux objects are suspended"}},
		"PausedOnTheWay": {valid: good, reachable: answers, paused: true, serves: with(counts(2, 1, 0), func(s *Sets) {
			s.unready = []unready{{"flux-system/base", hubv1.PausedReason, "a test"}}
		}), want: status.Summary{Phase: status.Working, Reason: hubv1.PausedReason, Message: "a test; its Flux objects are suspended"}},
		"AddonFailed":    {valid: good, reachable: answers, serves: counts(3, 1, 1), want: status.Summary{Phase: status.Broken, Reason: hubv1.AddonsFailedReason, Message: "1 of 3 add-ons failed: base/a: boom"}},
		"AddonsOnTheWay": {valid: good, reachable: answers, serves: counts(3, 1, 0), want: status.Summary{Phase: status.Working, Reason: hubv1.ProgressingReason, Message: "1 of 3 add-ons are Ready"}},
		"Draining":       {valid: good, reachable: answers, draining: draining(hubv1.DrainInProgressReason), serves: counts(3, 2, 1), want: status.Summary{Phase: status.Working, Reason: hubv1.DrainInProgressReason, Message: "drain"}},
		"Drained":        {valid: good, reachable: answers, draining: draining(hubv1.DrainedReason), serves: counts(0, 0, 0), want: status.Summary{Phase: status.Done, Reason: hubv1.DrainedReason, Message: "drain"}},
		"DrainTimedOut":  {valid: good, reachable: answers, draining: draining(hubv1.DrainTimedOutReason), serves: counts(3, 2, 1), want: status.Summary{Phase: status.Broken, Reason: hubv1.DrainTimedOutReason, Message: "drain"}},
		"DrainHangs":     {valid: good, reachable: reachable("False", "DialTimeout"), draining: draining(hubv1.DrainInProgressReason), want: status.Summary{Phase: status.Broken, Reason: "DialTimeout", Message: "probe"}},
		"AllReady":       {valid: good, reachable: answers, serves: counts(3, 3, 0), want: status.Summary{Phase: status.Done, Reason: hubv1.SucceededReason, Message: "all 3 add-ons are Ready"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			reg := &hubv1.ClusterRegistration{Status: hubv1.ClusterRegistrationStatus{Conditions: []metav1.Condition{tc.valid, tc.reachable}, Sets: tc.sets}}
			if tc.maintenance != "" {
				reg.Status.Conditions = append(reg.Status.Conditions, metav1.Condition{Type: hubv1.MaintenanceCondition, Status: "True", Reason: tc.maintenance, Message: "at work"})
			}
			reg.Status.Credential = &hubv1.CredentialStatus{WorkloadIdentity: tc.identity}
			if tc.paused {
				reg.Status.Conditions = append(reg.Status.Conditions, metav1.Condition{Type: hubv1.SuspendedCondition, Status: "True", Reason: hubv1.PausedReason, Message: "a test"})
			}
			if tc.draining != nil {
				reg.Status.Conditions = append(reg.Status.Conditions, *tc.draining)
			}
			if got := tc.serves.summary(reg, Access{Waiting: tc.waiting, Refused: tc.refused}); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

// TestRowSaysThatItGoes: a cluster whose label is off is Ready for as long as the delay runs, and its row says what comes.
func TestRowSaysThatItGoes(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	reg := &hubv1.ClusterRegistration{}
	for _, typ := range []string{hubv1.KubeConfigValidCondition, hubv1.ReachableCondition} {
		status.Set(reg, typ, metav1.ConditionTrue, hubv1.SucceededReason, "", now)
	}
	says := func() metav1.Condition {
		(&Sets{counts: hubv1.ObjectCounts{Total: 2, Ready: 2}}).Summarize(reg, Access{}, now)
		return *status.Find(reg, hubv1.ReadyCondition)
	}
	if c := says(); c.Message != "all 2 add-ons are Ready" {
		t.Errorf("%+v", c)
	}
	status.Set(reg, hubv1.UnregisteringCondition, metav1.ConditionTrue, hubv1.LabelRemovedReason, "the label is gone", now)
	if c := says(); c.Status != metav1.ConditionTrue || c.Message != "the label is gone; all 2 add-ons are Ready" {
		t.Errorf("%+v", c)
	}
}

// TestOriginThatIsGoneIsToldOnce: the condition that counts the delay says that the Secret is gone, and what follows.
func TestOriginThatIsGoneIsToldOnce(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	reg := &hubv1.ClusterRegistration{}
	status.Set(reg, hubv1.KubeConfigValidCondition, metav1.ConditionFalse, hubv1.OriginNotFoundReason, "Secret one does not exist", now)
	status.Set(reg, hubv1.UnregisteringCondition, metav1.ConditionTrue, hubv1.OriginMissingReason, "Secret one is gone", now)
	(&Sets{}).Summarize(reg, Access{}, now)
	if c := status.Find(reg, hubv1.ReadyCondition); c.Reason != hubv1.OriginNotFoundReason || c.Message != "Secret one is gone" {
		t.Errorf("%+v", c)
	}
}

// TestWhatIsQuotedIsToldOnce: what the message of a delivery says, the registration says by quoting it; of other sets it says that itself.
func TestWhatIsQuotedIsToldOnce(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	reg := &hubv1.ClusterRegistration{}
	status.Set(reg, hubv1.KubeConfigValidCondition, metav1.ConditionTrue, hubv1.SucceededReason, "", now)
	status.Set(reg, hubv1.ReachableCondition, metav1.ConditionTrue, hubv1.ProbeSucceededReason, "", now)
	says := func(after time.Time, sets ...string) string {
		var deliveries []hubv1.AddonDelivery
		for i, set := range sets {
			d := hubv1.AddonDelivery{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: set}}
			d.Spec.AddonSetRef.Name, d.Spec.WithdrawAfter = set, &metav1.Time{Time: after}
			phase := status.Working
			if i > 0 {
				phase = status.Done
			}
			status.Set(&d, hubv1.RemovalsHeldCondition, metav1.ConditionTrue, hubv1.TooManyRemovalsReason, "held", now)
			status.Summarize(&d, status.Summary{Phase: phase, Reason: hubv1.OutOfReachReason, Message: "as it says itself"}, now)
			deliveries = append(deliveries, d)
		}
		s := Of(reg, deliveries, now)
		s.Report(reg, now)
		s.Summarize(reg, Access{}, now)
		return status.Find(reg, hubv1.ReadyCondition).Message
	}
	later := now.Add(time.Hour)
	const quoted = "0 of 0 add-ons are Ready; shop/a: as it says itself"
	for name, tc := range map[string]struct{ got, want string }{
		"Quoted":        {says(later, "a"), quoted},
		"Another":       {says(later, "a", "b"), quoted + "; not selected any more, and leaves unless it is selected again: shop/b after 2026-11-22T13:00:00Z"},
		"ItsTimeIsOver": {says(now, "a", "b"), quoted},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: it says %q, want %q", name, tc.got, tc.want)
		}
	}
	if n := reg.Status.Sets[0].Result; n != "Delivered: not selected any more" {
		t.Errorf("status.sets says %q", n)
	}
}
