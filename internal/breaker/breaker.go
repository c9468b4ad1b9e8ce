// SPDX-License-Identifier: Apache-2.0

// Package breaker decides when the Flux objects of a cluster are suspended. It is pure: facts in, a decision out.
//
// While Flux tries to reach a dead cluster, each of its objects holds a worker until the connection times out, again
// and again. A few dead clusters starve all others. So after several failed probes in a row the breaker opens, and
// the hub suspends the cluster's Flux objects. The hub goes on with its own probe, which has a deadline. When a probe
// succeeds, the breaker closes.
package breaker

import (
	"fmt"
	"time"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// Facts are what a decision is made from.
type Facts struct {
	// Pause is the registration's spec.pause.
	Pause *hubv1.Pause
	// Open is the reason for which the objects are suspended now; empty if they are not.
	Open string
	// Answered is true if the cluster has ever answered: before that, nothing exists that could be suspended.
	Answered bool
	// Down is true if several probes in a row have failed, for a reason in the cluster or on the way to it.
	Down bool
	// DownSince is when Down began.
	DownSince time.Time
	// Expected is a state of the origin in which nothing can be applied; empty for none.
	Expected State
	// Maintenance is what the origin's own controller is doing with the cluster; empty for nothing.
	Maintenance State
	// Fleet sums up the last probes of all clusters.
	Fleet Fleet
	// Now is the time. Again is how long to wait before a doubt is checked again.
	Now   time.Time
	Again time.Duration
}

// State is the state of a cluster as its origin reports it.
type State struct {
	Reason, Message string
	// Restarts is true if API servers restart in this state, so that the cluster may not answer for a while.
	Restarts bool
}

// restart is how long an API server may be away while it restarts. After that the breaker opens all the same: an
// upgrade can hang forever, and must not hold Flux's workers.
const restart = 15 * time.Minute

// Fleet counts the clusters that were probed recently.
type Fleet struct{ Probed, Failed int }

// How many clusters, and which share of them, must fail at the same time before the hub suspects its own network.
const (
	suspectShare = 0.3
	suspectCount = 5
)

// Suspect returns whether so many clusters fail at the same time that the hub's own network is the likelier cause.
func (f Fleet) Suspect() bool {
	return f.Failed > suspectCount && float64(f.Failed) > suspectShare*float64(f.Probed)
}

// Decision says whether a cluster's Flux objects are suspended.
type Decision struct {
	// Reason is why they are suspended; empty if they are not.
	Reason, Message string
	// Doubt says why the breaker does not open although the probes fail; empty if there is no doubt.
	Doubt string
	// Wait is when to decide again even if no fact changes; 0 for never.
	Wait time.Duration
}

// Decide decides from the facts whether the objects are suspended.
func Decide(f Facts) Decision {
	var d Decision
	restarting := f.Maintenance.Restarts && f.Open != hubv1.ClusterUnreachableReason && f.Now.Sub(f.DownSince) < restart
	paused := f.Pause != nil && (f.Pause.Until == nil || f.Now.Before(f.Pause.Until.Time))
	switch {
	case paused:
		d.Reason, d.Message = hubv1.PausedReason, "spec.pause"
		if f.Pause.Until != nil {
			d.Message += " until " + f.Pause.Until.UTC().Format(time.RFC3339)
			d.Wait = f.Pause.Until.Sub(f.Now)
		}
		if f.Pause.Reason != "" {
			d.Message += ": " + f.Pause.Reason
		}
	case !f.Answered:
	case f.Expected.Reason != "":
		d.Reason, d.Message = f.Expected.Reason, f.Expected.Message
	case f.Down && restarting:
		d.Doubt = fmt.Sprintf("%s, and may not answer for %.0f minutes before its Flux objects are suspended", f.Maintenance.Message,
			restart.Minutes())
		d.Wait = f.DownSince.Add(restart).Sub(f.Now)
	case f.Down && f.Open != hubv1.ClusterUnreachableReason && f.Fleet.Suspect():
		d.Doubt = fmt.Sprintf("%d of the %d clusters that were probed a moment ago fail as well: the hub's own network is probably the cause, "+
			"so nothing is suspended", f.Fleet.Failed, f.Fleet.Probed)
		d.Wait = f.Again
	case f.Down:
		d.Reason, d.Message = hubv1.ClusterUnreachableReason,
			"the cluster has not answered several times in a row; its Flux objects are resumed when it does"
	}
	return d
}
