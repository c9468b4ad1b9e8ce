// SPDX-License-Identifier: Apache-2.0

package enqueue

import (
	"context"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// registration returns a registration that is Ready on its generation.
func registration(name string) *hubv1.ClusterRegistration {
	reg := &hubv1.ClusterRegistration{}
	reg.Namespace, reg.Name, reg.Generation = "fleet", name, 2
	reg.Status.ObservedGeneration = 2
	reg.Status.Conditions = []metav1.Condition{{Type: hubv1.ReadyCondition, Status: metav1.ConditionTrue}}
	return reg
}

// delivery returns a delivery to a cluster that is Ready on the revision that it is to have.
func delivery(cluster string) *hubv1.AddonDelivery {
	d := &hubv1.AddonDelivery{}
	d.Namespace, d.Name, d.Generation = "fleet", cluster+"-web", 3
	d.Spec.RegistrationRef.Namespace, d.Spec.RegistrationRef.Name = "fleet", cluster
	d.Spec.RevisionName = "web-2"
	d.Status.ObservedGeneration, d.Status.ReadyRevision = 3, "web-2"
	d.Status.Conditions = []metav1.Condition{{Type: hubv1.ReadyCondition, Status: metav1.ConditionTrue}}
	return d
}

func TestSettled(t *testing.T) {
	now := metav1.Now()
	notReady := []metav1.Condition{{Type: hubv1.ReadyCondition, Status: metav1.ConditionFalse}}
	for name, change := range map[string]func(*hubv1.ClusterRegistration, *hubv1.AddonDelivery){
		"deleted": func(r *hubv1.ClusterRegistration, d *hubv1.AddonDelivery) {
			r.DeletionTimestamp, d.DeletionTimestamp = &now, &now
		},
		"changed": func(r *hubv1.ClusterRegistration, d *hubv1.AddonDelivery) { r.Generation++; d.Generation++ },
		"not Ready": func(r *hubv1.ClusterRegistration, d *hubv1.AddonDelivery) {
			r.Status.Conditions, d.Status.Conditions = notReady, notReady
		},
		"new": func(r *hubv1.ClusterRegistration, d *hubv1.AddonDelivery) {
			r.Status, d.Status = hubv1.ClusterRegistrationStatus{}, hubv1.AddonDeliveryStatus{}
		},
	} {
		reg, d := registration("a"), delivery("a")
		if !SettledRegistration(reg) || !SettledDelivery(d) {
			t.Fatal("what is Ready as it should be counts as unsettled")
		}
		change(reg, d)
		if SettledRegistration(reg) || SettledDelivery(d) {
			t.Errorf("%s: counts as settled: registration %t, delivery %t", name, SettledRegistration(reg), SettledDelivery(d))
		}
	}
	d := delivery("a")
	d.Status.ReadyRevision = "web-1"
	if SettledDelivery(d) {
		t.Error("a delivery that was Ready on another revision counts as settled")
	}
}

// TestStartByUrgency has a queue filled as at the hub's start, and holds that everything comes, each cluster once, in order
// of urgency: what changes meanwhile, what the first list shows unsettled, and the rest.
func TestStartByUrgency(t *testing.T) {
	deliveries := UrgentFirst(RegistrationOfDelivery, SettledDelivery)
	failing := delivery("c")
	failing.Status.Conditions[0].Status = metav1.ConditionFalse
	got := order(t, 4, func(ctx context.Context, q priorityqueue.PriorityQueue[reconcile.Request]) {
		for _, d := range []*hubv1.AddonDelivery{delivery("a"), delivery("b"), failing, delivery("c")} {
			deliveries.Create(ctx, event.CreateEvent{Object: d, IsInInitialList: true}, q)
		}
		handler.EnqueueRequestsFromMapFunc(Itself).Create(ctx, event.CreateEvent{Object: registration("c"), IsInInitialList: true}, q)
		deliveries.Create(ctx, event.CreateEvent{Object: delivery("new")}, q)
	})
	if want := []string{"new", "c", "a", "b"}; !slices.Equal(got, want) {
		t.Errorf("the clusters were looked at in the order %q, want %q", got, want)
	}
}

// TestOneClusterGoesBeforeTheFleet holds that a cluster that comes or changes does not wait for what a set asks of all clusters.
func TestOneClusterGoesBeforeTheFleet(t *testing.T) {
	all := func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{named("a"), named("b"), named("c")}
	}
	own := func(ctx context.Context, q priorityqueue.PriorityQueue[reconcile.Request]) {
		handler.EnqueueRequestsFromMapFunc(Itself).Create(ctx, event.CreateEvent{Object: registration("new")}, q)
		handler.EnqueueRequestsFromMapFunc(Itself).Update(ctx, event.UpdateEvent{ObjectOld: changed("b", "1"), ObjectNew: changed("b", "2")}, q)
		handler.EnqueueRequestsFromMapFunc(Itself).Create(ctx, event.CreateEvent{Object: registration("d"), IsInInitialList: true}, q)
	}
	want := []string{"new", "b", "a", "c", "d"}
	t.Run("a bell", func(t *testing.T) {
		got := order(t, len(want), func(ctx context.Context, q priorityqueue.PriorityQueue[reconcile.Request]) {
			bell := NewFleetBell(all)
			if err := bell.Start(ctx, q); err != nil {
				t.Fatal(err)
			}
			bell.Ring(ctx, registration("any"))
			own(ctx, q)
		})
		if !slices.Equal(got, want) {
			t.Errorf("the clusters were looked at in the order %q, want %q", got, want)
		}
	})
	t.Run("a watch", func(t *testing.T) {
		got := order(t, len(want), func(ctx context.Context, q priorityqueue.PriorityQueue[reconcile.Request]) {
			LaterForAll(0, all).Update(ctx, event.UpdateEvent{ObjectOld: changed("set", "1"), ObjectNew: changed("set", "2")}, q)
			own(ctx, q)
		})
		if !slices.Equal(got, want) {
			t.Errorf("the clusters were looked at in the order %q, want %q", got, want)
		}
	})
	t.Run("a first list", func(t *testing.T) {
		got := order(t, 4, func(ctx context.Context, q priorityqueue.PriorityQueue[reconcile.Request]) {
			LaterForAll(0, all).Create(ctx, event.CreateEvent{Object: registration("set"), IsInInitialList: true}, q)
			UrgentFirst(RegistrationOfDelivery, SettledDelivery).Create(ctx, event.CreateEvent{Object: unsettled("urgent"), IsInInitialList: true}, q)
		})
		if want := []string{"urgent", "a", "b", "c"}; !slices.Equal(got, want) {
			t.Errorf("the clusters were looked at in the order %q, want %q", got, want)
		}
	})
}

func named(name string) reconcile.Request { return Itself(context.Background(), registration(name))[0] }

// changed returns a registration at a resource version.
func changed(name, version string) *hubv1.ClusterRegistration {
	reg := registration(name)
	reg.ResourceVersion = version
	return reg
}

func unsettled(cluster string) *hubv1.AddonDelivery {
	d := delivery(cluster)
	d.Status.ReadyRevision = "web-1"
	return d
}

// order fills a queue before anybody takes from it, and returns what comes out.
func order(t *testing.T, n int, fill func(context.Context, priorityqueue.PriorityQueue[reconcile.Request])) []string {
	t.Helper()
	q := queueOf(t)
	fill(t.Context(), q)
	var out []string
	for range n {
		req, _ := q.Get()
		out = append(out, req.Name)
		q.Done(req)
	}
	if left := q.Len(); left > 0 {
		t.Errorf("%d requests are left: a cluster was looked at twice", left)
	}
	return out
}
