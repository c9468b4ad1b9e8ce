// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/controllers/reach"
	"github.com/chandler-hub/chandler/internal/match"
	"github.com/chandler-hub/chandler/internal/provenance"
	"github.com/chandler-hub/chandler/internal/serving"
	"github.com/chandler-hub/chandler/internal/teardown"
)

// deliveriesOf lists the deliveries to a cluster, by the key of its registration, that the hub has made. They are the cache's own, so no
// caller may write to them.
func (r *Reconciler) deliveriesOf(ctx context.Context, registration types.NamespacedName) ([]hubv1.AddonDelivery, error) {
	list := &hubv1.AddonDeliveryList{}
	if err := r.Client.List(ctx, list, index.DeliveriesOf(registration), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the deliveries of ClusterRegistration %s: %w", registration, err)
	}
	return slices.DeleteFunc(slices.Clone(list.Items), func(d hubv1.AddonDelivery) bool { return !provenance.Named(&d) }), nil
}

// sets counts what the sets do for a cluster, and sets status.addonCounts, status.sets and status.orphans.
func (r *Reconciler) sets(ctx context.Context, reg *hubv1.ClusterRegistration) (*serving.Sets, error) {
	deliveries, err := r.deliveriesOf(ctx, client.ObjectKeyFromObject(reg))
	if err != nil {
		return nil, err
	}
	out := serving.Of(reg, deliveries, r.Clock.Now())
	orphans, omitted := teardown.Orphans(reg.Status.Orphans, deliveries, r.scopesOf(ctx, reg))
	reg.Status.Orphans, reg.Status.OrphansOmitted = orphans, reg.Status.OrphansOmitted+omitted
	if holder := reg.Status.DuplicateOf; holder != nil {
		elsewhere, err := r.deliveriesOf(ctx, holder.Key())
		if err != nil {
			return nil, err
		}
		out.Elsewhere(elsewhere)
	}
	if err := r.inReach(ctx, reg, out); err != nil {
		return nil, err
	}
	out.Report(reg, r.Clock.Now())
	return out, nil
}

// inReach adds the sets that reach a cluster and do not deliver there.
func (r *Reconciler) inReach(ctx context.Context, reg *hubv1.ClusterRegistration, out *serving.Sets) error {
	sets := &hubv1.AddonSetList{}
	if err := r.Client.List(ctx, sets, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the sets: %w", err)
	}
	for i := range sets.Items {
		s := &sets.Items[i]
		if out.Delivers(s) || s.DeletionTimestamp != nil {
			continue
		}
		from, err := reach.Of(ctx, r.Client, r.Config, s.Namespace)
		if err != nil {
			return err
		}
		if selector, err := match.New(from, &s.Spec); err == nil && selector.Reaches(reg) {
			out.Reach(s, selector.Why(reg))
		}
	}
	return nil
}

// nextLook returns after how long the status changes with time alone: the credential's days count down.
func (r *Reconciler) nextLook(reg *hubv1.ClusterRegistration) time.Duration {
	c := reg.Status.Credential
	if c == nil || c.ExpirationTime == nil {
		return 0
	}
	left := c.ExpirationTime.Sub(r.Clock.Now())
	switch {
	case left <= 0:
		return 0
	case left < 24*time.Hour:
		return left%time.Hour + time.Second
	case left <= 90*24*time.Hour:
		return left%(24*time.Hour) + time.Second
	}
	return left - 90*24*time.Hour + time.Second
}
