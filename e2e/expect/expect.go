// SPDX-License-Identifier: Apache-2.0

// Package expect is how the end-to-end tests wait, and what they ask management clusters and workload clusters for, whatever these
// run on.
package expect

import (
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

// Soon waits until f returns nil. It is the only way in which these tests wait.
func Soon(t *testing.T, what string, f func() error) {
	t.Helper()
	Within(t, 90*time.Second, what, f)
}

// Within is Soon with a limit of its own.
func Within(t *testing.T, limit time.Duration, what string, f func() error) {
	t.Helper()
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := f()
		if err == nil {
			return
		}
		select {
		case <-deadline.C:
			t.Fatalf("%s: not within %s: %v", what, limit, err)
		case <-tick.C:
		}
	}
}
