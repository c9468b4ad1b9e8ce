// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"runtime"
	"syscall"
	"time"

	"github.com/chandler-hub/chandler/test/localfleet"
	"github.com/chandler-hub/chandler/test/localfleet/parts"
)

// Names of what spends processor time, beside those of processes.
const (
	thisProcess = "bench"
	theClusters = "clusters"
)

// spent is the processor time of processes so far, by name.
type spent map[string]time.Duration

// processorTime returns what some processes have spent so far, and what this one has.
func processorTime(processes []*localfleet.Process) (spent, error) {
	var own syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err != nil {
		return nil, err
	}
	out := spent{thisProcess: time.Duration(own.Utime.Nano() + own.Stime.Nano())}
	for _, p := range processes {
		t, err := p.CPU()
		if err != nil {
			return nil, err
		}
		out[p.Name] += t
	}
	return out, nil
}

// shares is the beginning of a time for which is measured who has the processors of the machine.
type shares struct {
	before spent
	begin  time.Time
	hub    *localfleet.Process // nil if none runs
}

// allSpent is what all processes of a bench have spent so far.
func (r *run) allSpent(hub *localfleet.Process) (spent, error) {
	clusters, err := processorTime(r.workload.Processes())
	if err != nil {
		return nil, err
	}
	processes := r.management.Processes()
	if hub != nil {
		processes = append(processes, hub)
	}
	out, err := processorTime(processes)
	if err != nil {
		return nil, err
	}
	for name, t := range clusters {
		if name != thisProcess {
			out[theClusters] += t
		}
	}
	return out, nil
}

// share begins to measure who has the processors. hub is nil if none runs.
func (r *run) share(hub *localfleet.Process) (shares, error) {
	before, err := r.allSpent(hub)
	return shares{before, time.Now(), hub}, err
}

// shared says who had the processors since then, in which there were so many requests. It returns the part of the API server
// and that of the hub, from 0 to 1.
func (r *run) shared(s shares, requests float64) (api, hub float64, err error) {
	now, err := r.allSpent(s.hub)
	if err != nil {
		return 0, 0, err
	}
	of := func(name string) float64 {
		return float64(now[name]-s.before[name]) / float64(time.Since(s.begin)) / float64(runtime.NumCPU())
	}
	if s.hub != nil {
		hub = of(s.hub.Name)
	}
	api = of(parts.KubeAPIServer)
	each := (now[parts.KubeAPIServer] - s.before[parts.KubeAPIServer]).Seconds() * 1000 / requests
	_, _ = fmt.Fprintf(r.out, "  of the processors: API server %.0f %% (%.1f ms for each of %.0f requests), hub %.0f %%, etcd %.0f %%, "+
		"the clusters' API server %.0f %%, bench %.0f %%\n", 100*api, each, requests, 100*hub,
		100*of(parts.Etcd), 100*of(theClusters), 100*of(thisProcess))
	return api, hub, nil
}
