// SPDX-License-Identifier: Apache-2.0

package addonset

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/deliverywriter"
	"github.com/chandler-hub/chandler/internal/drain"
	"github.com/chandler-hub/chandler/internal/guard"
	"github.com/chandler-hub/chandler/internal/match"
	"github.com/chandler-hub/chandler/internal/status"
)

// removals are what the clusters of a set are to lose.
type removals struct {
	set *hubv1.AddonSet
	// aim says which clusters the set is to leave.
	aim    match.Aim
	wanted []guard.Removal
	// requests are what to do when a removal is granted, by digest.
	requests map[string]request
	// clusters is how many clusters have something of the set.
	clusters int
	// made returns the add-ons of a delivery whose Flux objects exist, and whether others are being deleted. It is
	// called when a whole delivery is to go.
	made func(*hubv1.AddonDelivery) (made []string, going bool, err error)
	// elsewhere returns whether the set selects another registration of a cluster that is not going.
	elsewhere func(*hubv1.ClusterRegistration) bool
	// stays returns for how long a delivery stays on a cluster that the set does not select any more; 0 if it is to go. wait is the
	// shortest of these times; 0 if there is none.
	stays func(*hubv1.AddonDelivery) time.Duration
	wait  time.Duration
	// unnoted are the clusters whose deliveries do not say yet until when they stay.
	unnoted []*hubv1.ClusterRegistration
	// failed is a read error: then nothing is decided.
	failed error
	// doomed is true if the set's namespace is being deleted: deliveries that were deleted with it go without a request.
	doomed bool
}

// request is one delivery that is to go, or that asks to remove some of what it delivers.
type request struct {
	delivery *hubv1.AddonDelivery
	// grants are what it asks for; none if all of it is to go.
	grants []string
	// orphan is true if all of it is to go, and its add-ons stay on the cluster.
	orphan bool
	// deselected is true if all of it is to go because the set does not select the cluster.
	deselected   bool
	registration *hubv1.ClusterRegistration
	// empty is true if all of it is to go, and it seems to have nothing on the cluster.
	empty bool
}

func (r *Reconciler) newRemovals(ctx context.Context, set *hubv1.AddonSet, aim match.Aim) *removals {
	made := func(d *hubv1.AddonDelivery) ([]string, bool, error) { return r.objectsOf(ctx, d) }
	stays := func(d *hubv1.AddonDelivery) time.Duration { return r.keepsFor(set, d) }
	return &removals{set: set, aim: aim, stays: stays, requests: map[string]request{}, made: made,
		elsewhere: func(*hubv1.ClusterRegistration) bool { return false }}
}

// of adds one delivery that is not being withdrawn yet. reg is nil if the registration does not exist: then nothing is
// removed. While a registration goes, and it is not known yet whether its cluster goes too, the loss of its labels asks for
// nothing; but what the guard holds stays on its list, so that the hash that people are shown does not change twice. leaves is
// true if the set does not select the cluster any more, and waits while the cluster keeps what it has even so.
func (r *removals) of(d *hubv1.AddonDelivery, reg *hubv1.ClusterRegistration) (leaves, waits bool) {
	switch {
	case reg == nil:
	case status.Unregistered(reg), drain.Requested(reg):
		r.withdraw(d, reg, false)
	case r.aim.Leaves(reg) && (!status.Goes(reg) || r.set.Status.HeldRemovals != nil):
		if !r.aim.AtOnce(reg) {
			if wait := r.stays(d); wait > 0 {
				if r.wait = sooner(r.wait, wait); d.Spec.WithdrawAfter == nil {
					r.unnoted = append(r.unnoted, reg)
				}
				r.change(d)
				return true, true
			}
		}
		r.withdraw(d, reg, true)
		return true, false
	default:
		r.change(d)
	}
	return false, false
}

