// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/fluxstate"
	"github.com/chandler-hub/chandler/internal/guard"
	"github.com/chandler-hub/chandler/internal/plan"
)

// Addon returns the status of the add-on that a step is about, without Since. It returns false if another delivery
// reports on that add-on.
func Addon(c *Cluster, d *Delivery, s Step) (hubv1.AddonStatus, bool) {
	if s.Leaving() {
		return d.leaving(&s, c.Objects[s.Key])
	}
	if s.Wanted == nil || s.By != d.key() {
		return hubv1.AddonStatus{}, false
	}
	return d.arriving(c, &s, c.Objects[s.Key]), true
}

// leaving returns the status of an add-on whose object is to go.
func (d *Delivery) leaving(s *Step, o *Object) (hubv1.AddonStatus, bool) {
	if !d.owns(o) || o.Foreign {
		return hubv1.AddonStatus{}, false
	}
	before := d.before(s.Addon)
	begun := o.Deleting && o.Suspended && s.Verb != plan.Uninstall || s.Verb == plan.HandOver && s.Err != nil
	if begun && s.Verb != plan.Orphan && before.State == hubv1.AddonOrphaned && before.TakenOverBy != nil && before.Object == o.Key.Name {
		return before, true // it is on its way, whatever holds up the one that takes it over
	}
	a := s.status()
	a.State, a.Removal = hubv1.AddonRemoving, d.asks(s, o)
	if s.Verb == plan.Ask {
		a.State, a.Reason = hubv1.AddonHeld, hubv1.DroppedReason
	}
	switch {
	case s.Err != nil:
		a.Message = s.Err.Error()
	case s.Verb.Orphans():
		a.State, a.Message = hubv1.AddonOrphaned, s.Left
		if s.Verb == plan.HandOver {
			a.TakenOverBy = s.To.Reference()
		}
	case s.Verb == plan.Uninstall && a.Message == "":
		a.Message = "Flux is uninstalling it"
	}
	if a.State == hubv1.AddonRemoving && s.Verb != plan.Uninstall {
		leftIfDeleted(&a, o)
	}
	return a, true
}

// leftIfDeleted notes of an add-on whose object goes, or may be deleted by another user, that Flux removes nothing of what is suspended.
// When the object is gone, the note is all that tells.
func leftIfDeleted(a *hubv1.AddonStatus, o *Object) {
	if o.Suspended {
		a.Reason, a.Version = hubv1.SuspendedReason, o.State.Version
	}
}

// status returns what every status of a step's add-on begins with.
func (s *Step) status() hubv1.AddonStatus {
	return hubv1.AddonStatus{
		Name: s.Addon, Kind: s.Key.Kind, Object: s.Key.Name, AppliedGeneration: s.Applied, Message: s.Reason,
	}
}

// arriving returns the status of an add-on that the delivery wants. o is its object; nil if there is none.
func (d *Delivery) arriving(c *Cluster, s *Step, o *Object) hubv1.AddonStatus {
	before := d.before(s.Addon)
	if o == nil && s.Verb != plan.Create && before.Object == s.Key.Name && keptSuspended(&before) {
		if orphan, ok := c.orphan(before, d.Namespace); ok {
			return orphan // until it is made again: its delivery may go before that, with the namespace
		}
	}
	a := s.status()
	a.Removal = d.asks(s, o)
	if !s.Wanted.DefaultRelease && s.Wanted.Kind == fluxspec.HelmReleaseKind {
		a.Release = &s.Wanted.Release
	}
	if s.Verb == plan.AwaitRemoval && o != nil && !d.owns(o) { // the object is another delivery's
		a.State, a.AppliedGeneration = hubv1.AddonProgressing, 0
		return a
	}
	if o != nil {
		a.Version = o.State.Version
	}
	if s.Err != nil {
		failedStep(&a, s, o)
	} else {
		d.stateOfStep(c, &a, s, o)
	}
	if o != nil && o.Deleting && d.owns(o) {
		leftIfDeleted(&a, o)
	}
	a.Before = kept(before, &a, o, s.Wanted.Hash)
	a.Removal = cmp.Or(a.Removal, d.reinstalling(&a, o))
	return a
}

