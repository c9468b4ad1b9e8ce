// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"testing"
	"time"
)

// TestChartServerReadiness: a Service sends nobody to a replica before it serves.
func TestChartServerReadiness(t *testing.T) {
	s := &chartServer{address: "127.0.0.1:0"}
	if s.Ready(nil) == nil {
		t.Error("it is ready before it listens")
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Start(ctx) }()
	for deadline := time.Now().Add(time.Minute); s.Ready(nil) != nil; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not become ready")
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	taken := &chartServer{address: "256.0.0.1:0"}
	if err := taken.Start(t.Context()); err == nil || taken.Ready(nil) == nil {
		t.Errorf("it cannot listen, and says %v", err)
	}
}
