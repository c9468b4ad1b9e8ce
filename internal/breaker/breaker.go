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
	// Answered is true if the cluster has ever answered: before that there is nothing to suspend.
	Answered bool
	// Down is true if the last probes failed, several in a row, for a reason that lies in the cluster or on the way to it.
	Down bool
	// DownSince is since when it has been Down.
	DownSince time.Time
	// Expected is a state of the origin in which nothing can be applied; empty for none.
	Expected State
	// Maintenance is what the origin's own controller does with the cluster; empty for nothing.
	Maintenance State
	// Fleet is how the probes of all clusters went lately.
	Fleet Fleet
	// Now is now, and Again how long until a doubt is looked at again.
	Now   time.Time
	Again time.Duration
}

// State is a state that the origin says its cluster is in.
type State struct {
	Reason, Message string
	// Restarts is true if API servers are restarted in that state, and so may not answer for a while.
	Restarts bool
}

// restart is how long an API server may be away while it is restarted. An upgrade can hang for ever, and Flux's workers are not to
// be held by it.
const restart = 15 * time.Minute

// Fleet counts the clusters that were probed a moment ago.
type Fleet struct{ Probed, Failed int }

// The share and the number of clusters that must fail at once before the hub suspects its own network.
const (
	suspectShare = 0.3
	suspectCount = 5
)

// Suspect returns whether so many clusters fail at once that the hub's own network is the likelier cause.
func (f Fleet) Suspect() bool {
	return f.Failed > suspectCount && float64(f.Failed) > suspectShare*float64(f.Probed)
}

// Decision says whether the objects are to be suspended.
type Decision struct {
	// Reason is empty if they are not.
	Reason, Message string
	// Doubt says why a breaker that should move does not; empty if it is not so.
	Doubt string
	// Wait is when to decide again by the passing of time alone; 0 for never.
	Wait time.Duration
}

// Decide returns the decision.
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
		d.Doubt = fmt.Sprintf("%s, and may not answer for %.0f minutes before its Flux objects are suspended", f.Maintenance.Message, restart.Minutes())
		d.Wait = f.DownSince.Add(restart).Sub(f.Now)
	case f.Down && f.Open != hubv1.ClusterUnreachableReason && f.Fleet.Suspect():
		d.Doubt = fmt.Sprintf("%d of the %d clusters that were probed a moment ago fail as well: the hub's own network is the suspect, and nothing is suspended", f.Fleet.Failed, f.Fleet.Probed)
		d.Wait = f.Again
	case f.Down:
		d.Reason, d.Message = hubv1.ClusterUnreachableReason, "the cluster has not answered several times in a row; its Flux objects are resumed when it does"
	}
	return d
}
