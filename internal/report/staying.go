// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/fluxstate"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/internal/teardown"
)

// State returns the state of an add-on and a message, from its status before and the state of its object. applied is
// the object's generation after the hub's last write. stays is true if the hub leaves the object as it is, so that
// Flux's word counts, whatever wrote it last. That may have been another version of the hub, or this one: its answer may
// have been lost, or a user has deleted the delivery since. An object that is older than the hub's last write, as a cache that is behind
// shows it, says nothing of that write.
func State(before hubv1.AddonStatus, s fluxstate.State, applied int64, stays bool) (hubv1.AddonState, string) {
	if stays && applied < s.Generation {
		applied, before.AppliedGeneration = s.Generation, s.Generation
	}
	return fluxstate.Addon(before, s, applied)
}

// staying returns the add-ons that stay as they are: they cannot be rendered, the revision is another version's of the
// hub, or an add-on that cannot be delivered yet is to take them over. It includes add-ons that cannot be rendered and
// have no object.
func (d *Delivery) staying(c *Cluster) []hubv1.AddonStatus {
	if d.Leaving {
		return nil
	}
	var out []hubv1.AddonStatus
	for _, o := range c.Objects {
		switch {
		case d.stays(o) && !c.comesInstead(d, o):
			out = append(out, d.stayingAs(c, o))
		case d.excludedYet(o):
			a := d.stayingAs(c, o)
			a.Message = d.Result.Excluded[o.Addon] + "; what is there stays until the rollout comes to this cluster"
			out = append(out, a)
		}
	}
	slices.SortFunc(out, func(a, b hubv1.AddonStatus) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Object, b.Object))
	})
	if d.Result == nil {
		return out
	}
	for name, errs := range d.Result.Failed {
		if _, lost := d.Lost[name]; lost || d.Stays[name] {
			continue
		}
		i := slices.IndexFunc(out, func(a hubv1.AddonStatus) bool { return a.Name == name })
		if i < 0 {
			out, i = append(out, hubv1.AddonStatus{Name: name}), len(out)
		}
		out[i].State, out[i].Reason, out[i].Message = hubv1.AddonFailed, hubv1.RenderFailedReason, excerpt.Of(withoutName(errs), status.MaxNote)
		out[i].LastAttempt = ""
		if errs.Waits() {
			out[i].State, out[i].Reason = hubv1.AddonWaitingForCluster, hubv1.FactUnknownReason
		}
	}
	return out
}

// stays returns whether an object of the delivery stays as it is.
func (d *Delivery) stays(o *Object) bool {
	return d.owns(o) && !o.Yields && o.Replaced == "" && (d.holds(o.Addon) || o.Awaited != "")
}

// excludedYet returns whether an object stays of an add-on that is excluded, because the revision is another version's
// of the hub. To say no more than that it is excluded would hide from the removal guard that it is there.
func (d *Delivery) excludedYet(o *Object) bool {
	if !d.Frozen || d.Result == nil || !d.owns(o) || o.Replaced != "" {
		return false
	}
	_, excluded := d.Result.Excluded[o.Addon]
	return excluded
}

// comesInstead returns whether the delivery wants something else under the name of an add-on whose object stays for
// another set's: it waits, and so the add-on is not what the set asks for, whatever Flux says of that object.
func (c *Cluster) comesInstead(d *Delivery, o *Object) bool {
	return o.Awaited != "" && !d.holds(o.Addon) && slices.ContainsFunc(c.Steps, func(s Step) bool {
		return s.Wanted != nil && s.By == d.key() && s.Addon == o.Addon && s.Key != o.Key
	})
}

// stayingAs returns the status of an add-on whose object stays as it is.
func (d *Delivery) stayingAs(c *Cluster, o *Object) hubv1.AddonStatus {
	before := d.before(o.Addon)
	leaves := before.State == hubv1.AddonRemoving || before.State == hubv1.AddonHeld
	if leaves && (d.Frozen || d.Failed) && before.Object == o.Key.Name && before.Kind == o.Key.Kind {
		return before // so that the set's controller knows that it is in the middle of an edit, and goes on with it
	}
	a := hubv1.AddonStatus{Name: o.Addon, Kind: o.Key.Kind, Object: o.Key.Name, Version: o.State.Version, AppliedGeneration: o.Applied}
	if o.Applied == 0 && (d.Frozen || o.Awaited != "") {
		a.AppliedGeneration = o.State.Generation
	}
	if !asFluxSays(&a, &before, o.State, o.Applied, true) {
		c.unfetched(&before, &a, o)
	}
	if a.State == hubv1.AddonReady {
		a.Message = o.Awaited
	}
	if a.State == hubv1.AddonSuspended && o.Held && c.Suspended != nil {
		a.State, a.Message = c.keptSuspended(), c.Suspended.Message
	}
	if o.Deleting {
		leftIfDeleted(&a, o)
	}
	a.Before = kept(before, &a, o, o.Hash)
	a.Removal = d.reinstalling(&a, o) // what a version of the hub before this one has begun counts until it is done
	if d.Abandoned {
		a.State, a.AppliedGeneration = hubv1.AddonOrphaned, 0
		a.Message = fmt.Sprintf("its AddonDelivery was deleted by hand while there was no set or registration to withdraw it; %s is left, and "+
			"Flux goes on with it", o.Key)
	}
	return a
}

