// SPDX-License-Identifier: Apache-2.0

package planned

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/delivery/observed"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/internal/teardown"
)

// No hub was at work for hours, and the status says of a cluster what the last one saw. The cluster may have answered all the time since. So a hub
// asks it before it orphans anything because of silence, and uninstalls if it answers.
func TestSilenceOfOldThatNobodyHasHeardSince(t *testing.T) {
	fell := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	came := fell.Add(5 * time.Hour)
	for name, tc := range map[string]struct {
		began, now time.Time
		answers    bool
		drained    time.Duration
		want       teardown.Mode
		wait       time.Duration
	}{
		"ItHasJustBegun":         {came, came, false, 0, teardown.Hold, 2 * time.Minute},
		"TheClusterAnswers":      {came, came.Add(5 * time.Second), true, 0, teardown.Uninstall, 0},
		"TheClusterDoesNot":      {came, came.Add(2 * time.Minute), false, 0, teardown.Orphan, 0},
		"ItWasThereAllTheTime":   {fell.Add(-time.Hour), fell.Add(time.Hour), false, 0, teardown.Orphan, 0},
		"AndTheGraceIsNotOver":   {fell.Add(-time.Hour), fell.Add(59 * time.Minute), false, 0, teardown.Hold, time.Minute},
		"ItBeganWithinTheGrace":  {fell.Add(30 * time.Minute), fell.Add(59 * time.Minute), false, 0, teardown.Hold, time.Minute},
		"ItBeganAtTheGracesEnd":  {fell.Add(59 * time.Minute), fell.Add(time.Hour), false, 0, teardown.Hold, time.Minute},
		"NothingIsKnownOfItself": {time.Time{}, came, false, 0, teardown.Orphan, 0},
		"ADrainIsCountedAnew":    {came, came.Add(30 * time.Minute), false, 30 * time.Minute, teardown.Hold, 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			reg := &hubv1.ClusterRegistration{}
			is := map[bool]metav1.ConditionStatus{true: metav1.ConditionTrue, false: metav1.ConditionFalse}[tc.answers]
			status.Set(reg, hubv1.ReachableCondition, is, "Probed", "", fell)
			if tc.drained > 0 {
				reg.Spec.DrainBeforeDeletion = &hubv1.DrainBeforeDeletion{Timeout: &metav1.Duration{Duration: tc.drained}}
				status.Set(reg, hubv1.DrainingCondition, metav1.ConditionTrue, hubv1.DrainInProgressReason, "", fell)
			}
			f := leavingSince(reg, fell, tc.began, tc.now, time.Hour)
			if got, wait := teardown.Addon(f), teardown.Wait(f); got.Mode != tc.want || wait != tc.wait {
				t.Errorf("%+v, and it looks again after %s", got, wait)
			}
		})
	}
}

// leavingSince returns what is known of an add-on whose delivery was deleted at a time, by a hub that began at another one.
func leavingSince(reg *hubv1.ClusterRegistration, deleted, began, now time.Time, grace time.Duration) teardown.Facts {
	k := plan.Key{Kind: "HelmRelease", Namespace: "flux-system", Name: "tenant1-a"}
	d := &Delivery{Delivery: &observed.Delivery{AddonDelivery: &hubv1.AddonDelivery{}, Leaving: true}}
	d.Namespace, d.Name, d.DeletionTimestamp = "flux-system", "base", new(metav1.NewTime(deleted))
	d.Before = d.AddonDelivery
	c := plannedOf(&observed.Cluster{Registration: reg, Now: now, Began: began, Objects: map[plan.Key]*observed.Object{k: {Delivery: "base"}}}, d)
	return c.Removal(plan.Observed{Key: k}, &hubconfig.Config{TeardownGrace: grace, RemovalDelay: 5 * time.Second})
}

// What this process has seen itself it need not look at again: a cluster that it has heard, and that is silent since, has its grace and no more.
func TestSilenceThatThisProcessHasSeen(t *testing.T) {
	began := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		fell, now time.Duration // since it began
		want      teardown.Mode
	}{
		"WithinTheGrace": {10 * time.Second, 14 * time.Second, teardown.Hold},
		"AfterTheGrace":  {10 * time.Second, 15 * time.Second, teardown.Orphan},
		"SilentBefore":   {-10 * time.Second, 15 * time.Second, teardown.Hold},
	} {
		t.Run(name, func(t *testing.T) {
			reg := &hubv1.ClusterRegistration{}
			status.Set(reg, hubv1.ReachableCondition, metav1.ConditionFalse, "Probed", "", began.Add(tc.fell))
			f := leavingSince(reg, began.Add(tc.fell), began, began.Add(tc.now), 5*time.Second)
			if got := teardown.Addon(f); got.Mode != tc.want {
				t.Errorf("%+v, want %s", got, tc.want)
			}
		})
	}
}

// A cluster went from one set to another that has the same add-on, and no hub was at work when the other one came. So a hub that starts waits for
// --removal-delay before it uninstalls: it may see the old set's delivery before it has made that of the new one.
func TestSomethingMayTakeOverThatNobodyHasSeenYet(t *testing.T) {
	left := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	came := left.Add(10 * time.Minute)
	for name, tc := range map[string]struct {
		began, now time.Time
		want       teardown.Mode
	}{
		"ItHasJustBegun":         {came, came.Add(time.Second), teardown.Hold},
		"NothingTakesItOver":     {came, came.Add(5 * time.Second), teardown.Uninstall},
		"ItWasThereAllTheTime":   {left.Add(-time.Hour), left.Add(5 * time.Second), teardown.Uninstall},
		"NothingIsKnownOfItself": {time.Time{}, came, teardown.Uninstall},
	} {
		t.Run(name, func(t *testing.T) {
			reg := &hubv1.ClusterRegistration{}
			status.Set(reg, hubv1.ReachableCondition, metav1.ConditionTrue, "Probed", "", left.Add(-time.Hour))
			if got := teardown.Addon(leavingSince(reg, left, tc.began, tc.now, time.Hour)); got.Mode != tc.want {
				t.Errorf("%+v, want %s", got, tc.want)
			}
		})
	}
}
