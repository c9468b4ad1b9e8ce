// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/hubscheme"
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
	counts := func(total, ready, failed int32) served {
		return served{counts: hubv1.ObjectCounts{Total: total, Ready: ready, Failed: failed}, failed: []string{"base/a: boom"}, why: []string{"flux-system/base wants a=b"}}
	}
	with := func(s served, change func(*served)) served {
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
		refused          *refusal
		sets             []hubv1.SetResult
		served           served
		want             status.Summary
	}{
		"NotReadyYet":    {valid: valid("False", hubv1.KubeConfigNotReadyReason), waiting: true, want: status.Summary{Phase: status.Working, Reason: hubv1.KubeConfigNotReadyReason, Message: "kubeconfig"}},
		"Malformed":      {valid: valid("False", "KubeConfigMalformed"), want: status.Summary{Phase: status.Broken, Reason: "KubeConfigMalformed", Message: "kubeconfig"}},
		"HubItself":      {valid: good, reachable: reachable("False", hubv1.HubItselfReason), refused: &refusal{hubv1.HubItselfReason, "the hub"}, want: status.Summary{Phase: status.Broken, Reason: hubv1.HubItselfReason, Message: "the hub"}},
		"NobodyProbes":   {valid: good, reachable: reachable("Unknown", hubv1.NotProbedReason), identity: "aws", served: counts(2, 0, 0), want: status.Summary{Phase: status.Working, Reason: hubv1.ProgressingReason, Message: "0 of 2 add-ons are Ready"}},
		"NobodyNeedsTo":  {valid: good, reachable: reachable("Unknown", hubv1.NotProbedReason), identity: "aws", served: counts(0, 0, 0), want: status.Summary{Phase: status.Done, Reason: hubv1.NoAddonSetReason, Message: "no AddonSet delivers to this cluster: flux-system/base wants a=b"}},
		"FluxFails":      {valid: good, reachable: reachable("False", hubv1.FluxFailsReason), identity: "aws", served: counts(2, 0, 0), want: status.Summary{Phase: status.Broken, Reason: hubv1.FluxFailsReason, Message: "probe"}},
		"NotProbed":      {valid: good, reachable: reachable("Unknown", hubv1.NotProbedReason), want: status.Summary{Phase: status.Working, Reason: hubv1.NotProbedReason, Message: "probe"}},
		"Unreachable":    {valid: good, reachable: reachable("False", "DialTimeout"), served: counts(2, 2, 0), want: status.Summary{Phase: status.Broken, Reason: "DialTimeout", Message: "probe"}},
		"Upgrading":      {valid: good, reachable: reachable("False", "DialTimeout"), maintenance: "ClusterUpgrading", want: status.Summary{Phase: status.Working, Reason: "ClusterUpgrading", Message: "at work: probe"}},
		"UpgradingUp":    {valid: good, reachable: answers, maintenance: "ClusterUpgrading", served: counts(1, 1, 0), want: status.Summary{Phase: status.Done, Reason: hubv1.SucceededReason, Message: "the add-on is Ready"}},
		"NoSet":          {valid: good, reachable: answers, served: counts(0, 0, 0), sets: []hubv1.SetResult{{Name: "flux-system/base", Result: "NotSelected: wants a=b"}}, want: status.Summary{Phase: status.Done, Reason: hubv1.NoAddonSetReason, Message: "no AddonSet delivers to this cluster: flux-system/base wants a=b"}},
		"StalledSet":     {valid: good, reachable: answers, served: served{why: []string{"flux-system/base does not compile"}}, sets: []hubv1.SetResult{{Name: "flux-system/base", Result: "Stalled: the set does not compile"}}, want: status.Summary{Phase: status.Done, Reason: hubv1.NoAddonSetReason, Message: "no AddonSet delivers to this cluster: flux-system/base does not compile"}},
		"JustSelected":   {valid: good, reachable: answers, served: served{pending: []string{"flux-system/base"}}, want: status.Summary{Phase: status.Working, Reason: hubv1.ProgressingReason, Message: "about to be delivered: flux-system/base"}},
		"BeforeItsWave":  {valid: good, reachable: answers, served: served{later: []string{"flux-system/base"}}, want: status.Summary{Phase: status.Done, Reason: hubv1.WaitingForWaveReason, Message: "waits for its wave: flux-system/base"}},
		"OneMore":        {valid: good, reachable: answers, served: with(counts(2, 2, 0), func(s *served) { s.pending = []string{"flux-system/more"} }), want: status.Summary{Phase: status.Working, Reason: hubv1.ProgressingReason, Message: "all 2 add-ons are Ready; about to be delivered: flux-system/more"}},
		"Leaving":        {valid: good, reachable: answers, served: with(counts(2, 2, 0), func(s *served) { s.leaving = []string{"flux-system/old (hello)"} }), want: status.Summary{Phase: status.Working, Reason: hubv1.AddonsLeavingReason, Message: "being withdrawn: flux-system/old (hello)"}},
		"LastOneLeaving": {valid: good, reachable: answers, served: served{leaving: []string{"flux-system/old"}}, want: status.Summary{Phase: status.Working, Reason: hubv1.AddonsLeavingReason, Message: "being withdrawn: flux-system/old"}},
		"FailedLeaving":  {valid: good, reachable: answers, served: with(counts(2, 1, 1), func(s *served) { s.leaving = []string{"flux-system/old"} }), want: status.Summary{Phase: status.Broken, Reason: hubv1.AddonsFailedReason, Message: "1 of 2 add-ons failed: base/a: boom; being withdrawn: flux-system/old"}},
		"OneBeingDropped": {valid: good, reachable: answers, served: with(counts(2, 2, 0), func(s *served) {
			s.unready = []unready{{"flux-system/base", hubv1.ProgressingReason, "x is Removing"}}
		}), want: status.Summary{Phase: status.Working, Reason: hubv1.ProgressingReason, Message: "all 2 add-ons are Ready; flux-system/base: x is Removing"}},
		"Held": {valid: good, reachable: answers, served: with(counts(2, 2, 0), func(s *served) {
			s.unready = []unready{{"flux-system/a", hubv1.ProgressingReason, "x is Removing"}, {"flux-system/base", hubv1.RemovalsHeldReason, "x stays"}}
		}), want: status.Summary{Phase: status.Working, Reason: hubv1.RemovalsHeldReason, Message: "all 2 add-ons are Ready; flux-system/base: x stays"}},
		"NotResumedYet": {valid: good, reachable: answers, served: with(counts(2, 0, 0), func(s *served) {
			s.unready = []unready{{"flux-system/base", hubv1.ClusterUnreachableReason, "no answer"}}
		}), want: status.Summary{Phase: status.Working, Reason: hubv1.ProgressingReason, Message: "0 of 2 add-ons are Ready"}},
		"OneSuspended": {valid: good, reachable: answers, served: with(counts(2, 2, 0), func(s *served) { s.suspended = []string{"base/a"} }), want: status.Summary{Phase: status.Done, Reason: hubv1.SuspendedReason, Message: "all 2 add-ons are Ready; suspended: base/a"}},
		"Paused":       {valid: good, reachable: answers, paused: true, served: counts(2, 2, 0), want: status.Summary{Phase: status.Done, Reason: hubv1.PausedReason, Message: "a test; its Flux objects are suspended"}},
		"PausedOnTheWay": {valid: good, reachable: answers, paused: true, served: with(counts(2, 1, 0), func(s *served) {
			s.unready = []unready{{"flux-system/base", hubv1.PausedReason, "a test"}}
		}), want: status.Summary{Phase: status.Working, Reason: hubv1.PausedReason, Message: "a test; its Flux objects are suspended"}},
		"AddonFailed":    {valid: good, reachable: answers, served: counts(3, 1, 1), want: status.Summary{Phase: status.Broken, Reason: hubv1.AddonsFailedReason, Message: "1 of 3 add-ons failed: base/a: boom"}},
		"AddonsOnTheWay": {valid: good, reachable: answers, served: counts(3, 1, 0), want: status.Summary{Phase: status.Working, Reason: hubv1.ProgressingReason, Message: "1 of 3 add-ons are Ready"}},
		"Draining":       {valid: good, reachable: answers, draining: draining(hubv1.DrainInProgressReason), served: counts(3, 2, 1), want: status.Summary{Phase: status.Working, Reason: hubv1.DrainInProgressReason, Message: "drain"}},
		"Drained":        {valid: good, reachable: answers, draining: draining(hubv1.DrainedReason), served: counts(0, 0, 0), want: status.Summary{Phase: status.Done, Reason: hubv1.DrainedReason, Message: "drain"}},
		"DrainTimedOut":  {valid: good, reachable: answers, draining: draining(hubv1.DrainTimedOutReason), served: counts(3, 2, 1), want: status.Summary{Phase: status.Broken, Reason: hubv1.DrainTimedOutReason, Message: "drain"}},
		"DrainHangs":     {valid: good, reachable: reachable("False", "DialTimeout"), draining: draining(hubv1.DrainInProgressReason), want: status.Summary{Phase: status.Broken, Reason: "DialTimeout", Message: "probe"}},
		"AllReady":       {valid: good, reachable: answers, served: counts(3, 3, 0), want: status.Summary{Phase: status.Done, Reason: hubv1.SucceededReason, Message: "all 3 add-ons are Ready"}},
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
			if got := summary(reg, resolution{waiting: tc.waiting}, tc.refused, tc.served); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestProbeKeysAreTakenApart(t *testing.T) {
	for _, key := range []types.NamespacedName{{Namespace: "tenants", Name: "tenant1"}, {Namespace: "a", Name: "b.c-d"}} {
		if got := registrationOf(probeKey(key, "admin.conf")); got != key {
			t.Errorf("got %v, want %v", got, key)
		}
	}
	if got := registrationOf("nonsense"); got != (types.NamespacedName{}) {
		t.Errorf("got %v of nonsense", got)
	}
}

func TestKubernetesMinor(t *testing.T) {
	for version, want := range map[string]string{"v1.33.4": "1.33", "v1.30.2+k3s1": "1.30", "v1.31.0-gke.100": "1.31", "": "", "v0.0.0-master+$Format:%H$": "0.0"} {
		if got := kubernetesMinor(version); got != want {
			t.Errorf("%q: %q, want %q", version, got, want)
		}
	}
}

// TestNothingStaysInThePool: a kubeconfig that is gone is probed no more.
func TestNothingStaysInThePool(t *testing.T) {
	var p probed
	var removed []string
	remove := func(k string) { removed = append(removed, k) }
	key := types.NamespacedName{Namespace: "tenants", Name: "tenant1"}
	p.replace(key, []candidate{{key: "admin.svc"}, {key: "admin.conf"}}, remove)
	p.replace(key, []candidate{{key: "admin.conf"}}, remove)
	p.replace(key, nil, remove)
	if want := []string{"tenants/tenant1/admin.svc", "tenants/tenant1/admin.conf"}; !slices.Equal(removed, want) {
		t.Errorf("removed %v, want %v", removed, want)
	}
	if len(p.keys) > 0 {
		t.Errorf("remembers %v", p.keys)
	}
}

// TestSetResultsAreShort: a set lists a thousand clusters by name, and does not select a hundred others. Each of these says so in a few
// words.
func TestSetResultsAreShort(t *testing.T) {
	names := make([]string, 1000)
	for i := range names {
		names[i] = fmt.Sprintf("tenant-of-a-long-name-%04d", i)
	}
	scheme := hubscheme.New()
	byName := func(op metav1.LabelSelectorOperator) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: hubv1.NameLabel, Operator: op, Values: names}}}
	}
	many := &metav1.LabelSelector{MatchLabels: map[string]string{}}
	for _, n := range names {
		many.MatchLabels["example.org/"+n] = "yes"
	}
	var sets []client.Object
	for name, selector := range map[string]*metav1.LabelSelector{"in": byName(metav1.LabelSelectorOpIn), "labels": many} {
		sets = append(sets, &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: name}, Spec: hubv1.AddonSetSpec{ClusterSelector: selector}})
	}
	r := &Reconciler{Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(sets...).Build(), Config: &hubconfig.Config{Shared: hubconfig.Shared{PlatformNamespaces: []string{"flux-system"}}}}
	for i := range 100 {
		reg := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "tenants", Name: fmt.Sprintf("other-%d", i)}}
		var s served
		if err := r.sets(t.Context(), reg, map[string]string{}, &s); err != nil {
			t.Fatal(err)
		}
		status.Summarize(reg, status.Summary{Phase: status.Done, Reason: hubv1.NoAddonSetReason, Message: noSet(s.why)}, time.Time{})
		if len(reg.Status.Sets) != 2 {
			t.Fatalf("%d sets are told of, want 2", len(reg.Status.Sets))
		}
		for _, one := range reg.Status.Sets {
			if n := len(one.Result); n > 300 || !strings.HasPrefix(one.Result, "NotSelected: wants ") {
				t.Fatalf("set %s is told of in %d characters: %.100s", one.Name, n, one.Result)
			}
		}
		if raw, err := json.Marshal(reg.Status); err != nil || len(raw) > 3000 {
			t.Fatalf("the status has %d bytes", len(raw))
		}
	}
}
