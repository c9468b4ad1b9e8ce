// SPDX-License-Identifier: Apache-2.0

package enqueue

import (
	"context"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/status"
)

const (
	// Urgent is the priority of what a starting hub finds unsettled: after what changes meanwhile (0), and before what is as it should be
	// (handler.LowPriority, which controller-runtime gives to all that a first list holds).
	Urgent = handler.LowPriority / 2
	// Fleet is the priority of what a change of a set, or the first look at one, asks of all clusters. What concerns one of them goes
	// before it: a cluster that comes does not wait for five thousand others.
	Fleet = handler.LowPriority / 10
)

// UrgentFirst enqueues what of returns. Of a first list, those that are not settled come before the others. Everything is looked at in any
// case, so who has an object look settled, or not, gains nothing but an earlier or a later place.
func UrgentFirst(of handler.MapFunc, settled func(client.Object) bool) handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	plain := handler.EnqueueRequestsFromMapFunc(of)
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			ordered, ok := q.(priorityqueue.PriorityQueue[reconcile.Request])
			if !ok || !e.IsInInitialList || settled(e.Object) {
				plain.Create(ctx, e, q)
				return
			}
			ordered.AddWithOpts(priorityqueue.AddOpts{Priority: new(Urgent)}, of(ctx, e.Object)...)
		},
		UpdateFunc:  plain.Update,
		DeleteFunc:  plain.Delete,
		GenericFunc: plain.Generic,
	}
}

// SettledDelivery returns whether a delivery is Ready on the revision that it is to have.
func SettledDelivery(obj client.Object) bool {
	d := obj.(*hubv1.AddonDelivery)
	return Stays(d) && d.Status.ObservedGeneration == d.Generation && d.Status.ReadyRevision == d.Spec.RevisionName &&
		status.IsTrue(d, hubv1.ReadyCondition)
}

// SettledRegistration returns whether a registration is Ready as its spec says now.
func SettledRegistration(obj client.Object) bool {
	reg := obj.(*hubv1.ClusterRegistration)
	return Stays(reg) && reg.Status.ObservedGeneration == reg.Generation && status.IsTrue(reg, hubv1.ReadyCondition)
}

// Stays returns whether an object is not being deleted.
func Stays(obj client.Object) bool { return obj.GetDeletionTimestamp().IsZero() }
