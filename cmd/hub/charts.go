// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/chandler-hub/chandler/internal/manifestchart"
)

// chartServer serves the chart that delivers plain manifests. Every replica serves it, not only the leader: the bytes
// are the same, and Flux may ask at any time.
type chartServer struct {
	address string
	serves  atomic.Bool
}

// Ready is a readiness check. The hub answers health checks before its caches are complete, and serves the chart only
// after that. Until then, no Service may send Flux here.
func (s *chartServer) Ready(*http.Request) error {
	if !s.serves.Load() {
		return errors.New("the chart is not served yet")
	}
	return nil
}

// NeedLeaderElection tells the manager to run it in every replica.
func (s *chartServer) NeedLeaderElection() bool { return false }

// Start serves until the context is done.
func (s *chartServer) Start(ctx context.Context) error {
	listener, err := net.Listen("tcp", s.address)
	if err != nil {
		return fmt.Errorf("--chart-bind-address: %w", err)
	}
	server := &http.Server{Handler: manifestchart.Handler(), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 10 * time.Second}
	s.serves.Store(true)
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the chart: %w", err)
	}
	return nil
}
