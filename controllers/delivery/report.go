// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/apply"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/fluxstate"
	"github.com/chandler-hub/chandler/internal/guard"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/report"
	"github.com/chandler-hub/chandler/internal/status"
)

// report fills the status of one delivery, in memory.
func (r *Reconciler) report(c *cluster, d *delivery, steps []plan.Step, outcomes map[plan.Key]outcome) {
	now := metav1.NewTime(c.now)
	addons := r.heldAddons(c, d)
	for _, s := range steps {
		if a, ok := r.addonStatus(c, d, s, outcomes[s.Key]); ok {
			addons = append(addons, a)
		}
	}
	for name, why := range d.Lost {
		a := hubv1.AddonStatus{Name: name, State: hubv1.AddonLostTo, Message: why}
		if d.HandedOver[name] {
			a.Reason = hubv1.HandOverReason
		}
		addons = append(addons, a)
	}
	for name, why := range d.NotOwned {
		addons = append(addons, hubv1.AddonStatus{Name: name, State: hubv1.AddonNotOwned, Message: why})
	}
	if d.result != nil {
		for name, why := range d.result.Excluded {
			addons = append(addons, hubv1.AddonStatus{Name: name, State: hubv1.AddonExcluded, Message: why})
		}
	}
	if d.failed == nil {
		addons = append(addons, d.orphans(addons, c.objects, &r.ledger)...)
	} else {
		addons = append(addons, d.unread(addons)...)
	}
	held := !d.leaving && (d.result == nil || d.frozen && d.isOfAnother()) // nobody knows which revision what is there is of
	slices.SortStableFunc(addons, func(a, b hubv1.AddonStatus) int { return cmp.Compare(a.Name, b.Name) })
	// An add-on that changes its form has two steps, and one entry: what still has to go is the news.
	addons = slices.CompactFunc(addons, func(a, b hubv1.AddonStatus) bool { return a.Name == b.Name })
	for i := range addons {
		addons[i].Since = &now
		if was := d.addon(addons[i].Name); was != nil && (was.State == addons[i].State || report.Leaves(was) && report.Leaves(&addons[i])) && was.Since != nil {
			addons[i].Since = was.Since
		}
	}
	d.Status.Addons = addons
	d.Status.AddonCounts = report.Count(addons)
	out := report.Delivery(c.standing(d))
	if out.Phase == status.Done && !held && d.Status.ReadyRevision != d.Spec.RevisionName {
		d.Status.ReadyRevision, d.Status.ReadyTime = d.Spec.RevisionName, &now
	}
	if !held && !d.frozen && !d.leaving && c.written(addons, steps, d.Namespace) && !c.handsOn(d, steps) {
		d.Status.ObservedRevision = d.Spec.RevisionName
	}
	out.Message += d.reportRefused(c.now) + c.reportHeld(d)
	status.Summarize(d.AddonDelivery, out, c.now)
}

// heldAddons reports the add-ons that cannot be rendered, or are to be taken over by one that cannot be delivered:
// what is there of them stays, and is told of all the same.
func (r *Reconciler) heldAddons(c *cluster, d *delivery) []hubv1.AddonStatus {
	if d.leaving {
		return nil
	}
	var out []hubv1.AddonStatus
	for k, o := range c.objects {
		if k.Namespace != d.Namespace || o.delivery != d.Name || o.Finished || c.yields[k] || o.Replaced != "" || !d.holds(o.Addon) && c.awaited[k] == "" {
			continue
		}
		if before := was(d, o.Addon); (d.frozen || d.failed != nil) && before.Object == k.Name && before.Kind == k.Kind && (before.State == hubv1.AddonRemoving || before.State == hubv1.AddonHeld) {
			out = append(out, before) // by which the set's room knows that it is in the middle of an edit, and carries on with it
			continue
		}
		applied := o.Applied
		if applied == 0 && (d.frozen || c.awaited[k] != "") {
			applied = o.state.Generation
		}
		a := hubv1.AddonStatus{Name: o.Addon, Kind: k.Kind, Object: k.Name, Version: o.state.Version, AppliedGeneration: applied}
		a.State, a.Message = d.stateOf(o, true)
		a.Reason = reasonOf(a.State, o.state)
		if a.State == hubv1.AddonReady {
			a.Message = c.awaited[k]
		}
		if a.State == hubv1.AddonSuspended && o.Held && c.suspended() != nil {
			a.State, a.Message = c.suspendedState(), c.suspended().Message
		}
		a.Before = kept(was(d, o.Addon), &a, o, o.Hash)
		if c.abandoned(d) {
			a.State, a.AppliedGeneration = hubv1.AddonOrphaned, 0
			a.Message = fmt.Sprintf("its AddonDelivery was deleted by hand while nobody was there to withdraw it; %s %s/%s is left, and Flux goes on with it", k.Kind, k.Namespace, k.Name)
		}
		out = append(out, a)
	}
	if d.result == nil {
		return out
	}
	for name, errs := range d.result.Failed {
		if _, lost := d.Lost[name]; lost || d.stays[name] {
			continue
		}
		i := slices.IndexFunc(out, func(a hubv1.AddonStatus) bool { return a.Name == name })
		if i < 0 {
			out, i = append(out, hubv1.AddonStatus{Name: name}), len(out)
		}
		out[i].State, out[i].Reason, out[i].Message = hubv1.AddonFailed, hubv1.RenderFailedReason, excerpt.Of(withoutName(errs), status.MaxNote)
	}
	return out
}

