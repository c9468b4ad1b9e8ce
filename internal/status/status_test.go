// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"testing"
	"time"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/status"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// TestSummarizeIsReadByKstatus asks kstatus itself, on all three kinds: whoever waits for them with Flux or kubectl sees
// just this.
func TestSummarizeIsReadByKstatus(t *testing.T) {
	cases := map[string]struct {
		outcome status.Summary
		stale   bool
		want    kstatus.Status
	}{
		"Done":    {status.Summary{Phase: status.Done, Reason: hubv1.SucceededReason}, false, kstatus.CurrentStatus},
		"Working": {status.Summary{Phase: status.Working, Reason: hubv1.ProgressingReason}, false, kstatus.InProgressStatus},
		"Broken":  {status.Summary{Phase: status.Broken, Reason: hubv1.FailedReason}, false, kstatus.InProgressStatus},
		"Stalled": {status.Summary{Phase: status.Stalled, Reason: hubv1.InvalidSpecReason}, false, kstatus.FailedStatus},
		"Edited":  {status.Summary{Phase: status.Done, Reason: hubv1.SucceededReason}, true, kstatus.InProgressStatus},
	}
	for name, tc := range cases {
		for kind, obj := range map[string]status.Object{
			"AddonSet": &hubv1.AddonSet{}, "ClusterRegistration": &hubv1.ClusterRegistration{}, "AddonDelivery": &hubv1.AddonDelivery{},
		} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				obj.(metav1.Object).SetGeneration(2)
				status.Summarize(obj, status.Summary{Phase: status.Working, Reason: hubv1.ProgressingReason}, now.Add(-time.Hour))
				status.Summarize(obj, tc.outcome, now)
				if tc.stale {
					obj.(metav1.Object).SetGeneration(3)
				}
				m := must.Get(runtime.DefaultUnstructuredConverter.ToUnstructured(obj)).Or(t)
				got := must.Get(kstatus.Compute(&unstructured.Unstructured{Object: m})).Or(t)
				if got.Status != tc.want {
					t.Errorf("kstatus says %s (%s), want %s", got.Status, got.Message, tc.want)
				}
			})
		}
	}
}

// TestSummarizeTwiceChangesNothing guards the zero-writes rule: a condition that is removed and added again would get a
// new transition time, and so a write, each time.
func TestSummarizeTwiceChangesNothing(t *testing.T) {
	for _, phase := range []status.Phase{status.Done, status.Working, status.Broken, status.Stalled} {
		set := &hubv1.AddonSet{}
		status.Summarize(set, status.Summary{Phase: phase, Reason: "R", Message: "m"}, now)
		before := set.DeepCopy()
		status.Summarize(set, status.Summary{Phase: phase, Reason: "R", Message: "m"}, now.Add(time.Hour))
		if d := cmp.Diff(before, set); d != "" {
			t.Errorf("phase %d: %s", phase, d)
		}
	}
}

func TestExpiresIn(t *testing.T) {
	for left, want := range map[time.Duration]string{
		-time.Second: "expired", 0: "expired", time.Minute: "1h", 23*time.Hour + time.Minute: "24h",
		24 * time.Hour: "1d", 29*24*time.Hour + time.Hour: "29d", 90 * 24 * time.Hour: "90d", 91 * 24 * time.Hour: ">90d",
	} {
		if got := status.ExpiresIn(now.Add(left), now); got != want {
			t.Errorf("%s: %q, want %q", left, got, want)
		}
	}
}

func TestOnline(t *testing.T) {
	for name, tc := range map[string]struct {
		reachable metav1.ConditionStatus // empty: no condition
		identity  string
		want      bool
	}{
		"New":              {"", "", false},
		"NotProbed":        {metav1.ConditionUnknown, "", false},
		"Answers":          {metav1.ConditionTrue, "", true},
		"Silent":           {metav1.ConditionFalse, "", false},
		"IdentityNew":      {"", "aws", true},
		"IdentityUntried":  {metav1.ConditionUnknown, "aws", true},
		"IdentitySucceeds": {metav1.ConditionTrue, "aws", true},
		"IdentityFails":    {metav1.ConditionFalse, "aws", false},
	} {
		t.Run(name, func(t *testing.T) {
			reg := &hubv1.ClusterRegistration{Status: hubv1.ClusterRegistrationStatus{Credential: &hubv1.CredentialStatus{WorkloadIdentity: tc.identity}}}
			if tc.reachable != "" {
				status.Set(reg, hubv1.ReachableCondition, tc.reachable, "Some", "", time.Unix(0, 0))
			}
			if got := status.Online(reg); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestCount(t *testing.T) {
	for want, got := range map[string]string{
		"0 clusters": status.Count(0, "cluster"), "1 cluster": status.Count(1, "cluster"), "2 add-ons": status.Count(int32(2), "add-on"),
		"the add-on is Ready": status.SomeReady(1, 1), "the add-on is not Ready": status.SomeReady(0, 1), "all 2 add-ons are Ready": status.SomeReady(2, 2),
		"1 of 3 add-ons are Ready": status.SomeReady(1, 3), "0 of 0 add-ons are Ready": status.SomeReady(0, 0),
		"1 cluster is": status.Are(1, "cluster"), "2 clusters are": status.Are(2, "cluster"),
		"1 delivery": status.Count(1, "delivery"), "3 deliveries": status.Count(3, "delivery"),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
