// SPDX-License-Identifier: Apache-2.0

// Package report says what becomes of a delivery's status after a pass of the hub. Its input is what the pass read of
// the cluster (Cluster, Object), what it rendered and assembled (Delivery), the steps of the plan and their outcomes
// (Step, Outcome). Its output is one status for each add-on, their counts, the revisions that the cluster has, and the
// summary for the Ready condition. It is pure: it reads no clock, and asks no server.
//
// An add-on has one entry, however many objects and steps are about it. Several may be: an add-on that changes its form
// has a step that removes one object, and a step that waits to create another. The first of these entries counts: that
// of an object that stays as it is, then those of the plan's steps, in the plan's order, then the add-ons that have no
// step.
package report

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/status"
)

// Status returns the status of a delivery after a pass of the hub, with the conditions that it had before, and what its
// Ready condition says now.
func Status(c *Cluster, d *Delivery) (hubv1.AddonDeliveryStatus, status.Summary) {
	now := metav1.NewTime(c.Now)
	s := d.Status
	s.Addons = d.addons(c)
	for i := range s.Addons {
		s.Addons[i].Since = d.since(&s.Addons[i], &now)
	}
	s.AddonCounts = Count(s.Addons)
	ready := Ready(c.facts(d, &s))
	unknown := !d.Leaving && (d.Result == nil || d.Frozen && d.hasAnother()) // it is not known which revision the cluster has
	if ready.Phase == status.Done && !unknown && (s.ReadyRevision != d.Spec.RevisionName || c.startedAgain(d)) {
		s.ReadyRevision, s.ReadyTime = d.Spec.RevisionName, &now
		if start := d.Spec.Start; start != nil && now.Before(&start.Time) {
			s.ReadyTime = &start.Time // another hub, whose clock is ahead, has given it the revision
		}
	}
	if !unknown && !d.Frozen && !d.Leaving && c.written(d, s.Addons) && !c.handsOn(d) {
		s.ObservedRevision = d.Spec.RevisionName
	}
	return s, ready
}

// startedAgain returns whether the cluster has got its revision anew since it was Ready on it: it had another one in
// between, or the rollout of a revision that failed is tried again, or the cluster is another one.
func (c *Cluster) startedAgain(d *Delivery) bool {
	was := d.Status.ReadyTime
	return was != nil && (d.Spec.Start != nil && was.Before(&d.Spec.Start.Time) || was.Time.Before(c.Since))
}

// addons returns one status for each add-on, by name, without Since.
func (d *Delivery) addons(c *Cluster) []hubv1.AddonStatus {
	addons := d.staying(c)
	for _, s := range c.Steps {
		if a, ok := Addon(c, d, s); ok {
			addons = append(addons, a)
		}
	}
	addons = append(addons, d.handedOver(c)...) // also if another set has its name, or it is excluded
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
	if d.Result != nil {
		for name, why := range d.Result.Excluded {
			addons = append(addons, hubv1.AddonStatus{Name: name, State: hubv1.AddonExcluded, Message: why})
		}
	}
	addons = append(addons, d.gone(c, addons)...)
	slices.SortStableFunc(addons, func(a, b hubv1.AddonStatus) int { return cmp.Compare(a.Name, b.Name) })
	addons = slices.CompactFunc(addons, func(a, b hubv1.AddonStatus) bool { return a.Name == b.Name })
	return addons
}

// since returns since when an add-on is in its state. A removal that is held, and then goes on, is one state.
func (d *Delivery) since(a *hubv1.AddonStatus, now *metav1.Time) *metav1.Time {
	before := d.before(a.Name)
	if before.Since != nil && (before.State == a.State || Leaves(&before) && Leaves(a)) {
		return before.Since
	}
	return now
}

// hasAnother returns whether the cluster has another revision than the delivery names. A delivery that has never been
// written in full, or was restored without its status, has the one that it names.
func (d *Delivery) hasAnother() bool {
	return d.Status.ObservedRevision != "" && d.Status.ObservedRevision != d.Spec.RevisionName
}

// written returns whether every add-on has been written as the revision wants it.
func (c *Cluster) written(d *Delivery, addons []hubv1.AddonStatus) bool {
	for _, a := range addons {
		if a.State == hubv1.AddonLostTo || a.State == hubv1.AddonExcluded || a.State == hubv1.AddonOrphaned || Leaves(&a) {
			continue
		}
		waits := func(s Step) bool {
			return s.Addon == a.Name && s.Key.Namespace == d.Namespace && s.Key.Name == a.Object && c.waits(&s)
		}
		unrendered := a.Reason == hubv1.RenderFailedReason || a.Reason == hubv1.FactUnknownReason
		if a.AppliedGeneration == 0 || unrendered || slices.ContainsFunc(c.Steps, waits) {
			return false
		}
	}
	return true
}

// handsOn returns whether an object of the delivery waits to be written by another delivery, which has the add-on and
// its name now. Until then the edit that gave it away is not done: after an upgrade of the hub this delivery would keep
// the object as it is.
func (c *Cluster) handsOn(d *Delivery) bool {
	return len(c.handing(d)) > 0
}

// handing says which objects those are, and what they wait for.
func (c *Cluster) handing(d *Delivery) []string {
	var out []string
	for _, s := range c.Steps {
		if d.owns(c.Objects[s.Key]) && s.Wanted != nil && s.By != d.key() && c.waits(&s) {
			out = append(out, fmt.Sprintf("%s stays until AddonDelivery %s goes on with it (%s)", s.Addon, s.By.Name, s.Reason))
		}
	}
	return out
}

// facts returns what decides the Ready condition of a delivery with the add-ons of a status.
func (c *Cluster) facts(d *Delivery, s *hubv1.AddonDeliveryStatus) Facts {
	return Facts{
		Addons: s.Addons, Counts: *s.AddonCounts,
		Set: d.SetKey(), Registration: c.Registration, Registered: c.Registered, Answered: c.Answered, Suspended: c.Suspended,
		Leaving: d.Leaving, Handing: c.handing(d), DeletedByHand: d.DeletionTimestamp != nil && !d.WantedAgain,
		Failed: d.Failed, Unrendered: d.Result == nil, Frozen: d.Frozen, Reason: d.Reason, Why: d.Why,
		WasReady: s.ReadyRevision == d.Spec.RevisionName,
	}
}
