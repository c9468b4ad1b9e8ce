// SPDX-License-Identifier: Apache-2.0

// Package pace decides which statuses can wait. If ten add-ons become Ready one after the other, a delivery goes
// through ten states. Writing all ten does not help, and loads the API server in the middle of a fan-out. So a status
// that reports only progress waits for more progress. A status that reports Ready, a failure, a hold or a removal is
// written at once.
//
// A registration sums up its deliveries. Its counts wait longest, but its Ready is never older than theirs: it is
// written with the first delivery whose Ready changes, and with the first add-on that is Ready.
//
// A reader can tell that a status has waited: until it is written, observedGeneration is the old one (kstatus:
// InProgress), and readyRevision names the revision before.
//
// Shares and UnderWay divide other things between namespaces, so that one that asks for much leaves some for all.
package pace

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/chandler-hub/chandler/internal/memory"
)

const (
	first = 2 * time.Second // for the first status of an object: a user may be waiting for it
	later = 5 * time.Second // of a delivery
	// This is for the counts of a registration. People who want to follow an add-on look at its deliveries.
	sum = 30 * time.Second
)

// Waiting records since when each object's status has had something to write. The zero value is ready for use.
type Waiting struct {
	since memory.Map[types.NamespacedName, time.Time]
}

// For returns how long the status of an object is to wait from now; 0 if it is to be written now, or there is nothing
// to write. progress says whether the change is only progress. delay is the result of Delay.
func (w *Waiting) For(key types.NamespacedName, progress bool, delay time.Duration, now time.Time) time.Duration {
	var left time.Duration
	w.since.Update(key, func(since time.Time, known bool) (time.Time, bool) {
		if !known {
			since = now
		}
		if progress {
			left = max(since.Add(delay).Sub(now), 0)
		}
		return since, left > 0
	})
	return left
}

// Forget removes the record of an object that is gone.
func (w *Waiting) Forget(key types.NamespacedName) { w.since.Delete(key) }

// Sooner returns the shortest of several times to wait. It ignores 0, which means none.
func Sooner(waits ...time.Duration) time.Duration {
	var soonest time.Duration
	for _, wait := range waits {
		if wait > 0 && (soonest == 0 || wait < soonest) {
			soonest = wait
		}
	}
	return soonest
}
