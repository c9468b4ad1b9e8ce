// SPDX-License-Identifier: Apache-2.0

// Package enqueue holds the map functions and predicates that several controllers share: which registrations an event
// concerns, when to reconcile them, and which events count.
package enqueue

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/controllers/reach"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/team"
)

// Later enqueues what of returns after a delay, so that many events make one reconcile.
func Later(delay time.Duration, of handler.MapFunc) handler.EventHandler {
	return LaterBy(func(context.Context, reconcile.Request) time.Duration { return delay }, of)
}

// LaterBy is Later with a delay that differs between requests.
func LaterBy(delay func(context.Context, reconcile.Request) time.Duration, of handler.MapFunc) handler.EventHandler {
	return later(nil, delay, of)
}

// LaterForAll is Later for what concerns the whole fleet.
func LaterForAll(delay time.Duration, of handler.MapFunc) handler.EventHandler {
	return later(new(Fleet), func(context.Context, reconcile.Request) time.Duration { return delay }, of)
}

// forAll enqueues what of returns of an object as it was and as it is, as what concerns the whole fleet.
func forAll(of handler.MapFunc) handler.EventHandler {
	events := later(new(Fleet), func(context.Context, reconcile.Request) time.Duration { return 0 }, of)
	is := events.UpdateFunc
	events.UpdateFunc = func(ctx context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		is(ctx, event.UpdateEvent{ObjectNew: e.ObjectOld}, q)
		is(ctx, e, q)
	}
	return events
}

// later enqueues what of returns, after a delay, with a priority; nil is controller-runtime's own. What a first list holds comes last in
// any case.
func later(priority *int, delay func(context.Context, reconcile.Request) time.Duration, of handler.MapFunc) handler.Funcs {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	add := func(ctx context.Context, obj client.Object, q queue, priority *int) {
		ordered, ok := q.(priorityqueue.PriorityQueue[reconcile.Request])
		for _, req := range of(ctx, obj) {
			if after := delay(ctx, req); ok {
				ordered.AddWithOpts(priorityqueue.AddOpts{After: after, Priority: priority}, req)
			} else {
				q.AddAfter(req, after)
			}
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			if e.IsInInitialList {
				add(ctx, e.Object, q, nil)
				return
			}
			add(ctx, e.Object, q, priority)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) { add(ctx, e.ObjectNew, q, priority) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { add(ctx, e.Object, q, priority) },
	}
}

// RegistrationOfDelivery returns the registration that an AddonDelivery is for.
func RegistrationOfDelivery(_ context.Context, obj client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: obj.(*hubv1.AddonDelivery).Spec.RegistrationRef.Key()}}
}

// RegistrationOfObject returns the registration that a generated object is for.
func RegistrationOfObject(_ context.Context, obj client.Object) []reconcile.Request {
	k, ok := index.Registration(obj.GetAnnotations()[hubv1.RegistrationAnnotation])
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: k}}
}

// InReach returns a function that returns the registrations that an AddonSet may select, whatever its selector says.
func InReach(c client.Reader, config *hubconfig.Config) handler.MapFunc {
	return func(ctx context.Context, set client.Object) []reconcile.Request {
		if from, err := reach.Of(ctx, c, config, set.GetNamespace()); err != nil || from.Platform || from.ByTeam() {
			return Registrations(ctx, c)
		}
		return Registrations(ctx, c, client.InNamespace(set.GetNamespace()))
	}
}

// AllSets returns a function that returns all AddonSets, whatever the event is about.
func AllSets(c client.Reader) handler.MapFunc {
	return func(ctx context.Context, _ client.Object) []reconcile.Request {
		sets := &hubv1.AddonSetList{}
		if err := c.List(ctx, sets, client.UnsafeDisableDeepCopy); err != nil {
			log.FromContext(ctx).Error(err, "List the sets")
			return nil
		}
		out := make([]reconcile.Request, len(sets.Items))
		for i := range sets.Items {
			out[i].NamespacedName = client.ObjectKeyFromObject(&sets.Items[i])
		}
		return out
	}
}

// Everywhere returns a function that returns all registrations, whatever the event is about.
func Everywhere(c client.Reader) handler.MapFunc {
	return func(ctx context.Context, _ client.Object) []reconcile.Request { return Registrations(ctx, c) }
}

// SetsOfTeam returns a function that returns the AddonSets of the namespaces that a Team claims.
func SetsOfTeam(c client.Reader) handler.MapFunc {
	return func(ctx context.Context, obj client.Object) []reconcile.Request {
		var out []reconcile.Request
		for _, namespace := range team.Claims(obj.(*hubv1.Team)) {
			sets := &hubv1.AddonSetList{}
			if err := c.List(ctx, sets, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
				ctrl.LoggerFrom(ctx).Error(err, "list the sets of a Team")
				continue
			}
			for i := range sets.Items {
				out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&sets.Items[i])})
			}
		}
		return out
	}
}

// ClustersOfTeam enqueues the registrations to which the sets of the namespaces deliver that a Team claims, or has claimed, after what
// concerns one of them: a Team may have the whole fleet.
func ClustersOfTeam(c client.Reader) handler.EventHandler {
	return forAll(func(ctx context.Context, obj client.Object) []reconcile.Request {
		seen := map[types.NamespacedName]bool{}
		for _, namespace := range team.Claims(obj.(*hubv1.Team)) {
			list := &hubv1.AddonDeliveryList{}
			if err := c.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
				ctrl.LoggerFrom(ctx).Error(err, "list the deliveries of a Team")
				continue
			}
			for i := range list.Items {
				seen[list.Items[i].Spec.RegistrationRef.Key()] = true
			}
		}
		out := make([]reconcile.Request, 0, len(seen))
		for key := range seen {
			out = append(out, reconcile.Request{NamespacedName: key})
		}
		return out
	})
}

// UsersOfSecret returns a function that returns the registrations whose kubeconfig comes from a Secret, or is to come from it.
func UsersOfSecret(c client.Reader) handler.MapFunc {
	return func(ctx context.Context, obj client.Object) []reconcile.Request {
		return Registrations(ctx, c, client.InNamespace(obj.GetNamespace()), client.MatchingFields{index.RegistrationSecret: obj.GetName()})
	}
}

// Registrations returns the registrations that the options select.
func Registrations(ctx context.Context, c client.Reader, opts ...client.ListOption) []reconcile.Request {
	regs := &hubv1.ClusterRegistrationList{}
	if err := c.List(ctx, regs, append(opts, client.UnsafeDisableDeepCopy)...); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list registrations")
		return nil
	}
	out := make([]reconcile.Request, len(regs.Items))
	for i := range regs.Items {
		out[i].NamespacedName = client.ObjectKeyFromObject(&regs.Items[i])
	}
	return out
}
