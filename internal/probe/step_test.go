// SPDX-License-Identifier: Apache-2.0

package probe_test

import (
	"context"
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"

	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/probe"
)

// TestStep: a pool that goes by steps asks what is due, in the caller's goroutine, and says what is news and when to come again.
func TestStep(t *testing.T) {
	c := testclock.NewFakeClock(time.Unix(1e9, 0))
	asked := 0
	pool := probe.NewPool(probe.PoolOptions{
		Clock: c, Interval: time.Minute, Random: func() float64 { return 0.5 },
		Probe: func(context.Context, *kubeconfig.Config) probe.Result {
			asked++
			return probe.Result{Time: c.Now(), ClusterUID: "one"}
		},
	})
	if changed, _, timed := pool.Step(t.Context()); len(changed) > 0 || timed {
		t.Errorf("nobody is to be asked, and %v changed", changed)
	}
	pool.Set("a/b/value", &kubeconfig.Config{})
	changed, wait, timed := pool.Step(t.Context())
	if asked != 1 || len(changed) != 1 || changed[0] != "a/b/value" || wait != time.Minute || !timed {
		t.Errorf("%d asked, %v changed, look again in %s (%t)", asked, changed, wait, timed)
	}
	if changed, _, _ := pool.Step(t.Context()); asked != 1 || len(changed) > 0 {
		t.Errorf("asked %d times, %v changed, and nothing was due", asked, changed)
	}
	c.Step(time.Minute)
	if changed, _, _ := pool.Step(t.Context()); asked != 2 || len(changed) > 0 {
		t.Errorf("asked %d times, %v changed; want a second time, and no news", asked, changed)
	}
}
