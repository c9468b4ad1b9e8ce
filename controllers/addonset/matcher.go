// SPDX-License-Identifier: Apache-2.0

package addonset

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/deliverywriter"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/internal/apply"
	"github.com/chandler-hub/chandler/internal/drain"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/provenance"
	"github.com/chandler-hub/chandler/internal/rollout"
	"github.com/chandler-hub/chandler/internal/status"
)

// Matcher works on one cluster at a time: it creates, updates and withdraws its deliveries.
type Matcher struct {
	*Reconciler
}

// Reconcile compares the deliveries of a registration with the sets that select it. It changes nothing if the
// registration does not exist, or for a set that has not been compiled or does not compile.
func (m *Matcher) Reconcile(ctx context.Context, reg *hubv1.ClusterRegistration) (ctrl.Result, error) {
	list := &hubv1.AddonDeliveryList{}
	if err := m.Client.List(ctx, list, index.DeliveriesOf(client.ObjectKeyFromObject(reg))); err != nil {
		return ctrl.Result{}, fmt.Errorf("list the deliveries: %w", err)
	}
	existing := map[types.NamespacedName]*hubv1.AddonDelivery{}
	for i := range list.Items {
		if d := &list.Items[i]; provenance.Named(d) { // another one says the same, and is not the hub's
			existing[d.SetKey()] = d
		}
	}
	if status.Goes(reg) {
		return apply.Retried(ctrl.Result{}, m.leave(ctx, reg, existing))
	}
	if drain.Requested(reg) {
		return apply.Retried(ctrl.Result{}, m.withdrawAll(ctx, existing, false)) // also what comes from a set that does not compile now
	}
	var errs []error
	sets := m.registry.sets.All()
	for _, key := range sorted(sets) {
		set := sets[key]
		errs = append(errs, m.match(ctx, reg, key, set, existing[key]))
	}
	return apply.Retried(ctrl.Result{}, errors.Join(errs...))
}

// leave withdraws all deliveries at once from a cluster that is being deleted: nothing is lost that would not be lost
// anyway. From a cluster that is only unregistered, the sets' reconcilers withdraw them, as far as their removal
// guards grant it. If another registration of the cluster stays, what goes on through that one is withdrawn at once, and what is being
// withdrawn already is marked: it is orphaned as well.
func (m *Matcher) leave(ctx context.Context, reg *hubv1.ClusterRegistration, existing map[types.NamespacedName]*hubv1.AddonDelivery) error {
	if !orphansAddons(reg) && !status.Unregistered(reg) {
		return nil
	}
	beside := status.Reason(reg, hubv1.UnregisteringCondition) == hubv1.SameClusterReason
	if orphansAddons(reg) && !beside {
		return m.withdrawAll(ctx, existing, true)
	}
	var goesOn func(set types.NamespacedName) bool
	if beside {
		var err error
		if goesOn, err = m.goesOn(ctx, reg); err != nil {
			return err
		}
	}
	// If the set does not exist, nothing else would.
	for key, d := range existing {
		if beside && (d.Withdrawn() || goesOn(key)) {
			continue
		}
		err := m.Live.Get(ctx, key, &hubv1.AddonSet{})
		if err == nil {
			delete(existing, key)
		} else if !apierrors.IsNotFound(err) {
			return fmt.Errorf("look for AddonSet %s: %w", key, err)
		}
	}
	return m.withdrawAll(ctx, existing, leaves(reg))
}

// orphansAddons returns whether the add-ons of a cluster are orphaned.
func orphansAddons(reg *hubv1.ClusterRegistration) bool {
	return hubv1.OrphansAddons(status.Reason(reg, hubv1.UnregisteringCondition))
}

// leaves returns whether a registration that goes leaves on the cluster what was delivered through it, counted by the guard or not. That is
// orphaned also if the cluster is registered again before it is done.
func leaves(reg *hubv1.ClusterRegistration) bool {
	return orphansAddons(reg) || status.Reason(reg, hubv1.UnregisteringCondition) == hubv1.OriginLostReason
}

