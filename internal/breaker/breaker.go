// SPDX-License-Identifier: Apache-2.0

// Package breaker decides when the Flux objects of a cluster are suspended. It is pure: facts in, a decision out.
//
// While Flux tries to reach a dead cluster, each of its objects holds a worker until the connection times out, again
// and again. A few dead clusters starve all others. So after several failed probes in a row the breaker opens, and
// the hub suspends the cluster's Flux objects. The hub goes on with its own probe, which has a deadline. When a probe
// succeeds, the breaker closes.
//
// A cluster may also answer the probe and not Flux, which waits for some of its first answers without a deadline. The hub sees that
// Flux has waited for minutes. Then the breaker opens too. It closes when Flux has gone on, or after a while, to try the cluster
// again: a suspended object does not show whether Flux would get an answer.
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
	// Open is the reason for which the objects are suspended now, and OpenSince since when; empty if they are not.
	Open      string
	OpenSince time.Time
	// Answered is true if the cluster has ever answered: before that, nothing exists that could be suspended.
	Answered bool
	// Down is true if several probes in a row have failed, for a reason in the cluster or on the way to it.
	Down bool
	// DownSince is when Down began.
	DownSince time.Time
	// Refused is true if Down is because the cluster answers, and refuses the credential.
	Refused bool
	// Waiting is since when Flux has waited for a first answer of a cluster that answers the hub; zero if it does not wait. Hanging counts
	// the clusters of which Flux has waited for so long that their breakers would open.
	Waiting time.Time
	Hanging Fleet
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

const (
	// HangsAfter is how long Flux may wait for a first answer. A cluster that answers the hub's probe answers within seconds.
	HangsAfter = 5 * time.Minute
	// HangsFor is how long the breaker is open before Flux tries the cluster again. Each try may cost Flux as many workers as the cluster
	// has objects.
	HangsFor = 30 * time.Minute
)

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
	restarting := f.Maintenance.Restarts && !hubv1.Tripped(f.Open) && f.Now.Sub(f.DownSince) < restart
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
	case f.Down && !hubv1.Tripped(f.Open) && f.Fleet.Suspect():
		d.Doubt = fmt.Sprintf("%d of the %d clusters that were probed a moment ago fail as well: the hub's own network is probably the cause, "+
			"so nothing is suspended", f.Fleet.Failed, f.Fleet.Probed)
		d.Wait = f.Again
	case f.Down && f.Refused:
		d.Reason, d.Message = hubv1.CredentialRefusedReason,
			"the cluster refuses the credential of the kubeconfig; its Flux objects are resumed when it accepts one"
	case f.Down:
		d.Reason, d.Message = hubv1.ClusterUnreachableReason,
			"the cluster has not answered several times in a row; its Flux objects are resumed when it does"
	case !f.Waiting.IsZero():
		d.hangs(&f)
	}
	return d
}

// hangs decides about a cluster that answers the hub, and lets Flux wait.
func (d *Decision) hangs(f *Facts) {
	begins, ends := f.Waiting.Add(HangsAfter), f.OpenSince.Add(HangsFor)
	switch open := f.Open == hubv1.FluxHangsReason; {
	case open && !f.Now.Before(ends):
		return
	case open:
		d.Wait = min(ends.Sub(f.Now), f.Again)
	case f.Now.Before(begins):
		d.Wait = begins.Sub(f.Now)
		return
	case f.Hanging.Suspect():
		d.Doubt = fmt.Sprintf("Flux waits for %d of %d clusters: Flux itself is probably the cause, so nothing is suspended",
			f.Hanging.Failed, f.Hanging.Probed)
		d.Wait = f.Again
		return
	}
	d.Reason, d.Message = hubv1.FluxHangsReason, fmt.Sprintf("the cluster answers the hub, and Flux has waited for its answer for more than "+
		"%.0f minutes, so that it may hold workers of Flux until Flux's controllers are restarted; Flux tries it again %.0f minutes later",
		HangsAfter.Minutes(), HangsFor.Minutes())
}