// failedStep sets the state of an add-on whose step failed.
func failedStep(a *hubv1.AddonStatus, s *Step, o *Object) {
	a.Message = s.Err.Error()
	switch {
	case s.NotOwned:
		a.State, a.Message = hubv1.AddonNotOwned, a.Message+"; it is left alone. Rename the add-on, or remove that object"
	case s.NoCopy:
		a.State = hubv1.AddonWaitingForCluster
	case s.Conflict:
		a.State = hubv1.AddonProgressing
		if o != nil {
			a.AppliedGeneration = o.Applied
		}
	default:
		a.State = hubv1.AddonFailed
		if s.Passes {
			a.Reason = hubv1.NotWrittenReason
		}
		if o != nil {
			a.AppliedGeneration = o.Applied
		}
	}
}

// stateOfStep sets the state of an add-on whose step did not fail.
func (d *Delivery) stateOfStep(c *Cluster, a *hubv1.AddonStatus, s *Step, o *Object) {
	switch {
	case s.Verb == plan.AwaitCluster && o == nil:
		a.State = hubv1.AddonWaitingForCluster
	case s.Verb == plan.Suspend || s.Verb == plan.AwaitResume:
		a.State = c.keptSuspended()
	case s.Verb == plan.AwaitDependency:
		a.State = hubv1.AddonWaitingForDependency
		if o != nil {
			a.AppliedGeneration = o.Applied
		}
	case s.Verb == plan.AwaitRemoval && o != nil && !o.Deleting:
		a.State, a.AppliedGeneration = hubv1.AddonProgressing, o.Applied
	case s.Verb == plan.Ask:
		a.State, a.Reason, a.AppliedGeneration = hubv1.AddonHeld, hubv1.ReinstallReason, o.Applied
	case s.Verb == plan.AwaitRemoval || o == nil:
		a.State = hubv1.AddonProgressing
	default:
		before := d.before(s.Addon)
		again := asFluxSays(a, &before, o.State, s.Applied, false)
		if a.LastAttempt == hubv1.AttemptUnreached && c.Unprobed && !c.Reachable {
			a.State, a.Reason = hubv1.AddonUnreachable, "" // no breaker opens without a probe; Flux tries again, less and less often
		} else if !again {
			c.explain(d, a, o)
		}
		if a.State != hubv1.AddonFailed {
			a.LastAttempt = ""
		}
	}
}

// asFluxSays sets what Flux says of an add-on. If Flux tries again, the failure before still counts, and again is true. applied and stays
// are those of State.
func asFluxSays(a, before *hubv1.AddonStatus, s fluxstate.State, applied int64, stays bool) (again bool) {
	if fluxstate.TriesAgain(s, before, applied) {
		a.State, a.Reason, a.Message, a.LastAttempt = before.State, before.Reason, before.Message, before.LastAttempt
		return true
	}
	a.State, a.Message = State(*before, s, applied, stays)
	a.Reason, a.LastAttempt = reasonOf(a.State, s), fluxstate.Attempt(a.State, s)
	return false
}

// explain says more about an add-on that is not Ready, where the hub knows more than Flux says.
func (c *Cluster) explain(d *Delivery, a *hubv1.AddonStatus, o *Object) {
	if o.Held && a.State == hubv1.AddonSuspended {
		a.State, a.Message = hubv1.AddonProgressing, "it is being resumed"
	}
	if reason, remedy := fluxstate.Reason(o.State); reason != "" && a.State == hubv1.AddonFailed {
		a.Reason, a.Message = reason, remedy
		return
	}
	before := d.before(a.Name)
	if c.unfetched(&before, a, o) {
		return // a node would not help
	}
	if c.Nodes != nil && *c.Nodes == 0 && fluxstate.WaitsForNodes(a.State, o.State, progressing(&before, c.Now)) {
		message := "the cluster has no node yet"
		if a.Message != "" {
			message += "; " + a.Message
		}
		a.State, a.Reason, a.Message = hubv1.AddonWaitingForNodes, "", message
	}
}