// stateOf returns how an object stands. Of one that stays as it is, or that another version of the hub has made,
// nobody compares with what it should be: whoever wrote it last, Flux knows how it stands. That may have been this
// hub, whose answer was lost, or whose delivery somebody has deleted since, and which does not write it again.
func (d *delivery) stateOf(o *object, stays bool) (hubv1.AddonState, string) {
	applied, before := o.Applied, was(d, o.Addon)
	if (stays || d.frozen) && applied != o.state.Generation {
		applied, before.AppliedGeneration = o.state.Generation, o.state.Generation
	}
	return fluxstate.Addon(before, o.state, applied)
}

// withoutName leaves out the add-on's name, which the status says already.
func withoutName(errs render.Errors) string {
	lines := make([]string, len(errs))
	for i, e := range errs {
		e.Addon = ""
		lines[i] = e.Error()
	}
	return strings.Join(lines, "; ")
}

func was(d *delivery, addon string) hubv1.AddonStatus {
	if s := d.addon(addon); s != nil {
		return *s
	}
	return hubv1.AddonStatus{}
}

// addonStatus says where the add-on of one step stands; false if the step is another delivery's.
func (r *Reconciler) addonStatus(c *cluster, d *delivery, s plan.Step, out outcome) (hubv1.AddonStatus, bool) {
	o := c.objects[s.Key]
	a := hubv1.AddonStatus{Name: s.Addon, Kind: s.Key.Kind, Object: s.Key.Name, AppliedGeneration: out.applied, Message: s.Reason}
	if s.Leaving() {
		mine := o.delivery == d.Name && s.Key.Namespace == d.Namespace && !o.Foreign
		a.State, a.Removal = hubv1.AddonRemoving, c.asked(d, s)
		if s.Verb == plan.Ask {
			a.State, a.Reason = hubv1.AddonHeld, hubv1.DroppedReason
		}
		switch {
		case out.err != nil:
			a.Message = out.err.Error()
		case s.Verb == plan.LetGo:
			a.State, a.Message = hubv1.AddonOrphaned, out.left
		case s.Verb == plan.Uninstall && a.Message == "":
			a.Message = "Flux is uninstalling it"
		}
		return a, mine && s.Verb != plan.Finish && !(o.Finished && s.Verb == plan.HandOver) // what is left of it is the other one's, which says how it stands
	}
	by, w := c.wanted(s.Key)
	if by != d {
		return a, false
	}
	if o != nil && o.Finished {
		o = nil // it is made again
	}
	a.Removal = c.asked(d, s)
	if !w.DefaultRelease && w.Kind == fluxspec.HelmReleaseKind {
		a.Release = &w.Release
	}
	if o != nil {
		a.Version = o.state.Version
	}
	if s.Verb == plan.AwaitRemoval && o != nil && o.delivery != d.Name { // what is there is another delivery's
		a.State, a.AppliedGeneration, a.Version = hubv1.AddonProgressing, 0, ""
		return a, true
	}
	switch {
	case errors.Is(out.err, apply.ErrNotOwned):
		a.State, a.Message = hubv1.AddonNotOwned, out.err.Error()+"; it is left alone. Rename the add-on, or remove that object"
	case errors.Is(out.err, errNoMirror):
		a.State, a.Message = hubv1.AddonWaitingForCluster, out.err.Error()
	case out.err != nil:
		a.State, a.Message = hubv1.AddonFailed, out.err.Error()
		if o != nil {
			a.AppliedGeneration = o.Applied
		}
	case s.Verb == plan.AwaitCluster && o == nil:
		a.State = hubv1.AddonWaitingForCluster
	case s.Verb == plan.Suspend || s.Verb == plan.AwaitResume:
		a.State = c.suspendedState()
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
		a.State, a.Message = fluxstate.Addon(was(d, s.Addon), o.state, out.applied)
		a.Reason = reasonOf(a.State, o.state)
		c.explainState(&a, o)
	}
	a.Before = kept(was(d, s.Addon), &a, o, w.Hash)
	a.Removal = cmp.Or(a.Removal, d.reinstalling(&a, o))
	return a, true
}

// reinstalling returns the grant by which an add-on is being reinstalled, until Flux has it Ready in its new place:
// on a cluster that is paused meanwhile, what runs is still to go, and counts until then.
func (d *delivery) reinstalling(a *hubv1.AddonStatus, o *object) string {
	granted := was(d, a.Name).Removal
	if o == nil || a.State == hubv1.AddonReady || !slices.Contains(d.Spec.Removals, granted) || granted == guard.Dropped(string(o.uid)) {
		return ""
	}
	return granted
}

