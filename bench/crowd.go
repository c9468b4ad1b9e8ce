// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	tens  = 60                     // clusters that come at ten a second
	tenth = 100 * time.Millisecond // between two of them
)

// crowd registers clusters at ten a second.
func (r *run) crowd(ctx context.Context) error {
	before, err := r.askedSoFar(ctx)
	if err != nil {
		return err
	}
	r.profile(ctx, "crowd")
	coming := names("ten", tens)
	following, stop := context.WithCancel(ctx)
	defer stop()
	var seen *steps
	if r.profiles != "" {
		if seen, err = r.follow(following); err != nil {
			return err
		}
	}
	took, err := r.arrive(ctx, coming, tenth)
	if err != nil {
		return err
	}
	if seen != nil {
		r.tellSlowest(seen, coming, took)
	}
	r.result.NewCluster10P50, r.result.NewCluster10P99 = percentile(took, 0.5), percentile(took, 0.99)
	r.came, err = r.askedSince(ctx, before, tens)
	return err
}

// replayCrowd has the bare client send, for as many clusters at the same pace, as many requests of each kind as the hub has
// sent for those that came at ten a second. So a tail that both have is the API server's.
func (r *run) replayCrowd(ctx context.Context) error {
	n := min(tens, len(r.replicas))
	took := make([]float64, n)
	var g errgroup.Group
	begin := time.Now()
	for i := range n {
		if err := r.wait(ctx, time.Until(begin.Add(time.Duration(i)*tenth))); err != nil {
			return err
		}
		g.Go(func() error {
			labelled := time.Now()
			made, err := r.raw.come(ctx, r.replicas[i], func(kind request) int { return share(r.came[kind]/tens*float64(n), i, n) })
			took[i] = float64(made.Sub(labelled).Microseconds()) / 1000
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	r.result.ReplayCluster10P50, r.result.ReplayCluster10P99 = percentile(took, 0.5), percentile(took, 0.99)
	return nil
}

// come sends the requests for a cluster that comes: its registration, then what says that it is reachable, then the rest.
func (r *raw) come(ctx context.Context, c replica, times func(request) int) (made time.Time, err error) {
	registration := c.statuses[registrations]
	if err := r.put(ctx, manifest{registrations, bareCopy(registration.obj)}); err != nil {
		return made, err
	}
	reachable := request{registrations.Group, registrations.Resource, "status", "PATCH"}
	if err := r.say(ctx, registration, times(reachable)); err != nil {
		return made, err
	}
	return r.play(ctx, c, func(kind request) int {
		if kind == reachable {
			return max(0, times(kind)-1)
		}
		return times(kind)
	})
}
