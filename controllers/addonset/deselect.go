// SPDX-License-Identifier: Apache-2.0

package addonset

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/demise"
	"github.com/chandler-hub/chandler/internal/team"
)

// deselect withdraws a delivery that the set does not select, unless it does as soon as the registration has the labels that
// its origin has now. Somebody may change labels and selectors in one commit, and discovery may be busy with other clusters.
// What it writes wakes this room; if the origin goes before, nothing does, so this room looks again.
func (r *Reconciler) deselect(ctx context.Context, set *hubv1.AddonSet, q request) error {
	if r.Labels != nil {
		next, err := r.Labels(ctx, q.registration)
		if err != nil {
			return err
		}
		if next != nil && !q.deselected(next) {
			return apierrors.NewConflict(hubv1.GroupVersion.WithResource("clusterregistrations").GroupResource(), q.registration.Name,
				errors.New("it does not have the labels of its origin yet"))
		}
	}
	if err := r.teamsKnown(ctx, set, q.registration); err != nil {
		return err
	}
	if has, err := r.teamHas(ctx, set, q.registration); err != nil || has {
		return err
	}
	return withdraw(ctx, r.Client, q.delivery, q.orphan)
}

// teamsKnown returns an error if nobody knows which Teams there are, and only one can have had a set reach a cluster: Teams that are gone
// with their CRD have asked for no removal.
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

// teamHas returns whether the Team whose rights a set brings has a cluster. Then the set selects it as soon as the teams room
// has copied the Team's selector, which wakes this room.
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