// withdraw requests that a whole delivery goes. It does not count if its add-ons stay on the cluster, if they are
// lost with the cluster anyway, or if a user drains the cluster, by name. deselected is that of a request.
func (r *removals) withdraw(d *hubv1.AddonDelivery, reg *hubv1.ClusterRegistration, deselected bool) {
	if d.Withdrawn() || r.doomed && d.DeletionTimestamp != nil {
		return
	}
	addons := r.count(d)
	unreported, going := r.unreported(d, addons)
	addons = append(addons, unreported...)
	empty := len(addons) == 0 && !going // what is on its way out needs its delivery to let go of it
	orphaned := r.set.Spec.DeletionPolicy == hubv1.DeletionPolicyOrphan || reg.Spec.DeletionPolicy == hubv1.DeletionPolicyOrphan
	if orphaned || drain.Requested(reg) || r.losesNothing(reg) {
		addons, empty = nil, false
	}
	r.ask(d, guard.Withdrawal(string(d.UID)), addons,
		request{delivery: d, orphan: orphaned || leaves(reg), empty: empty, registration: reg, deselected: deselected})
}

// losesNothing returns whether nothing is lost when a registration is unregistered: its cluster goes, a user forces
// it, or the set also selects another registration of the cluster that stays. If only other sets select that
// registration, this set's add-ons are orphaned, and nothing delivers them any more: that counts like any removal.
func (r *removals) losesNothing(reg *hubv1.ClusterRegistration) bool {
	reason := status.Reason(reg, hubv1.UnregisteringCondition)
	return hubv1.OrphansAddons(reason) && (reason != hubv1.SameClusterReason || r.elsewhere(reg))
}

// change requests what the delivery asks to remove or to reinstall.
func (r *removals) change(d *hubv1.AddonDelivery) {
	r.count(d)
	var addons, grants []string
	for _, a := range d.Status.Addons {
		if a.Removal != "" && !slices.Contains(d.Spec.Removals, a.Removal) {
			addons, grants = append(addons, a.Name), append(grants, a.Removal)
		}
	}
	switch {
	case len(grants) > 0:
		r.ask(d, guard.Change(grants), addons, request{delivery: d, grants: grants})
	case d.Status.ObservedGeneration == d.Generation && len(inUse(d)) < len(d.Spec.Removals):
		r.ask(d, guard.Change(d.Spec.Removals), nil, request{delivery: d, grants: []string{}}) // to take back what is used up is free
	}
}

// inUse returns the grants of a delivery that it has not used up yet.
func inUse(d *hubv1.AddonDelivery) []string {
	var out []string
	for _, a := range d.Status.Addons {
		if a.Removal != "" && slices.Contains(d.Spec.Removals, a.Removal) {
			out = append(out, a.Removal)
		}
	}
	return out
}

func (r *removals) ask(d *hubv1.AddonDelivery, digest string, addons []string, q request) {
	r.wanted = append(r.wanted, guard.Removal{Cluster: d.Spec.RegistrationRef.Key().String(), Digest: digest, Addons: addons})
	r.requests[digest] = q
}

// count counts the add-ons that a delivery has brought to its cluster, and returns them. A delivery that has not
// reported yet may have brought all of the set's add-ons: the first status is delayed (internal/pace), while Flux is
// already at work.
func (r *removals) count(d *hubv1.AddonDelivery) []string {
	var addons []string
	for i := range d.Status.Addons {
		if a := &d.Status.Addons[i]; there(d, a) {
			addons = append(addons, a.Name)
		}
	}
	// If not, an older hub wrote it, or it came from a backup. Then its status says what it has brought.
	ours := d.Spec.AddonSetRef.UID == r.set.UID
	if ours && status.Find(d, hubv1.ReadyCondition) == nil { // and so there is no list of add-ons
		for i := range r.set.Spec.Addons {
			addons = append(addons, r.set.Spec.Addons[i].Name)
		}
	}
	slices.Sort(addons)
	addons = slices.Compact(addons)
	if len(addons) > 0 {
		r.clusters++
	}
	return addons
}

