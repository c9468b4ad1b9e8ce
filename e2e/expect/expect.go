// SPDX-License-Identifier: Apache-2.0

// Package expect holds the waiting and reading that the end-to-end tests share. It works on every platform that the
// management and workload clusters run on.
package expect

import (
	"fmt"
	"testing"
	"time"
)

// NoError ends the test at an error.
func NoError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Step runs one part of a long way. What comes after a failure would only add noise, so a failure ends the test.
func Step(t *testing.T, name string, f func(*testing.T)) {
	t.Helper()
	if !t.Run(name, f) {
		t.FailNow()
	}
}

// Patience is how long anything may take for which nobody has promised a time. It is far more than is needed, also on
// a small, busy machine. It is less than the five minutes for which Helm waits, and less than the hour after which
// the hub gives up on a cluster that does not answer. So a test cannot mistake what happens then for what must happen
// at once.
const Patience = 4 * time.Minute

// worthALine is the shortest wait that is logged. The log shows what a slow test waited for.
const worthALine = time.Second

// Soon waits until f returns nil. f must not be true because of the state before the change. Check a generation, a
// revision or a UID, or read back from the workload cluster.
func Soon(t *testing.T, what string, f func() error) {
	t.Helper()
	Within(t, Patience, what, f)
}

// Within is Soon for what was promised within a time.
func Within(t *testing.T, limit time.Duration, what string, f func() error) {
	t.Helper()
	start := time.Now()
	if err := wait(limit, f); err != nil {
		t.Fatalf("%s: not within %s: %v", what, limit, err)
	}
	if took := time.Since(start); took > worthALine {
		t.Logf("%s: after %s", what, took.Round(100*time.Millisecond))
	}
}

// Lasts waits until f has returned nil for a while without a break: work that was under way when something was
// stopped may still end.
func Lasts(t *testing.T, while time.Duration, what string, f func() error) {
	t.Helper()
	var since time.Time
	Soon(t, what, func() error {
		if err := f(); err != nil {
			since = time.Time{}
			return err
		}
		if since.IsZero() {
			since = time.Now()
		}
		if d := time.Since(since); d < while {
			return fmt.Errorf("it has been so for %s of %s", d.Round(time.Millisecond), while)
		}
		return nil
	})
}

// How often wait looks: often at first, since most waits are short, and then after an eighth of what the wait has taken, so that no wait is
// longer by more than that. Each look is a few live reads, and costs the API server that the hub and Flux wait for, too.
const (
	often  = 100 * time.Millisecond
	seldom = time.Second
	share  = 8
)

// wait calls f until it returns nil, and once more when the time is up, because this process itself may have slept.
func wait(limit time.Duration, f func() error) error {
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	for start := time.Now(); ; {
		if err := f(); err == nil {
			return nil
		}
		pause := min(seldom, max(often, time.Since(start)/share))
		select {
		case <-deadline.C:
			return f()
		case <-time.After(pause):
		}
	}
}