// unfetched says of an add-on for which source or chart Flux waits in vain: one that does not exist, or that Flux could not fetch. An
// add-on for which nothing else happens until a person mends that is no progress, so it fails when the source has had its time to come.
func (c *Cluster) unfetched(before, a *hubv1.AddonStatus, o *Object) bool {
	if a.State != hubv1.AddonProgressing || a.Message == "" { // without a message, Flux speaks of the spec before
		return false
	}
	switch what := fluxstate.NotFound(o.State); {
	case o.Refusal != (fluxstate.Refusal{}):
		a.Reason = o.Refusal.Reason
		a.Message = fmt.Sprintf("Flux could not fetch %s: %s", o.Refusal.Source, o.Refusal.Message)
	case o.Lacks && what != "":
		a.Reason = hubv1.SourceNotFoundReason
		a.Message = "Flux waits for " + what + ", which does not exist, and which the hub does not make: make it, or have the AddonSet " +
			"refer to one that exists"
	default:
		return false
	}
	if waited(before, a, c.Now) >= fluxstate.SourceGrace {
		a.State = hubv1.AddonFailed
	}
	return true
}

// waited returns for how long an add-on has been waiting for a source; what failed for want of it has been long enough.
func waited(before, now *hubv1.AddonStatus, at time.Time) time.Duration {
	switch {
	case before.State == hubv1.AddonFailed && before.Reason == now.Reason:
		return fluxstate.SourceGrace
	case before.State == hubv1.AddonProgressing && before.Since != nil:
		return at.Sub(before.Since.Time)
	}
	return 0
}

// progressing returns for how long an add-on has been progressing, by its status before; what waited for nodes has been long
// enough.
func progressing(before *hubv1.AddonStatus, now time.Time) time.Duration {
	switch {
	case before.State == hubv1.AddonWaitingForNodes:
		return fluxstate.NodesGrace
	case before.State == hubv1.AddonProgressing && before.Since != nil:
		return now.Sub(before.Since.Time)
	}
	return 0
}

// reinstalling returns the grant by which an add-on is being reinstalled, until it is Ready in its new place. If the
// cluster is paused in between, what runs still has to go, and counts until then. Ready has to be of what the object says now: a hub
// that was killed as it wrote that does not know that it did.
func (d *Delivery) reinstalling(a *hubv1.AddonStatus, o *Object) string {
	granted := d.before(a.Name).Removal
	done := o != nil && a.State == hubv1.AddonReady && o.State.ReadyGeneration >= o.State.Generation
	if o == nil || done || !slices.Contains(d.Spec.Removals, granted) || granted == guard.Dropped(string(o.UID)) {
		return ""
	}
	return granted
}

// kept returns Ready for an add-on that was Ready before it was paused or suspended, if its object has the wanted
// hash: then no change waits for it to be resumed.
func kept(before hubv1.AddonStatus, now *hubv1.AddonStatus, o *Object, hash string) hubv1.AddonState {
	if now.State != hubv1.AddonPaused && now.State != hubv1.AddonSuspended || o == nil || o.Hash != hash {
		return ""
	}
	if before.State == hubv1.AddonReady && before.AppliedGeneration == o.Applied {
		return hubv1.AddonReady
	}
	return before.Before
}

// reasonOf returns Flux's reason for the failure of an add-on, and "" if it has not failed.
func reasonOf(state hubv1.AddonState, s fluxstate.State) string {
	if state == hubv1.AddonFailed {
		return s.Reason
	}
	return ""
}
