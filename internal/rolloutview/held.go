// SPDX-License-Identifier: Apache-2.0

package rolloutview

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/drain"
	"github.com/chandler-hub/chandler/internal/guard"
	"github.com/chandler-hub/chandler/internal/match"
	"github.com/chandler-hub/chandler/internal/provenance"
	"github.com/chandler-hub/chandler/internal/status"
)

// HeldRemoval is what the removal guard of a set holds on one cluster.
type HeldRemoval struct {
	Delivery *hubv1.AddonDelivery
	// Whole is true if the whole set is to leave the cluster. Otherwise these add-ons of it are to go, or to be reinstalled.
	Whole  bool
	Losses []hubv1.AddonStatus
}

// Held returns what the removal guard of a set holds, cluster by cluster, and whether that is exactly what somebody approves with the hash
// in the set's status. It finds it as the hub does, from what the objects say; what the hub knows besides, from the Flux objects, makes
// the list no longer, but may make it inexact. It wants Deliveries, Registrations and Reach.
func Held(in *Input) (list []HeldRemoval, exact bool) {
	held := in.Set.Status.HeldRemovals
	if held == nil {
		return nil, false
	}
	var underWay []string
	if r := in.Set.Status.Removals; r != nil {
		underWay = r.UnderWay
	}
	registrations := map[types.NamespacedName]*hubv1.ClusterRegistration{}
	for i := range in.Registrations {
		reg := &in.Registrations[i]
		registrations[types.NamespacedName{Namespace: reg.Namespace, Name: reg.Name}] = reg
	}
	aim := match.Aim{Reach: in.Reach}
	if selector, err := match.New(in.Reach, &in.Set.Spec); err == nil && !status.IsTrue(in.Set, hubv1.StalledCondition) {
		aim.Selector = selector // otherwise it removes nothing by its selector
	}
	var removals []guard.Removal
	for i := range in.Deliveries {
		d := &in.Deliveries[i]
		if d.SetKey().String() != in.key() || d.Withdrawn() || !provenance.Named(d) {
			continue
		}
		h, digest := in.asks(d, registrations[d.Spec.RegistrationRef.Key()], aim)
		if len(h.Losses) > 0 && !slices.Contains(underWay, digest) {
			list, removals = append(list, h), append(removals, guard.Removal{Digest: digest})
		}
	}
	slices.SortFunc(list, func(a, b HeldRemoval) int {
		return cmp.Compare(a.Delivery.Spec.RegistrationRef.Key().String(), b.Delivery.Spec.RegistrationRef.Key().String())
	})
	return list, guard.Holds(held, removals)
}

// asks returns what a delivery wants to have removed or reinstalled, and the digest of that. reg is nil if there is none.
func (in *Input) asks(d *hubv1.AddonDelivery, reg *hubv1.ClusterRegistration, aim match.Aim) (h HeldRemoval, digest string) {
	h.Delivery = d
	after := d.Spec.WithdrawAfter
	over := after == nil || !in.Now.Before(after.Time) || reg != nil && aim.AtOnce(reg)
	h.Whole = in.Set.DeletionTimestamp != nil ||
		reg != nil && (status.Unregistered(reg) || drain.Requested(reg) || over && aim.Leaves(reg))
	if h.Whole {
		if !in.losesNothing(reg) {
			h.Losses = in.there(d)
		}
		return h, guard.Withdrawal(string(d.UID))
	}
	var grants []string
	if reg != nil {
		for _, a := range d.Status.Addons {
			if a.Removal != "" && !slices.Contains(d.Spec.Removals, a.Removal) {
				h.Losses, grants = append(h.Losses, a), append(grants, a.Removal)
			}
		}
	}
	return h, guard.Change(grants)
}

// losesNothing returns whether the guard does not count what leaves with a registration: its add-ons stay on the cluster, or go with it,
// or somebody drains it by name.
func (in *Input) losesNothing(reg *hubv1.ClusterRegistration) bool {
	if in.Set.Spec.DeletionPolicy == hubv1.DeletionPolicyOrphan {
		return true
	}
	if reg == nil {
		return false
	}
	reason := status.Reason(reg, hubv1.UnregisteringCondition)
	return reg.Spec.DeletionPolicy == hubv1.DeletionPolicyOrphan || drain.Requested(reg) ||
		hubv1.OrphansAddons(reason) && reason != hubv1.SameClusterReason
}

// there returns the add-ons that are on a cluster, or may be. A delivery that has not reported yet may have brought all of the set's.
func (in *Input) there(d *hubv1.AddonDelivery) []hubv1.AddonStatus {
	var out []hubv1.AddonStatus
	for _, a := range d.Status.Addons {
		switch a.State {
		case hubv1.AddonOrphaned:
			continue
		case hubv1.AddonRemoving:
			if a.Removal != "" && slices.Contains(d.Spec.Removals, a.Removal) {
				continue
			}
		case hubv1.AddonHeld:
		default:
			if a.AppliedGeneration == 0 && a.Version == "" {
				continue
			}
		}
		out = append(out, a)
	}
	if status.Find(d, hubv1.ReadyCondition) == nil && d.Spec.AddonSetRef.UID == in.Set.UID {
		for i := range in.Set.Spec.Addons {
			name := in.Set.Spec.Addons[i].Name
			if !slices.ContainsFunc(out, func(a hubv1.AddonStatus) bool { return a.Name == name }) {
				out = append(out, hubv1.AddonStatus{Name: name})
			}
		}
	}
	return out
}