// there returns whether an add-on is on its cluster, or may be, and its removal has not been counted. An add-on that
// is leaving counts as there until the guard grants its removal: on a cluster that sleeps or does not answer, it
// waits before it asks.
func there(d *hubv1.AddonDelivery, a *hubv1.AddonStatus) bool {
	switch {
	case a.State == hubv1.AddonRemoving:
		return a.Removal == "" || !slices.Contains(d.Spec.Removals, a.Removal)
	case a.State == hubv1.AddonHeld:
		return true
	case a.State == hubv1.AddonOrphaned:
		return false
	}
	return a.AppliedGeneration > 0 || a.Version != "" // the generation of what came out of a backup is not known
}

// guard decides which removals are granted, and notes them in the set's status, in memory.
func (r *Reconciler) guard(set *hubv1.AddonSet, asked *removals) guard.Verdict {
	v := guard.Decide(guard.Input{
		Wanted: asked.wanted, Held: set.Status.HeldRemovals, Removals: set.Status.Removals, Clusters: asked.clusters,
		Window:   guard.WindowOf(&set.Spec, r.Config.RemovalWindow),
		Approval: set.Annotations[hubv1.ApproveRemovalAnnotation], Now: r.Clock.Now(),
		Off: set.Spec.RemovalGuard != nil && set.Spec.RemovalGuard.Mode == hubv1.RemovalGuardOff,
	})
	set.Status.HeldRemovals, set.Status.Removals = v.Held, v.Removals
	held := int32(0)
	if v.Held == nil {
		status.Clear(set, hubv1.RemovalsHeldCondition)
	} else {
		held = v.Held.Count
		status.Set(set, hubv1.RemovalsHeldCondition, metav1.ConditionTrue, hubv1.TooManyRemovalsReason, r.guardMessage(set), r.Clock.Now())
	}
	if set.Status.Clusters != nil {
		set.Status.Clusters.Held = held
	}
	return v
}

// guardMessage says what the guard of a set holds.
func (r *Reconciler) guardMessage(set *hubv1.AddonSet) string {
	return guard.Message(set, guard.WindowOf(&set.Spec, r.Config.RemovalWindow))
}

// tellGuard sends an event when the guard begins to hold something, and when that is approved.
func (r *Reconciler) tellGuard(before, set *hubv1.AddonSet, v guard.Verdict) {
	if before.Status.HeldRemovals == nil && v.Held != nil {
		r.Recorder.Eventf(set, nil, corev1.EventTypeWarning, hubv1.RemovalsHeldCondition, "Remove", "%s", r.guardMessage(set))
	}
	if v.Approved {
		r.Recorder.Eventf(set, nil, corev1.EventTypeNormal, hubv1.RemovalsApprovedEvent, "Remove",
			"%s=%s lets %s go on", hubv1.ApproveRemovalAnnotation, set.Annotations[hubv1.ApproveRemovalAnnotation],
			status.Count(len(v.Go), "removal"))
	}
}

// carryOut does what the guard has granted: it withdraws deliveries, or tells them what they may remove. It wakes the matcher where
// a delivery is to be noted that was made after the matcher had looked at the cluster.
func (r *Reconciler) carryOut(ctx context.Context, asked *removals, v guard.Verdict) error {
	var errs []error
	for _, reg := range asked.unnoted {
		r.starts.Ring(ctx, reg)
	}
	for _, removal := range v.Go {
		switch q := asked.requests[removal.Digest]; {
		case q.grants != nil:
			errs = append(errs, deliverywriter.Grant(ctx, r.Client, q.delivery, slices.Concat(q.grants, inUse(q.delivery))))
		case q.empty:
			errs = append(errs, deliverywriter.Remove(ctx, r.Client, q.delivery))
		case q.deselected:
			errs = append(errs, r.deselect(ctx, asked, q))
		default:
			errs = append(errs, deliverywriter.Withdraw(ctx, r.Client, q.delivery, q.orphan))
		}
	}
	return errors.Join(errs...)
}
