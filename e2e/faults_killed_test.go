// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/e2e/expect"
	"github.com/chandler-hub/chandler/test/faultyapi"
)

// kills is how many times TestKilled kills the hub.
const kills = 50

// TestKilled ends the hub with SIGKILL, at random moments while add-ons arrive, change and leave. Some moments are just before
// a write of the hub lands, some just after it and before the hub knows, some anywhere else.
func TestKilled(t *testing.T) {
	expect.AtNight(t, "TestExitsOfDelivery and its like of the simulation, which end the hub at each of its requests; TestRollout kills a real one")
	beside(t)
	dice := rand.New(rand.NewPCG(seed(t), 0))
	start := time.Now()
	o := startOrdeal(t, "killed")
	var done, before, after, between int
	o.befall = func(t *testing.T) {
		for range 3 + dice.IntN(2) {
			switch m := randomMoment(dice); {
			case !o.kill(t, m):
				between++
			case m.landed:
				after++
			default:
				before++
			}
			done++
		}
	}
	for done < kills {
		o.round(t)
	}
	o.befall = func(*testing.T) {}
	o.leave(t)
	t.Logf("%d kills in %s: %d before a write landed, %d after, %d in between", done, time.Since(start).Round(time.Second), before, after, between)
}

// moment is when the hub is killed.
type moment struct {
	write  int64 // at so many writes from now; 0: at none
	landed bool  // when that write has landed, not before
	limit  time.Duration
}

func randomMoment(dice *rand.Rand) moment {
	if dice.IntN(4) == 0 {
		return moment{limit: time.Duration(dice.Int64N(int64(1500 * time.Millisecond)))}
	}
	return moment{write: 1 + dice.Int64N(5), landed: dice.IntN(2) == 0, limit: 2500 * time.Millisecond}
}

// kill kills the hub at a moment and starts it again. It returns whether that was at a write.
func (o *ordeal) kill(t *testing.T, m moment) (atWrite bool) {
	t.Helper()
	reached := make(chan struct{})
	var writes atomic.Int64
	o.api.Follow(func(r faultyapi.Request) faultyapi.Fault {
		if !r.Writes() || writes.Add(1) != m.write {
			return faultyapi.Fault{}
		}
		return faultyapi.Fault{Landed: m.landed, Hang: func() { close(reached) }}
	})
	select {
	case <-reached:
		atWrite = true
	case <-time.After(m.limit):
	case <-o.process.Done():
		t.Fatal(o.process.Err()) // by itself
	}
	o.process.Kill()
	o.api.Follow(nil)
	// A killed process cannot give its Lease back, and the next one would wait for 35 seconds.
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "hub.chandler.dev"}}
	check(t, client.IgnoreNotFound(o.Client.Delete(t.Context(), lease)))
	o.start(t)
	return atWrite
}
