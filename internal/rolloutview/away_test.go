// SPDX-License-Identifier: Apache-2.0

package rolloutview_test

import (
	"strings"
	"testing"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/rolloutview"
)

// TestLateForTheHubAlone: a hub that was away gives a cluster its whole deadline again. So whether one is late is what the hub counts, and not
// what this machine's clock says.
func TestLateForTheHubAlone(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*hubv1.RolloutStatus)
		want   string
	}{
		"the hub counts it": {func(*hubv1.RolloutStatus) {}, "Failed not Ready within 30m0s"},
		"the hub does not": {func(is *hubv1.RolloutStatus) {
			is.Phase, is.FailedRevisions, is.Waves[1].Failed, is.Waves[1].Running = hubv1.RolloutProgressing, nil, 2, 1
		}, "Running late by the clock, and not for the hub, which was away meanwhile, or has not looked yet"},
		"its failure is no matter of time": {func(is *hubv1.RolloutStatus) { is.Waves[1].Failed = 0 }, "Running late by"},
	} {
		t.Run(name, func(t *testing.T) {
			in := load(t, "testdata/failed/in.yaml")
			tc.change(in.Set.Status.Rollout)
			look := must.Get(rolloutview.Look(in)).Or(t)
			got := map[string]string{}
			for _, w := range look.Waves {
				for _, c := range w.Clusters {
					got[c.Key.Name] = c.State + " " + c.Why
				}
			}
			if !strings.HasPrefix(got["c3"], tc.want) || !strings.HasPrefix(got["c1"], "Failed web: ") || !strings.HasPrefix(got["canary1"], "Done") {
				t.Errorf("%v, want %q", got, tc.want)
			}
			p := must.Get(rolloutview.Status(in, true)).Or(t)
			var text strings.Builder
			if err := p.Flush(&text); err != nil || !strings.Contains(strings.Join(strings.Fields(text.String()), " "), " "+tc.want) {
				t.Errorf("%v, want %q:\n%s", err, tc.want, text.String())
			}
		})
	}
}
