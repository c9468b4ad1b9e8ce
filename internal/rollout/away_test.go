// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/rollout"
)

// No hub was at work for hours in the middle of a rollout. What the deliveries say is from before. A soak that is over by the clock lets nobody
// start before the hub has seen what came of the canary, and a canary that nobody has looked at is not late.
func TestNoHubWasAtWork(t *testing.T) {
	edited := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	came := edited.Add(3 * time.Hour)
	canary := []hubv1.Wave{{Name: "canary", ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"ring": "canary"}},
		Soak: &metav1.Duration{Duration: 30 * time.Minute}}}
	for name, tc := range map[string]struct {
		started      time.Time
		ready        bool
		since, asked time.Time
		failed       bool
		starts       []string
		next         time.Time
		edited       bool // a moment ago: no cluster has the revision
	}{
		"ASoakIsOver":           {edited, true, came, came, false, nil, came.Add(2 * time.Minute), false},
		"AndItHasLooked":        {edited, true, came, came.Add(2 * time.Minute), false, []string{"other"}, came.Add(32 * time.Minute), false},
		"ItWasAlwaysThere":      {edited, true, time.Time{}, came, false, []string{"other"}, came.Add(30 * time.Minute), false},
		"TheRolloutBeganLater":  {came.Add(time.Second), true, came, came.Add(time.Minute), false, []string{"other"}, came.Add(31 * time.Minute), false},
		"NobodyHasLooked":       {edited, false, came, came, false, nil, came.Add(2 * time.Minute), false},
		"AndItIsLateNow":        {edited, false, came, came.Add(30 * time.Minute), true, nil, time.Time{}, false},
		"NoClusterHasItYet":     {edited, true, came, came.Add(time.Second), false, []string{"canary"}, came.Add(30*time.Minute + time.Second), true},
		"InTheSameSecond":       {came.Add(-time.Second), false, came.Add(-time.Second / 2), came, false, nil, came.Add(30*time.Minute - time.Second/2), false},
		"LateWhileItWatchedAll": {edited, false, time.Time{}, edited.Add(30 * time.Minute), true, nil, time.Time{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			strategy := must.Get(rollout.New(&hubv1.Rollout{Waves: canary})).Or(t)
			at := func(t time.Time) *metav1.Time { return new(metav1.NewTime(t)) }
			in := rollout.Input{Set: "a/b", Strategy: strategy, Revision: "two", Now: tc.asked, Since: tc.since,
				Same: func(*rollout.Cluster, string) bool { return false }, Exists: func(string) bool { return true },
				State: &hubv1.RolloutStatus{Revision: "two", CompletedRevision: "one", Wave: "canary", Phase: hubv1.RolloutProgressing, Started: at(tc.started)},
				Clusters: []rollout.Cluster{
					{Key: types.NamespacedName{Name: "canary"}, Labels: map[string]string{"ring": "canary"}, Revision: "two", Ready: tc.ready,
						Healthy: tc.ready, Start: &hubv1.DeliveryStart{Time: *at(tc.started), Healthy: true}},
					{Key: types.NamespacedName{Name: "other"}, Revision: "one", Ready: true, Healthy: true},
				}}
			if tc.edited {
				in.Clusters[0].Revision, in.Clusters[0].Start, in.State.WaveReady = "one", nil, nil
			} else if tc.ready {
				in.State.WaveReady = at(edited.Add(time.Minute))
			}
			if !tc.since.IsZero() {
				in.Known = tc.since.Add(2 * time.Minute)
			}
			out := rollout.Decide(in)
			var starts []string
			for i := range out.Starts {
				starts = append(starts, out.Starts[i].Cluster.Name)
			}
			if failed := len(out.State.FailedRevisions) > 0; failed != tc.failed || !slices.Equal(starts, tc.starts) || !out.Next.Equal(tc.next) {
				t.Errorf("failed: %t, starts %v, and it looks again at %s: %+v", failed, starts, out.Next, out.State)
			}
		})
	}
}
