// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"
)

// idle measures what it costs the hub that Flux writes many statuses while nothing changes, and how much memory an idle
// hub holds.
func (r *run) idle(ctx context.Context) error {
	writes, err := r.hub.writes(ctx)
	if err != nil {
		return err
	}
	probe, err := r.probeCost(ctx)
	if err != nil {
		return err
	}
	events, objects := 0, r.observer.in(sets)
	probed, err := r.hub.probes(ctx)
	if err != nil {
		return err
	}
	r.profile(ctx, "noise")
	noisy, err := r.spent(ctx, r.noise, func(ctx context.Context) (err error) {
		events, err = r.reporter.noise(ctx, objects, idleRate)
		return err
	})
	if err != nil {
		return err
	}
	after, err := r.hub.writes(ctx)
	if err != nil {
		return err
	}
	r.result.IdleWrites = after - writes
	now, err := r.hub.probes(ctx)
	r.result.ProbeCPU = float64(probe.Microseconds()) / 1000
	r.result.IdleCPU = float64((noisy - time.Duration(now-probed)*probe).Microseconds()) / 1000 / float64(events)
	if err != nil {
		return err
	}
	r.save(ctx, "heap", "heap")
	r.atRest, err = r.measure(ctx)
	return err
}

// How long each measurement of probes takes, and how many probes it must see. The cost of fewer than twenty would be
// lost in the ticks by which processor time is counted.
const (
	probeLook    = 5 * time.Second
	enoughProbes = 20
)

// probeCost returns the processor time that the hub spends for one probe: everything that it does while nothing else
// happens.
func (r *run) probeCost(ctx context.Context) (time.Duration, error) {
	before, err := r.hub.probes(ctx)
	if err != nil {
		return 0, err
	}
	var spent time.Duration
	for range 1 + int(r.p.ProbeInterval.Duration/probeLook) {
		more, err := r.spent(ctx, probeLook, nil)
		if err != nil {
			return 0, err
		}
		spent += more
		if now, err := r.hub.probes(ctx); err != nil || now-before >= enoughProbes {
			return spent / time.Duration(max(1, now-before)), err
		}
	}
	return 0, nil
}

// spent returns how much processor time the hub spends while a function runs for a given time.
func (r *run) spent(ctx context.Context, d time.Duration, do func(context.Context) error) (time.Duration, error) {
	before, err := r.hub.cpu()
	if err != nil {
		return 0, err
	}
	during, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	if do != nil {
		if err := do(during); err != nil {
			return 0, err
		}
	}
	<-during.Done()
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	after, err := r.hub.cpu()
	return after - before, err
}
