// SPDX-License-Identifier: Apache-2.0

// Package tenure says since when this process does the hub's work. Delays and graces run from times in statuses, and must not pass while no
// process was at work.
package tenure

import (
	"sync"
	"time"
)

const (
	// lasts is for how long a leader that cannot renew its Lease goes on (cmd/hub). If one has not renewed it for longer, it stood still, and
	// another process may lead.
	lasts = 30 * time.Second
	// step is by how much the wall clock and the monotonic clock may differ between a renewal and a later time. NTP slews the wall clock by
	// less than a second in that time. A step of the wall clock makes them differ by more, and so does a suspension of the virtual machine,
	// unless both clocks stand still in it.
	step = 5 * time.Second
)

// Looks is how long it takes, at most, until a process that has begun to lead has looked at each cluster. Until then a status may tell of a
// time long ago, if no process was at work in between.
const Looks = 2 * time.Minute

// Tenure is the time for which this process leads. The zero value has not begun to. Of nil, nothing is noted, and nothing is known.
type Tenure struct {
	mu             sync.Mutex
	begun, renewed time.Time
	lost           bool // another process has the Lease
}

// Renew notes that the process had its lease at a time. The tenure begins anew if the process stood still since the last renewal, so that
// another process may have led, and if the clock was set: the times in statuses, from which graces and deadlines run, are of another clock.
func (t *Tenure) Renew(at time.Time) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.begun.IsZero() || at.Sub(t.renewed) >= lasts || t.stepped(at) {
		t.begun = at
	}
	t.renewed, t.lost = at, false
}

// Lose notes that another process has the Lease. A virtual machine that was suspended may not show it by its clocks.
func (t *Tenure) Lose() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lost = true
}

// Holds returns whether this process has its Lease, as far as it can know. It has not if another process has the Lease, if the last renewal
// is as long ago as a leader goes on without one, or if the clock was set since, as a suspension of the virtual machine does: another
// process may lead.
func (t *Tenure) Holds(now time.Time) bool {
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.begun.IsZero() && !t.lost && now.Sub(t.renewed) < lasts && !t.stepped(now)
}

// stepped returns whether the wall clock was set since the last renewal, in either direction. Two times without a monotonic reading never
// differ.
func (t *Tenure) stepped(now time.Time) bool {
	return (now.Round(0).Sub(t.renewed.Round(0)) - now.Sub(t.renewed)).Abs() > step
}

// Worked returns for how long this process has been at work since a time: before it there may have been none.
func (t *Tenure) Worked(since, now time.Time) time.Duration {
	if began := t.Since(now); began.After(since) {
		since = began
	}
	return now.Sub(since)
}

// Since returns since when this process leads; zero if it does not, or nothing is known. If the clock was set since the last renewal, that
// is now: the next renewal begins the tenure anew.
func (t *Tenure) Since(now time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.begun.IsZero() && t.stepped(now) {
		return now
	}
	return t.begun
}
