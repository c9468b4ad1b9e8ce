// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clock "k8s.io/utils/clock/testing"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/origin"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/internal/teardown"
)

// Each reason for which a registration is about to go has a delay of its own, from its own beginning.
func TestUnregistering(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	missing, unlabelled := origin.Verdict{Origin: teardown.OriginGone}, origin.Verdict{Origin: teardown.OriginUnwanted}
	for name, tc := range map[string]struct {
		kind    origin.Kind
		was     string // the reason, for half an hour
		verdict origin.Verdict
		with    func(*hubv1.ClusterRegistration)
		want    string
		since   time.Duration
	}{
		"Wanted":                {kind: origin.Secret, was: hubv1.OriginMissingReason, verdict: origin.Verdict{Origin: teardown.OriginWanted}},
		"SecretGone":            {kind: origin.Secret, verdict: missing, want: hubv1.OriginMissingReason},
		"SecretGoneForAWhile":   {kind: origin.Secret, was: hubv1.OriginMissingReason, verdict: missing, want: hubv1.OriginMissingReason, since: 30 * time.Minute},
		"SecretWithoutItsLabel": {kind: origin.Secret, was: hubv1.OriginMissingReason, verdict: unlabelled, want: hubv1.LabelRemovedReason},
		"SecretGoneAfterThat":   {kind: origin.Secret, was: hubv1.LabelRemovedReason, verdict: missing, want: hubv1.OriginMissingReason},
		"SecretNeverSeen":       {kind: origin.Secret, verdict: missing, with: func(r *hubv1.ClusterRegistration) { r.Status.OriginUID = "" }},
		"HasItsOwnWayIn":        {kind: origin.Secret, verdict: missing, with: func(r *hubv1.ClusterRegistration) { r.Spec.KubeConfig = &hubv1.KubeConfigSource{} }},
		"DeletedWithIt": {kind: origin.Secret, verdict: missing, want: hubv1.OriginMissingReason, with: func(r *hubv1.ClusterRegistration) {
			r.Spec.KubeConfig, r.DeletionTimestamp = &hubv1.KubeConfigSource{}, &metav1.Time{Time: now}
		}},
		"ClusterGone":            {kind: origin.Kamaji, verdict: missing},
		"ClusterWithoutItsLabel": {kind: origin.Kamaji, verdict: unlabelled, want: hubv1.LabelRemovedReason},
	} {
		t.Run(name, func(t *testing.T) {
			ref := tc.kind.Reference("one")
			reg := &hubv1.ClusterRegistration{Spec: hubv1.ClusterRegistrationSpec{OriginRef: &ref}}
			reg.Status.OriginUID = "u"
			if tc.was != "" {
				status.Set(reg, hubv1.UnregisteringCondition, metav1.ConditionTrue, tc.was, "", now.Add(-30*time.Minute))
			}
			if tc.with != nil {
				tc.with(reg)
			}
			r := &Reconciler{Config: &hubconfig.Config{}, Clock: clock.NewFakePassiveClock(now)}
			r.unregistering(reg, tc.verdict)
			c := status.Find(reg, hubv1.UnregisteringCondition)
			if got := status.Reason(reg, hubv1.UnregisteringCondition); got != tc.want || c != nil && now.Sub(c.LastTransitionTime.Time) != tc.since {
				t.Errorf("got %+v, want %s for %s", c, tc.want, tc.since)
			}
		})
	}
}

// With rules, it may be a rule that does not match any more.
func TestUnregisteringByRule(t *testing.T) {
	ref := origin.Secret.Reference("one")
	reg := &hubv1.ClusterRegistration{Spec: hubv1.ClusterRegistrationSpec{OriginRef: &ref}}
	r := &Reconciler{Config: &hubconfig.Config{Shared: hubconfig.Shared{Origins: origin.Policy{Rules: make([]origin.Rule, 1)}}, DeselectionDelay: 5 * time.Minute},
		Clock: clock.NewFakePassiveClock(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC))}
	r.unregistering(reg, origin.Verdict{Origin: teardown.OriginUnwanted})
	want := `Secret "one" has no label chandler.dev/register, and no registration rule matches it: it is unregistered 5m0s after that, unless either comes back`
	if c := status.Find(reg, hubv1.UnregisteringCondition); c == nil || c.Reason != hubv1.LabelRemovedReason || c.Message != want {
		t.Errorf("got %+v", c)
	}
}

