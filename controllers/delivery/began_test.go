// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/internal/teardown"
)

// No hub was at work for hours, and the status says of a cluster what the last one saw. The cluster may have answered all the time since. So a hub
// asks it before it lets anything go because of silence, and uninstalls if it answers.
func TestSilenceOfOldThatNobodyHasHeardSince(t *testing.T) {
	k := plan.Key{Kind: "HelmRelease", Namespace: "flux-system", Name: "tenant1-a"}
	fell := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	came := fell.Add(5 * time.Hour)
	for name, tc := range map[string]struct {
		began, now time.Time
		answers    bool
		want       teardown.Mode
		wait       time.Duration
	}{
		"ItHasJustBegun":         {came, came, false, teardown.Hold, 2 * time.Minute},
		"TheClusterAnswers":      {came, came, true, teardown.Uninstall, 0},
		"TheClusterDoesNot":      {came, came.Add(2 * time.Minute), false, teardown.LetGo, 0},
		"ItWasThereAllTheTime":   {fell.Add(-time.Hour), fell.Add(time.Hour), false, teardown.LetGo, 0},
		"AndTheGraceIsNotOver":   {fell.Add(-time.Hour), fell.Add(59 * time.Minute), false, teardown.Hold, time.Minute},
		"ItBeganWithinTheGrace":  {fell.Add(30 * time.Minute), fell.Add(59 * time.Minute), false, teardown.Hold, time.Minute},
		"ItBeganAtTheGracesEnd":  {fell.Add(59 * time.Minute), fell.Add(time.Hour), false, teardown.Hold, time.Minute},
		"NothingIsKnownOfItself": {time.Time{}, came, false, teardown.LetGo, 0},
	} {
		t.Run(name, func(t *testing.T) {
			reg := &hubv1.ClusterRegistration{}
			is := map[bool]metav1.ConditionStatus{true: metav1.ConditionTrue, false: metav1.ConditionFalse}[tc.answers]
			status.Set(reg, hubv1.ReachableCondition, is, "Probed", "", fell)
			deleted := metav1.NewTime(fell)
			d := &delivery{AddonDelivery: &hubv1.AddonDelivery{}, leaving: true}
			d.Namespace, d.Name, d.DeletionTimestamp = "flux-system", "base", &deleted
			d.before = d.AddonDelivery
			c := &cluster{registration: reg, now: tc.now, began: tc.began, deliveries: []*delivery{d}, objects: map[plan.Key]*object{k: {delivery: "base"}}}
			f := c.removal(plan.Observed{Key: k}, &hubconfig.Config{TeardownGrace: time.Hour})
			if got, wait := teardown.Addon(f), teardown.Wait(f); got.Mode != tc.want || wait != tc.wait {
				t.Errorf("%+v, and it looks again after %s", got, wait)
			}
		})
	}
}