// kept returns what an add-on was before it was paused or suspended: Ready, if it was, and if its object is what is wanted: then nothing
// waits for it to go on. hash is that of what is wanted.
func kept(before hubv1.AddonStatus, now *hubv1.AddonStatus, o *object, hash string) hubv1.AddonState {
	if now.State != hubv1.AddonPaused && now.State != hubv1.AddonSuspended || o == nil || o.Hash != hash {
		return ""
	}
	if before.State == hubv1.AddonReady && before.AppliedGeneration == o.Applied {
		return hubv1.AddonReady
	}
	return before.Before
}

// reasonOf returns Flux's word for why an add-on failed.
func reasonOf(state hubv1.AddonState, s fluxstate.State) string {
	if state == hubv1.AddonFailed {
		return s.Reason
	}
	return ""
}

// suspendedState is where an add-on stands whose Flux object the hub keeps suspended.
func (c *cluster) suspendedState() hubv1.AddonState {
	if s := c.suspended(); s != nil && s.Reason == hubv1.ClusterUnreachableReason {
		return hubv1.AddonUnreachable
	}
	return hubv1.AddonPaused
}

// explainState says more about an add-on that is not Ready, where more is known.
func (c *cluster) explainState(a *hubv1.AddonStatus, o *object) {
	s := o.state
	if a.State == hubv1.AddonFailed && c.unprobed() && !c.reachable() && fluxstate.Unreachable(s) {
		a.State, a.Reason = hubv1.AddonUnreachable, "" // the hub has no probe to open a breaker by, and Flux tries again by itself, less and less often
		return
	}
	if o.Held && a.State == hubv1.AddonSuspended {
		a.State, a.Message = hubv1.AddonProgressing, "it is being resumed"
	}
	if reason, remedy := fluxstate.Reason(s); reason != "" && a.State == hubv1.AddonFailed {
		a.Reason, a.Message = reason, remedy
		return
	}
	if n := c.registration.Status.Nodes; n != nil && *n == 0 && fluxstate.WaitsForNodes(a.State, s) {
		message := "the cluster has no node yet"
		if a.Message != "" {
			message += "; Flux says: " + a.Message
		}
		a.State, a.Reason, a.Message = hubv1.AddonWaitingForNodes, "", message
	}
}

// written is true if every add-on has been written as the revision wants it.
func (c *cluster) written(addons []hubv1.AddonStatus, steps []plan.Step, namespace string) bool {
	for _, a := range addons {
		switch {
		case a.State == hubv1.AddonLostTo, a.State == hubv1.AddonExcluded, a.State == hubv1.AddonOrphaned, report.Leaves(&a):
			continue
		}
		gated := slices.ContainsFunc(steps, func(s plan.Step) bool {
			return s.Addon == a.Name && s.Key.Namespace == namespace && s.Key.Name == a.Object && c.waits(s)
		})
		if a.AppliedGeneration == 0 || a.Reason == hubv1.RenderFailedReason || gated {
			return false
		}
	}
	return true
}

// handsOn returns whether an object that a delivery has made waits to be written by another one that has the add-on
// now, and its name with it. Until then the edit that gave it away is not done: after an upgrade of the hub this one
// would keep it as it is.
func (c *cluster) handsOn(d *delivery, steps []plan.Step) bool {
	return slices.ContainsFunc(steps, func(s plan.Step) bool {
		o := c.objects[s.Key]
		by, _ := c.wanted(s.Key)
		return o != nil && o.delivery == d.Name && s.Key.Namespace == d.Namespace && by != nil && by != d && c.waits(s)
	})
}

// isOfAnother returns whether what is there was written of another revision. What has not been written in full yet, or came out of a backup
// without its status, is of the one that the delivery names.
func (d *delivery) isOfAnother() bool {
	return d.Status.ObservedRevision != "" && d.Status.ObservedRevision != d.Spec.RevisionName
}

// waits returns whether a step leaves an object as it is that differs from what the revision wants.
func (c *cluster) waits(s plan.Step) bool {
	switch s.Verb {
	case plan.AwaitCluster, plan.AwaitDependency, plan.AwaitRemoval, plan.Ask:
		return true
	case plan.Suspend, plan.AwaitResume:
		_, w := c.wanted(s.Key)
		o := c.objects[s.Key]
		return w != nil && o != nil && o.Hash != w.Hash
	}
	return false
}

// standing gathers the facts that the delivery's Ready is decided by.
func (c *cluster) standing(d *delivery) report.Facts {
	return report.Facts{
		Addons: d.Status.Addons, Counts: *d.Status.AddonCounts,
		Set: d.SetKey(), Registration: c.key, Registered: c.registration != nil, Answered: c.answered(), Suspended: c.suspended(),
		Leaving: d.leaving, DeletedByHand: d.DeletionTimestamp != nil && !d.wantedAgain,
		Failed: d.failed != nil, Unrendered: d.result == nil, Frozen: d.frozen, Reason: d.reason, Why: d.unrenderable,
		WasReady: d.Status.ReadyRevision == d.Spec.RevisionName,
	}
}
