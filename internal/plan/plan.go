// SPDX-License-Identifier: Apache-2.0

// Package plan compares the Flux objects that a cluster should have with those that it has, and says what to do with
// each. It is pure: it decides, and writes nothing.
//
// # Algorithm
//
// Compute makes one plan for one cluster, over all sets that deliver to it. It looks at one moment only. The caller
// carries out all steps of a plan, and computes the next one when something has changed. A step that waits names what
// it waits for, and has no other effect.
//
//  1. Objects that no delivery desires leave.
//  2. Each leaving object gets the first of these that applies. A desired object can take its workload over: it is handed
//     over, as soon as the other one may be created (handOver). Another object has the same Helm release, and stays: it is
//     handed over as well (leaves). Otherwise package teardown decides, and dependants go first (removal).
//  3. Frozen objects stay as they are (frozen).
//  4. Each desired object passes these gates in this order (arrival): it was not made for another cluster; the cluster
//     is not suspended; the cluster has answered; its dependencies are Ready; every object that delivered the same
//     before is gone; the removal guard allows a reinstall. The first gate that is closed gives the step. Behind the
//     last one, an object that is missing is created, one that differs is updated, and any other is kept.
//
// # Verbs
//
// Create and Update write an object. Suspend and Resume set and unset spec.suspend. Uninstall, Orphan and HandOver delete
// an object, and differ in what becomes of its workload: Flux removes it; it stays, and is reported as an orphan; it
// stays, and is an orphan until Flux has recorded it for the object that goes on with it. All other verbs leave an object
// as it is, and say why: Keep, Hold, Ask, AwaitCluster, AwaitDependency, AwaitRemoval, AwaitDependants and AwaitResume.
//
// # Invariants
//
//   - Every desired object has one step, and so has every other object, unless it is frozen.
//   - The order of the steps depends on names and on the order of Desired, not on the order of Observed.
//   - Nothing is created or updated before the cluster has answered, or while it is suspended.
//   - No workload has two objects: none is created for a workload that another object still has, and no object is
//     uninstalled whose workload another object goes on with.
//   - A frozen object is neither updated nor uninstalled. An object that was made for another cluster is not either: it
//     is orphaned, since Flux would act on the cluster that is there now.
//   - What the hub did not make is handed over, or it stays.
//   - An add-on is uninstalled after all leaving add-ons that depend on it. The platform's do not wait for a tenant's. A cycle of them is
//     uninstalled at once.
//   - What brings rights is uninstalled after all that Flux does with them (NeededBy), leaving or not.
//   - No update makes Flux reinstall a workload unless the removal guard allows it.
//   - The platform's objects do not wait for a tenant's object that may never come.
package plan

import (
	"cmp"
	"slices"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/guard"
	"github.com/chandler-hub/chandler/internal/teardown"
)

// Input is what a plan is made from.
type Input struct {
	Desired  []Desired
	Observed []Observed
	// MayCreate is true if the cluster has answered: before that nothing is created or updated.
	MayCreate bool
	// Suspend says why the cluster's objects are to be suspended; empty if they are not.
	Suspend string
	// Frozen names objects that may be neither updated nor removed: the hub does not know what they should be.
	Frozen map[Key]bool
	// Removal decides how an object leaves that is not desired any more.
	Removal func(Observed) teardown.Decision
	// Platform says which namespaces are the platform's; nil for none. The platform's objects do not wait for a
	// tenant's.
	Platform func(namespace string) bool
}

// Compute returns the steps for all objects, desired or observed: first those of objects that go, and then those of
// desired objects, in the order of Desired.
func Compute(in Input) []Step {
	observed := make(map[Key]*Observed, len(in.Observed))
	for i := range in.Observed {
		observed[in.Observed[i].Key] = &in.Observed[i]
	}
	desired := make(map[Key]bool, len(in.Desired))
	for _, d := range in.Desired {
		desired[d.Key] = true
	}
	var leaving []Observed
	for _, o := range in.Observed {
		if !desired[o.Key] && !in.Frozen[o.Key] {
			leaving = append(leaving, o)
		}
	}
	steps := in.removals(leaving, observed)
	steps = append(steps, in.frozen()...)
	for _, d := range in.Desired {
		steps = append(steps, in.arrival(d, observed[d.Key], leaving))
	}
	return steps
}