// goesOn returns a function that returns whether a set selects another registration of the same cluster that stays.
func (m *Matcher) goesOn(ctx context.Context, reg *hubv1.ClusterRegistration) (func(set types.NamespacedName) bool, error) {
	list := &hubv1.ClusterRegistrationList{}
	err := m.Client.List(ctx, list, client.MatchingFields{index.ClusterID: reg.Status.ClusterID()}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("look for other registrations of the cluster: %w", err)
	}
	sets := m.registry.sets.All()
	return func(set types.NamespacedName) bool {
		selector := sets[set].selector
		return selector != nil && selectsAnother(selector, reg, list.Items)
	}, nil
}

// withdrawAll withdraws deliveries. orphaned is true if what they brought stays on the cluster, which marks them: the cluster may be
// registered again before they have gone, and the guard has not counted what is uninstalled then.
func (m *Matcher) withdrawAll(ctx context.Context, existing map[types.NamespacedName]*hubv1.AddonDelivery, orphaned bool) error {
	var errs []error
	for _, key := range sorted(existing) {
		errs = append(errs, deliverywriter.Withdraw(ctx, m.Client, existing[key], orphaned || existing[key].Orphaned()))
	}
	return errors.Join(errs...)
}

// sorted returns the names of sets in a fixed order, so that an error can be reproduced.
func sorted[T any](of map[types.NamespacedName]T) []types.NamespacedName {
	return slices.SortedFunc(maps.Keys(of), func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}

// match compares the delivery of one set with what the set wants; d is nil if there is none.
func (m *Matcher) match(ctx context.Context, reg *hubv1.ClusterRegistration, key types.NamespacedName, set compiled,
	d *hubv1.AddonDelivery) error {
	switch leaves := set.aim().Leaves(reg); {
	case set.leaving:
		return nil
	case leaves && d != nil && d.Spec.WithdrawAfter == nil && !d.Withdrawn() && !set.aim().AtOnce(reg) && m.Config.DeselectionDelay > 0:
		after := m.Clock.Now().Add(m.Config.DeselectionDelay + time.Second - 1).Truncate(time.Second)
		return deliverywriter.Note(ctx, m.Client, d, after)
	case leaves:
		return nil // the set's reconciler withdraws what is there: it sees the fleet, and so how much goes at once
	case d != nil && d.DeletionTimestamp == nil && d.Spec.WithdrawAfter != nil:
		return m.takeBack(ctx, reg, key, set, d)
	case set.selector == nil || !set.selector.Matches(reg):
		return nil // it does not compile, and keeps the clusters that it has
	case d == nil:
		if what, ok := set.first(reg); ok {
			return m.registry.write(key, func() error { return m.deliver(ctx, reg, key, set.uid, what, nil) })
		}
		return nil // it waits for its wave, or it is not known what it should have
	case d.DeletionTimestamp != nil:
		return nil // made again when it is gone
	case d.Spec.Withdrawal != "":
		return m.takeBack(ctx, reg, key, set, d)
	}
	is := gift{d.Spec.RevisionName, d.Spec.Start}
	wanted := set.gives(client.ObjectKeyFromObject(reg), d.UID, is)
	if d.Spec.AddonSetRef.UID == set.uid && wanted.equal(is) {
		return nil
	}
	return m.registry.write(key, func() error { return m.deliver(ctx, reg, key, set.uid, wanted, d) })
}

// takeBack takes a withdrawal back that was decided or is on its way, and gives the delivery what the set wants: no event tells of that
// again.
func (m *Matcher) takeBack(ctx context.Context, reg *hubv1.ClusterRegistration, key types.NamespacedName, set compiled,
	d *hubv1.AddonDelivery) error {
	stays, err := deliverywriter.CallOff(ctx, m.Client, d)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	if stays.Spec.WithdrawAfter != nil || stays.Spec.Withdrawal != "" {
		return fmt.Errorf("AddonDelivery %s/%s: its withdrawal was taken back, and something on the management cluster writes it again",
			d.Namespace, d.Name)
	}
	return m.match(ctx, reg, key, set, stays)
}

// gift is a revision, and how a cluster came to it.
type gift struct {
	revision string
	start    *hubv1.DeliveryStart
}

func (g gift) equal(o gift) bool {
	return g.revision == o.revision && equality.Semantic.DeepEqual(g.start, o.start)
}

// first returns what a cluster without a delivery gets; false if it gets nothing now.
func (c *compiled) first(reg *hubv1.ClusterRegistration) (what gift, ok bool) {
	start, starts := c.starts[client.ObjectKeyFromObject(reg)]
	switch {
	case c.held:
		return what, false
	case c.newcomers != "" && rollout.Young(reg.CreationTimestamp.Time, c.after):
		return gift{revision: c.newcomers}, true
	case starts && start.Delivery == "":
		return gift{start.Revision, start.Start}, true
	}
	return what, false
}

// gives returns what a cluster is to have that has something now.
func (c *compiled) gives(cluster types.NamespacedName, delivery types.UID, is gift) gift {
	start, starts := c.starts[cluster]
	switch {
	case c.held:
		return is
	case c.everyone != "":
		return gift{revision: c.everyone}
	case starts && start.Delivery == delivery:
		return gift{start.Revision, start.Start}
	}
	return is
}

// deliver writes a delivery. there is the one that was seen; nil makes one. Another one of its name is never written, nor one that has
// changed since: a hub that leads no more would take back what the new one has decided.
func (r *Reconciler) deliver(ctx context.Context, reg *hubv1.ClusterRegistration, set types.NamespacedName, uid types.UID,
	what gift, there *hubv1.AddonDelivery) error {
	regKey := client.ObjectKeyFromObject(reg)
	spec := map[string]any{
		"registrationRef": map[string]any{"namespace": reg.Namespace, "name": reg.Name},
		"addonSetRef":     map[string]any{"name": set.Name, "uid": string(uid)},
		"revisionName":    what.revision,
	}
	if s := what.start; s != nil {
		start := map[string]any{"time": s.Time.UTC().Format(time.RFC3339), "healthy": s.Healthy}
		if s.WithoutNodes {
			start["withoutNodes"] = true
		}
		spec["start"] = start
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(hubv1.GroupVersion.WithKind("AddonDelivery"))
	u.SetNamespace(set.Namespace)
	u.SetName(identity.Delivery(set.Name, regKey))
	u.SetFinalizers([]string{hubv1.Finalizer})
	u.SetLabels(map[string]string{
		"app.kubernetes.io/managed-by": "chandler",
		hubv1.ClusterKeyLabel:          identity.ClusterKey(r.Config.HubID, regKey),
		hubv1.ClusterLabel:             identity.LabelValue(reg.Name),
		hubv1.AddonSetLabel:            labelValue(set.Name),
	})
	if there != nil {
		u.SetUID(there.UID)
		u.SetResourceVersion(there.ResourceVersion)
		_, err := apply.Update(ctx, r.Client, u, hubv1.FieldManager)
		return err
	}
	clusterKey := identity.ClusterKey(r.Config.HubID, regKey)
	if err := apply.FreeFor(ctx, r.Client, client.ObjectKeyFromObject(u), &hubv1.AddonDelivery{}, clusterKey); err != nil {
		return fmt.Errorf("AddonDelivery %w", err)
	}
	_, err := apply.Create(ctx, r.Client, r.Live, u, hubv1.FieldManager, func(o client.Object) bool {
		return o.GetLabels()[hubv1.ClusterKeyLabel] == clusterKey
	})
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil // the set's namespace is being deleted, and the set with it
	}
	return err
}