// withoutName leaves the add-on's name out of errors, because the status says it already.
func withoutName(errs render.Errors) string {
	lines := make([]string, len(errs))
	for i, e := range errs {
		e.Addon = ""
		lines[i] = e.Error()
	}
	return strings.Join(lines, "; ")
}

// gone returns the entries of the status before, of add-ons that now has none of, that are still news. If the delivery
// could not be read, that is all of them: it is not known whether they should have an object, and what an add-on was
// about to take over must not be forgotten. Otherwise it is the orphans.
func (d *Delivery) gone(c *Cluster, now []hubv1.AddonStatus) []hubv1.AddonStatus {
	var out []hubv1.AddonStatus
	for _, a := range d.Before {
		switch {
		case slices.ContainsFunc(now, func(n hubv1.AddonStatus) bool { return n.Name == a.Name }):
		case d.Failed:
			out = append(out, *a.DeepCopy())
		default:
			if orphan, ok := c.orphan(a, d.Namespace); ok {
				out = append(out, orphan)
			}
		}
	}
	return out
}

// orphan returns the status of an add-on that was orphaned and has no object any more, and false for one that was not.
// An object that is there, and stays, has not gone: another set of the namespace delivers it now. The hub may have let
// the add-on go a moment ago, so that its status does not say so yet. A user may have deleted a suspended object, as with its
// namespace.
func (c *Cluster) orphan(a hubv1.AddonStatus, namespace string) (hubv1.AddonStatus, bool) {
	k, left, removed := plan.Key{Kind: a.Kind, Namespace: namespace, Name: a.Object}, "", false
	if c.Removed != nil {
		left, removed = c.Removed(k)
	}
	switch o := c.Objects[k]; {
	case o != nil && !o.Deleting && !removed, c.recorded(a.TakenOverBy):
		return a, false
	case a.State == hubv1.AddonOrphaned:
		if a.TakenOverBy != nil && !c.comes(a.TakenOverBy) {
			a.TakenOverBy = nil
		}
		return a, true
	case left == "" && !removed && o == nil && keptSuspended(&a):
		a.State, a.Reason, a.Message = hubv1.AddonOrphaned, hubv1.SuspendedReason, teardown.DeletedSuspended
		a.AppliedGeneration, a.Before, a.Removal = 0, "", ""
		return a, true
	}
	return hubv1.AddonStatus{Name: a.Name, Kind: a.Kind, Object: a.Object, State: hubv1.AddonOrphaned, Message: left}, left != ""
}

// keptSuspended returns whether an add-on has something on its cluster, and its Flux object is suspended or does not reach the cluster.
func keptSuspended(a *hubv1.AddonStatus) bool {
	suspended := a.State == hubv1.AddonPaused || a.State == hubv1.AddonSuspended || a.State == hubv1.AddonUnreachable
	return a.Version != "" && (suspended || a.Reason == hubv1.SuspendedReason)
}

// handedOver returns the entries of add-ons that another object goes on with, and that Flux has not recorded for it.
func (d *Delivery) handedOver(c *Cluster) []hubv1.AddonStatus {
	var out []hubv1.AddonStatus
	for _, a := range d.Before {
		if a.State != hubv1.AddonOrphaned || a.TakenOverBy == nil {
			continue
		}
		if orphan, ok := c.orphan(a, d.Namespace); ok {
			out = append(out, orphan)
		}
	}
	return out
}

// comes returns whether an object is there, or is to be made.
func (c *Cluster) comes(by *hubv1.FluxObjectReference) bool {
	k := plan.KeyOf(by)
	return c.Objects[k] != nil || slices.ContainsFunc(c.Steps, func(s Step) bool { return s.Key == k && s.Wanted != nil })
}

// recorded returns whether Flux has recorded for an object what that goes on with.
func (c *Cluster) recorded(by *hubv1.FluxObjectReference) bool {
	if by == nil {
		return false
	}
	o := c.Objects[plan.KeyOf(by)]
	return o != nil && !o.Deleting && o.State.Version != ""
}
