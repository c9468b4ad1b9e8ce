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

// thisProcess is the name of the bench itself among the processes that spend processor time.
const thisProcess = "bench"

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

// share returns which part of the processors a process had of a time, from 0 to 1.
func (s spent) share(before spent, name string, of time.Duration) float64 {
	return float64(s[name]-before[name]) / float64(of) / float64(runtime.NumCPU())
}

// shares measures who has the processors until the function that it returns is called, which prints that, and returns the part of the API server and of
// the hub.
func (r *run) shares() (stop func() (api, hub float64, err error), err error) {
	look := func() (spent, error) {
		clusters, err := processorTime(r.workload.Processes())
		if err != nil {
			return nil, err
		}
		all, err := processorTime(append(r.management.Processes(), r.hub.process))
		if err != nil {
			return nil, err
		}
		for name, t := range clusters {
			if name != thisProcess {
				all["the clusters"] += t
			}
		}
		return all, nil
	}
	before, err := look()
	begin, hub := time.Now(), r.hub.process.Name
	return func() (float64, float64, error) {
		now, err := look()
		if err != nil {
			return 0, 0, err
		}
		of := func(name string) float64 { return now.share(before, name, time.Since(begin)) }
		_, _ = fmt.Fprintf(r.out, "  of the processors: API server %.0f %%, hub %.0f %%, etcd %.0f %%, the clusters' API server %.0f %%, bench %.0f %%\n",
			100*of(parts.KubeAPIServer), 100*of(hub), 100*of(parts.Etcd), 100*of("the clusters"), 100*of(thisProcess))
		return of(parts.KubeAPIServer), of(hub), nil
	}, err
}