// frozen returns the steps that suspend and resume frozen objects. If there is nothing to do, there is no step:
// it is not known what such an object should be.
func (in *Input) frozen() []Step {
	var steps []Step
	for _, o := range in.Observed {
		if o.Replaced != "" && in.Frozen[o.Key] {
			steps = append(steps, Step{Key: o.Key, Addon: o.Addon, Verb: Orphan, Reason: o.Replaced})
			continue
		}
		if s, ok := in.hold(o.Addon, &o); ok && in.Frozen[o.Key] && s.Verb != AwaitResume {
			steps = append(steps, s)
		}
	}
	slices.SortFunc(steps, func(a, b Step) int {
		return cmp.Compare(a.Key.Namespace+"/"+a.Key.Name, b.Key.Namespace+"/"+b.Key.Name)
	})
	return steps
}

// hold returns the step that follows from the cluster's suspension for an object; false if there is none.
func (in *Input) hold(addon string, o *Observed) (Step, bool) {
	s := Step{Key: o.Key, Addon: addon}
	switch {
	case o.Foreign && in.Suspend != "" && !o.Deleting:
		s.Verb, s.Reason = AwaitResume, in.Suspend
	case o.Deleting || o.Foreign:
		return s, false
	case in.Suspend != "" && !(o.Held && o.Suspended):
		s.Verb, s.Reason = Suspend, in.Suspend
	case in.Suspend != "":
		s.Verb, s.Reason = AwaitResume, in.Suspend
	case o.Held:
		s.Verb = Resume
	default:
		return s, false
	}
	return s, true
}

// stays returns the step for a desired object that is there and is not brought up to date now: it is orphaned, or the
// cluster's suspension comes first; false if neither is so.
func (in *Input) stays(d Desired, o *Observed) (Step, bool) {
	if o.Replaced != "" {
		return Step{Key: d.Key, Addon: d.Addon, Verb: Orphan, Reason: o.Replaced}, true
	}
	s, ok := in.hold(d.Addon, o)
	if !ok || s.Verb != Resume {
		return s, ok
	}
	// What was written for a cluster that was down, and for which Flux reinstalls as soon as it is resumed, counts when
	// it is: the guard is asked again.
	if o.moves() && !d.Once && d.asks(o) {
		from, to, _ := d.Reinstall(o)
		s.Verb, s.Reason, s.Reinstall = Ask, guard.ReinstallHeld(from.String(), to.String()), &to
		return s, true
	}
	// An object that is about to be resumed is updated before that, if it may be updated.
	return s, d.Once || d.Gate != "" || !in.MayCreate || upToDate(d, o) || d.asks(o)
}

// gated returns whether a desired object may not be made or updated yet because of its gate. What goes on as it is does not wait for it.
func (d *Desired) gated(o *Observed) bool {
	return d.Gate != "" && (o == nil || !d.Once && o.Hash != d.Hash)
}

