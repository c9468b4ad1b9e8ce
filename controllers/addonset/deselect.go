// SPDX-License-Identifier: Apache-2.0

package addonset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/deliverywriter"
	"github.com/chandler-hub/chandler/controllers/demise"
	"github.com/chandler-hub/chandler/internal/match"
	"github.com/chandler-hub/chandler/internal/team"
)

// A label may be gone for a moment, and an edit of a selector may be taken back. So a cluster that a set does not select any
// more keeps what it has for --deselection-delay. Only spec.withdrawAfter of the delivery is written, by the matcher, and
// it is removed when the set selects the cluster again. When the time is over, the set's reconciler asks the removal guard,
// reads everything live that decides, and withdraws the delivery.

// keepsFor returns how long a cluster keeps what it has of a set that does not select it; 0 if that time is over. A hub that starts
// counts anew: while none was at work, the cluster may have been selected. What the guard holds already stays on its list, so that
// people approve the list that they were shown.
func (r *Reconciler) keepsFor(set *hubv1.AddonSet, d *hubv1.AddonDelivery) time.Duration {
	delay := r.Config.DeselectionDelay
	switch {
	case delay == 0:
		return 0
	case d.Spec.WithdrawAfter == nil:
		return delay // the matcher notes it, which wakes the set
	}
	end := d.Spec.WithdrawAfter.Time
	if anew := r.Tenure.Since(r.Clock.Now()).Add(delay); anew.After(end) && set.Status.HeldRemovals == nil {
		end = anew
	}
	return max(0, end.Sub(r.Clock.Now()))
}

// deselect withdraws a delivery from a cluster that the set does not select. The set, the registration, the Teams and the
// origin are read live: people change labels and selectors in one commit, and caches and discovery may be behind. What
// makes up for the lag wakes this controller; if the origin goes before, nothing does, so this controller looks again.
func (r *Reconciler) deselect(ctx context.Context, asked *removals, q request) error {
	set := asked.set
	if err := r.teamsKnown(ctx, set, q.registration); err != nil {
		return err
	}
	aim, err := r.liveAim(ctx, set, asked.aim.Selector != nil)
	if err != nil {
		return err
	}
	reg := &hubv1.ClusterRegistration{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(q.registration), reg); err != nil {
		return fmt.Errorf("read ClusterRegistration %s/%s: %w", q.registration.Namespace, q.registration.Name, err)
	}
	if reg.UID != q.registration.UID || !aim.Leaves(reg) {
		return behind(reg, "the set selects it, or it is another one")
	}
	if r.Labels != nil {
		next, err := r.Labels(ctx, reg)
		if err != nil {
			return err
		}
		if next != nil && !aim.LeavesWith(reg, next) {
			return behind(reg, "it does not have the labels of its origin yet")
		}
	}
	if has, err := r.teamHas(ctx, set, reg); err != nil || has {
		return err
	}
	return deliverywriter.Withdraw(ctx, r.Client, q.delivery, q.orphan)
}

// behind is an error that has the set looked at again when the cache has caught up.
func behind(reg *hubv1.ClusterRegistration, why string) error {
	return apierrors.NewConflict(hubv1.GroupVersion.WithResource("clusterregistrations").GroupResource(), reg.Name, errors.New(why))
}

// liveAim returns which clusters a set is to leave, read live. It is a conflict if the set is not as it was decided on. Of a set
// that does not compile, the reach alone decides.
func (r *Reconciler) liveAim(ctx context.Context, set *hubv1.AddonSet, compiles bool) (match.Aim, error) {
	live := &hubv1.AddonSet{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(set), live); err != nil {
		return match.Aim{}, fmt.Errorf("read AddonSet %s/%s: %w", set.Namespace, set.Name, err)
	}
	if live.UID != set.UID || live.Generation != set.Generation || live.DeletionTimestamp != nil {
		return match.Aim{}, apierrors.NewConflict(hubv1.GroupVersion.WithResource("addonsets").GroupResource(), set.Name,
			errors.New("it has been changed"))
	}
	aim := match.Aim{Reach: match.Reach{Namespace: set.Namespace, Platform: true}}
	if !r.Config.IsPlatform(set.Namespace) {
		teams := &hubv1.TeamList{}
		if err := r.Live.List(ctx, teams); err != nil && !apierrors.IsNotFound(err) { // teamsKnown has asked, if it matters
			return aim, fmt.Errorf("list Teams: %w", err)
		}
		aim.Reach = team.Reach(set.Namespace, teams.Items, r.Config.IsPlatform)
	}
	var err error
	if compiles {
		aim.Selector, err = match.New(aim.Reach, &live.Spec)
	}
	return aim, err
}

// teamsKnown returns an error if it is not known which Teams there are, and only one can have had a set reach a cluster: Teams that are
// gone with their CRD have asked for no removal.
func (r *Reconciler) teamsKnown(ctx context.Context, set *hubv1.AddonSet, reg *hubv1.ClusterRegistration) error {
	if set.Namespace == reg.Namespace || r.Config.IsPlatform(set.Namespace) {
		return nil
	}
	goes, err := demise.AnyKind(ctx, r.Live, demise.Teams)
	if err == nil && goes {
		err = errors.New("their CRD is being deleted")
	}
	if err == nil {
		err = r.Live.List(ctx, &hubv1.TeamList{}, client.Limit(1)) // which fails if the CRD is gone
	}
	if err != nil {
		return fmt.Errorf("which clusters Teams have is not known, so that ClusterRegistration %s/%s keeps what it has: %w",
			reg.Namespace, reg.Name, err)
	}
	return nil
}

// teamHas returns whether the Team whose rights a set brings has a cluster. Then the set selects it as soon as the teams controller
// has copied the Team's selector, which wakes this controller.
func (r *Reconciler) teamHas(ctx context.Context, set *hubv1.AddonSet, reg *hubv1.ClusterRegistration) (bool, error) {
	name := set.Labels[hubv1.TeamLabel]
	if name == "" || set.Name != team.SetName(name) {
		return false, nil
	}
	teams := &hubv1.TeamList{} // live, and all of the namespace: the hub may list them, and not get one
	if err := r.Live.List(ctx, teams, client.InNamespace(set.Namespace)); err != nil {
		return false, fmt.Errorf("read Team %s/%s: %w", set.Namespace, name, err)
	}
	i := slices.IndexFunc(teams.Items, func(t hubv1.Team) bool { return t.Name == name })
	if i < 0 || teams.Items[i].DeletionTimestamp != nil {
		return false, nil
	}
	selector, err := team.Selector(&teams.Items[i])
	return err == nil && selector.Matches(labels.Set(reg.Labels)), nil
}