// The key of the kubeconfig is the one that the rule names, unless the Secret names one.
func TestKeyByRule(t *testing.T) {
	ref := origin.Secret.Reference("one")
	reg := &hubv1.ClusterRegistration{Spec: hubv1.ClusterRegistrationSpec{OriginRef: &ref}}
	for want, annotations := range map[string]map[string]string{"config": nil, "own": {hubv1.KubeConfigKeyAnnotation: "own"}} {
		obj := &unstructured.Unstructured{Object: map[string]any{}}
		obj.SetName("one")
		obj.SetAnnotations(annotations)
		source, _, err := kubeConfigSource(reg, obj, origin.Verdict{Origin: teardown.OriginWanted, By: &origin.Ruling{Rule: "a", Key: "config"}})
		if err != nil || source.Key != want || source.Secret != "one" {
			t.Errorf("got %+v, %v; want key %s", source, err, want)
		}
	}
}

// TestLost: only a registration that goes because its Secret was not there for the grace is orphaned; one that somebody deletes is
// unregistered.
func TestLost(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		reason  string
		since   time.Duration // before it was deleted
		verdict teardown.Origin
		want    bool
	}{
		"GraceIsOver":     {hubv1.OriginMissingReason, time.Hour, teardown.OriginGone, true},
		"DeletedBefore":   {hubv1.OriginMissingReason, time.Minute, teardown.OriginGone, false},
		"HeldByTheGuard":  {hubv1.OriginLostReason, time.Minute, teardown.OriginGone, true},
		"SecretIsBack":    {hubv1.OriginLostReason, time.Hour, teardown.OriginWanted, false},
		"ByHand":          {"", 0, teardown.OriginGone, false},
		"UnregisteredNow": {hubv1.UnregisteredReason, time.Hour, teardown.OriginGone, false},
	} {
		ref := origin.Secret.Reference("one")
		reg := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{Time: now}}, Spec: hubv1.ClusterRegistrationSpec{OriginRef: &ref}}
		reg.Status.OriginUID = "u"
		if tc.reason != "" {
			status.Set(reg, hubv1.UnregisteringCondition, metav1.ConditionTrue, tc.reason, "", now.Add(-tc.since))
		}
		if got := lost(reg, origin.Verdict{Origin: tc.verdict}, teardown.RegistrationFacts{Since: now, Now: now.Add(time.Hour), Grace: time.Hour}); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// A registration with a kubeconfig of its own outlives the Secret that it came from. Nothing asks for it then, and its owner may delete it.
func TestSeen(t *testing.T) {
	secret, tenant := origin.Secret.Reference("one"), origin.Kamaji.Reference("one")
	own := &hubv1.KubeConfigSource{}
	for name, tc := range map[string]struct {
		spec hubv1.ClusterRegistrationSpec
		seen bool
	}{
		"HasItsOwnWayIn":          {hubv1.ClusterRegistrationSpec{OriginRef: &secret, KubeConfig: own}, false},
		"NeedsItsOrigin":          {hubv1.ClusterRegistrationSpec{OriginRef: &secret}, true},
		"OfAClusterThatIsDeleted": {hubv1.ClusterRegistrationSpec{OriginRef: &tenant, KubeConfig: own}, true},
	} {
		t.Run(name, func(t *testing.T) {
			reg := &hubv1.ClusterRegistration{Spec: tc.spec}
			reg.UID, reg.Status.OriginUID, reg.Status.OriginSeenBy = "r", "o", "r"
			if seen(reg, nil, origin.Verdict{Origin: teardown.OriginUnknown}); reg.Status.OriginSeenBy != reg.UID {
				t.Error("nobody knows whether the origin is gone, and the hub does not see it any more")
			}
			if seen(reg, nil, origin.Verdict{Origin: teardown.OriginGone}); (reg.Status.OriginSeenBy != "") != tc.seen || !reg.SawOrigin() {
				t.Errorf("after the origin has gone, it was seen by %q", reg.Status.OriginSeenBy)
			}
		})
	}
}