func (in *Input) arrival(d Desired, o *Observed, leaving []Observed) Step {
	if o != nil {
		if step, ok := in.stays(d, o); ok {
			return step
		}
	}
	step := Step{Key: d.Key, Addon: d.Addon}
	gone := o == nil
	switch {
	case gone && in.Suspend != "":
		step.Verb, step.Reason = AwaitResume, in.Suspend
	case gone && !in.MayCreate:
		step.Verb, step.Reason = AwaitCluster, "nothing is made before the cluster has answered"
	case !in.MayCreate && !o.Deleting && !d.Once && !upToDate(d, o):
		// As after its registration was made again: the cluster's UID and version are part of what is desired.
		step.Verb, step.Reason = AwaitCluster, "nothing is changed before the cluster has answered"
	case d.gated(o):
		step.Verb, step.Reason = AwaitDependency, d.Gate
	case gone && replaced(d, leaving) != "":
		step.Verb, step.Reason = AwaitRemoval, "waits for "+replaced(d, leaving)+", which delivered this add-on before, to be gone"
	case gone && in.stillHas(d) != "":
		step.Verb, step.Reason = AwaitRemoval, "waits until "+in.stillHas(d)+" does not have the same on the cluster any more"
	case gone:
		step.Verb = Create
	case o.Deleting:
		step.Verb, step.Reason = AwaitRemoval, "the object is being deleted; it is made again when it is gone"
	case d.Once || upToDate(d, o):
		step.Verb = Keep
	case d.movesOnto(o, leaving) != "":
		step.Verb, step.Reason = AwaitRemoval, "waits for "+d.movesOnto(o, leaving)+", which has the release, to be gone"
	case d.asks(o):
		from, to, _ := d.Reinstall(o)
		step.Verb, step.Reason = Ask, guard.ReinstallHeld(from.String(), to.String())
	default:
		step.Verb = Update
	}
	if _, to, anew := d.Reinstall(o); anew && !d.Once && !gone {
		step.Reinstall = &to
	}
	return step
}

// replaced returns an existing object that delivered the same before, in another form or from another place; "" if
// there is none. Two at once would fight over the same objects on the cluster.
func replaced(d Desired, leaving []Observed) string {
	for _, o := range leaving {
		if Follows(d, o) {
			return o.Key.String()
		}
	}
	return ""
}

// stillHas returns another object that stays and brings what a desired object brings, or of which Flux has not yet removed that; "" if
// there is none. What the platform brings does not wait for a tenant's.
func (in *Input) stillHas(d Desired) string {
	for i := range in.Observed {
		o := &in.Observed[i]
		if o.Key == d.Key || o.Key.Kind != d.Key.Kind || o.Foreign || in.outranks(d.Key, o.Key) {
			continue
		}
		if d.sameRelease(o) || d.Release.Name == "" && (o.AppliedAs != "" && o.AppliedAs == d.hash() || o.Content == d.Content && in.moves(o)) {
			return o.Key.String()
		}
	}
	return ""
}

// moves returns whether an object is to apply something else, or elsewhere.
func (in *Input) moves(o *Observed) bool {
	return slices.ContainsFunc(in.Desired, func(d Desired) bool { return d.Key == o.Key && d.Moves(o) })
}

// Follows returns whether a desired object delivers what another one did.
func Follows(d Desired, o Observed) bool {
	return !o.Foreign && d.Addon == o.Addon || d.sameRelease(&o) || slices.Contains(d.Predecessors, o.Key)
}

func (d *Desired) sameRelease(o *Observed) bool {
	same := func(r hubv1.HelmReleaseIdentity) bool {
		return r.Name == d.Release.Name && r.StorageNamespace == d.Release.StorageNamespace
	}
	return d.Release.Name != "" && (same(o.Release) || same(o.InstalledAs))
}

// canTakeOver returns whether the workload can go from one object to the other as it is. Flux takes over a Helm
// release if name and namespaces are the same (helm-controller, DetermineReleaseState), and labels what a
// Kustomization applies as the new owner's. If the new object applied another folder, or elsewhere, nothing would own
// what the old one has applied: the new one does not know of it, and does not prune it. The same is true if Flux has
// installed or applied something else than the old one asks for now.
func canTakeOver(d Desired, o Observed) bool {
	installed := o.InstalledAs == (hubv1.HelmReleaseIdentity{}) || o.InstalledAs == d.Release
	applied := o.AppliedAs == "" || o.AppliedAs == d.hash()
	return d.Key.Kind == o.Key.Kind && d.Release == o.Release && installed && d.Content == o.Content && applied
}

// upToDate is the rule for skipping a write. The hash alone would miss that another writer edited the spec, and the
// generation alone would miss that the hub's own labels changed. If the generation is older than the one after the
// hub's last write, it is only the cache that is stale.
func upToDate(d Desired, o *Observed) bool {
	if o.Hash != d.Hash || o.Generation > o.Applied {
		return false
	}
	for k, v := range d.Labels {
		if o.Labels[k] != v {
			return false
		}
	}
	return true
}
