// SPDX-License-Identifier: Apache-2.0

package coverage

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/status"
)

// TestReadyIsReady: a set is not Ready while its clusters have something else, or nothing, and says what the guard holds while it is.
func TestReadyIsReady(t *testing.T) {
	const newest = "base-2-e1"
	all := hubv1.ClusterCounts{Matched: 3, Ready: 3, Updated: 3}
	of := func(phase hubv1.RolloutPhase) *hubv1.RolloutStatus {
		return &hubv1.RolloutStatus{Revision: "base-1-e1", Phase: phase}
	}
	for name, tc := range map[string]struct {
		revision string
		state    *hubv1.RolloutStatus
		fleet    Fleet
		invalid  error
		// ready, complete and healthy are the reasons of the conditions, with "!" before one that is not True.
		ready, complete, healthy, says string
	}{
		"Undone":         {newest, of(hubv1.RolloutRolledBack), Fleet{Counts: hubv1.ClusterCounts{Matched: 3, Ready: 3}}, nil, "!RolledBack", "!RolledBack", "Succeeded", "have revision base-1-e1 again"},
		"BeingUndone":    {newest, of(hubv1.RolloutRollingBack), Fleet{Counts: hubv1.ClusterCounts{Matched: 3}}, nil, "!RollingBack", "!RollingBack", "!Progressing", "get revision base-1-e1 again"},
		"LostAll":        {newest, of(hubv1.RolloutDone), Fleet{Counts: hubv1.ClusterCounts{Matched: 3, Updated: 2}, without: 1}, nil, "!AddonsLost", "Succeeded", "!Progressing", "nothing of this set"},
		"Held":           {newest, of(hubv1.RolloutDone), Fleet{Counts: hubv1.ClusterCounts{Matched: 3, Ready: 3, Updated: 3}, Held: &hubv1.HeldRemovals{Count: 2, Sample: []string{"w1"}}}, nil, "Succeeded", "Succeeded", "Succeeded", "removals are held on 2 clusters"},
		"NotBegun":       {newest, of(hubv1.RolloutProgressing), Fleet{Counts: hubv1.ClusterCounts{Matched: 3, Ready: 3}, later: []string{"w1"}}, nil, "!Progressing", "!Progressing", "Succeeded", "to come: w1"},
		"Soaking":        {newest, of(hubv1.RolloutSoaking), Fleet{Counts: hubv1.ClusterCounts{Matched: 3, Ready: 3, Updated: 1}, later: []string{"w1"}}, nil, "Succeeded", "!Soaking", "Succeeded", ""},
		"NeverCompiled":  {"", nil, Fleet{}, errors.New("no"), "!InvalidSpec", "!InvalidSpec", "!InvalidSpec", "no"},
		"DoesNotAnyMore": {newest, of(hubv1.RolloutDone), Fleet{Counts: all}, errors.New("no"), "!InvalidSpec", "!InvalidSpec", "Succeeded", "no"},
		"LastOfAWave":    {newest, of(hubv1.RolloutProgressing), Fleet{Counts: all}, nil, "Succeeded", "!Progressing", "Succeeded", ""},
		"Ready":          {newest, of(hubv1.RolloutDone), Fleet{Counts: all}, nil, "Succeeded", "Succeeded", "Succeeded", ""},
	} {
		t.Run(name, func(t *testing.T) {
			set := &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "base"}}
			set.Status.Revision, set.Status.Rollout = tc.revision, tc.state
			tc.fleet.Sum()
			tc.fleet.Summarize(set, tc.invalid, time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
			for typ, want := range map[string]string{hubv1.ReadyCondition: tc.ready, hubv1.RolloutCompleteCondition: tc.complete, hubv1.HealthyCondition: tc.healthy} {
				c := status.Find(set, typ)
				got := map[bool]string{false: "!"}[c.Status == metav1.ConditionTrue] + c.Reason
				if got != want {
					t.Errorf("%s is %s, want %s: %s", typ, got, want, c.Message)
				}
			}
			if says := status.Find(set, hubv1.ReadyCondition).Message; !strings.Contains(says, tc.says) {
				t.Errorf("it says %q", says)
			}
		})
	}
}
