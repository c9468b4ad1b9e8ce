// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/delivery/observed"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/status"
)

// TestDelivery: a set arrives, is Ready, costs nothing more, and leaves.
func TestDelivery(t *testing.T) {
	m := newDeliveredFixture(t, releaseAddon("app"), kustomizationAddon("git"))
	m.wantReady("app")
	m.wantReady("git")
	m.wantNoWrites()
	m.withdraw(testSet)
	m.settle()
	if m.delivery(testSet) != nil || len(m.objects()) > 0 || len(m.uninstalled) != 2 || len(m.orphans()) > 0 {
		t.Errorf("left: %v; uninstalled: %v; orphans: %v", m.objects(), m.uninstalled, m.orphans())
	}
}

// TestDeliveryDeletedByHand: nothing leaves the cluster. When the delivery is made again Flux does not notice, also if the hub has started
// again in between.
func TestDeliveryDeletedByHand(t *testing.T) {
	for name, restart := range map[string]bool{"AtOnce": false, "AfterARestart": true} {
		t.Run(name, func(t *testing.T) {
			m := newServedFixture(t, addonsOf(testSet, "1", releaseAddon("app"), kustomizationAddon("git"))...)
			uids := func() map[string]types.UID {
				out := map[string]types.UID{}
				for _, o := range m.objects() {
					out[o.GetName()] = o.GetUID()
					if o.GetGeneration() != 1 || o.GetAnnotations()[hubv1.DeliveryAnnotation] != identity.Delivery(testSet, testCluster) {
						t.Errorf("%s has changed: generation %d, %v", o.GetName(), o.GetGeneration(), o.GetAnnotations())
					}
				}
				return out
			}
			m.settle()
			before := uids()
			m.delete(testSet)
			m.settle()
			if d := m.delivery(testSet); d != nil {
				t.Fatalf("it does not go: %+v", d)
			}
			if restart {
				m.restart()
			}
			m.makeAnother()
			m.settle()
			if after := uids(); len(after) != 2 || !maps.Equal(before, after) {
				t.Errorf("before %v, after %v", before, after)
			}
			if len(m.released)+len(m.orphans()) > 0 || len(m.secrets()) != 1 {
				t.Errorf("released %v, orphans %v, kubeconfigs in %v", m.released, m.orphans(), m.secrets())
			}
			m.wantReady("app")
			m.wantReady("git")
			m.wantNoWrites()
		})
	}
}

// TestUnwantedDeliveryDeletedByHand: without a delivery the hub would never remove what is there. So the delivery stays until its set
// withdraws it.
func TestUnwantedDeliveryDeletedByHand(t *testing.T) {
	m := newDeliveredFixture(t, releaseAddon("app"))
	m.deselect()
	m.delete(testSet)
	m.settle()
	d := m.delivery(testSet)
	if d == nil || m.object("app") == nil || status.Reason(d, hubv1.ReadyCondition) != hubv1.TerminatingReason {
		t.Fatalf("the removal guard was not asked: %+v", d)
	}
	m.editDelivery(testSet, func(d *hubv1.AddonDelivery) { d.Spec.Withdrawal = d.UID })
	m.settle()
	if m.delivery(testSet) != nil || len(m.objects()) > 0 || len(m.uninstalled) != 1 {
		t.Errorf("left: %v, uninstalled: %v", m.objects(), m.uninstalled)
	}
}

// TestDeliveryOfAGoneSetDeletedByHand: the set is gone with its finalizer taken off. The add-ons stay, and are listed as orphans.
func TestDeliveryOfAGoneSetDeletedByHand(t *testing.T) {
	m := newDeliveredFixture(t, releaseAddon("app"))
	m.deleteObject(&hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: testSet}})
	m.settle()
	if d := m.delivery(testSet); d == nil || m.object("app") == nil || status.Reason(d, hubv1.ReadyCondition) != hubv1.AddonSetNotFoundReason {
		t.Fatalf("it does not stay as it is: %+v", d)
	}
	m.delete(testSet)
	m.settle()
	if got := m.orphans(); m.delivery(testSet) != nil || m.object("app") == nil || len(got) != 1 || len(m.uninstalled) > 0 {
		t.Errorf("orphans: %+v, uninstalled: %v", got, m.uninstalled)
	}
}

// TestDeliveryOfAStalledSetDeletedByHand: while the set is Stalled, its controller does not make the delivery again, so the delivery stays.
// A mended set is an event, and the delivery goes: until then its cluster would get no new revision.
func TestDeliveryOfAStalledSetDeletedByHand(t *testing.T) {
	m := newDeliveredFixture(t, releaseAddon("app"))
	stalled := func(is metav1.ConditionStatus) *hubv1.AddonSet {
		set := &hubv1.AddonSet{}
		edit(m, "flux-system", testSet, set, func(s *hubv1.AddonSet) {
			apimeta.SetStatusCondition(&s.Status.Conditions,
				metav1.Condition{Type: hubv1.StalledCondition, Status: is, Reason: hubv1.InvalidSpecReason})
		})
		m.must(m.api.Get(t.Context(), client.ObjectKeyFromObject(set), set))
		return set
	}
	before := stalled(metav1.ConditionTrue)
	m.delete(testSet)
	m.settle()
	if d := m.delivery(testSet); d == nil || m.object("app") == nil {
		t.Fatal("it has gone, and the set does not make it again")
	}
	after := stalled(metav1.ConditionFalse)
	if !setChanges().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) {
		t.Error("no cluster is woken when the set is mended")
	}
	if setChanges().Update(event.UpdateEvent{ObjectOld: after, ObjectNew: before}) {
		t.Error("all clusters are woken when a set is Stalled, which changes nothing for them")
	}
	if m.settle(); m.delivery(testSet) != nil {
		t.Error("it does not go")
	}
}

// TestDeliveryWithdrawnDuringAReconcile: the set withdraws a delivery while a reconcile is at work that has read it before. The API
// server's answer to the status says so, but the hub has not decided on that: the delivery stays until its cluster is clean.
func TestDeliveryWithdrawnDuringAReconcile(t *testing.T) {
	for name, first := range map[string]func(*fixture){
		"Served":        func(*fixture) {},
		"DeletedByHand": func(m *fixture) { m.delete(testSet) },
	} {
		t.Run(name, func(t *testing.T) {
			m := newDeliveredFixture(t, releaseAddon("app"))
			m.pause(true) // nothing is uninstalled, and the status has something to say
			first(m)
			withdrawn := m.onWrite("patch status of *v1alpha1.AddonDelivery", func() error {
				m.withdraw(testSet)
				return nil
			})
			m.settle()
			if !*withdrawn || m.delivery(testSet) == nil || m.object("app") == nil {
				t.Fatalf("withdrawn: %t; the delivery is gone: %t; its object: %v", *withdrawn, m.delivery(testSet) == nil, m.object("app"))
			}
			m.pause(false)
			m.settle()
			if len(m.uninstalled) != 1 || m.delivery(testSet) != nil {
				t.Errorf("uninstalled %v, and the delivery is %v", m.uninstalled, m.delivery(testSet))
			}
		})
	}
}

// vanish removes the cluster's delivery with its finalizer, as the hub that led before did.
func (m *fixture) vanish() { m.strip(m.delivery(testSet)) }

// makeAnother makes another delivery of the name of the one that is gone.
func (m *fixture) makeAnother() {
	d := deliveredTo(testCluster, testSet, "1")
	d.UID = "again"
	m.create(d)
}

// TestAnswerIsOfAnotherDelivery: a delivery that is being withdrawn has gone, and was made again, by the time at which the hub writes its
// status: while something is left of it, or when nothing is. The new delivery keeps its finalizer.
func TestAnswerIsOfAnotherDelivery(t *testing.T) {
	for name, uninstalled := range map[string]int{"something is left": 0, "nothing is left": 1} {
		t.Run(name, func(t *testing.T) {
			m := newDeliveredFixture(t, releaseAddon("app"))
			m.withdraw(testSet)
			m.failing = func(what string) (error, bool) {
				if what == "patch status of *v1alpha1.AddonDelivery" && len(m.uninstalled) == uninstalled {
					m.vanish()
					m.makeAnother()
					m.failing = nil
				}
				return nil, false
			}
			for i := 0; i < 20 && m.failing != nil; i++ {
				if i > 5 {
					m.flux()
				}
				m.clock.SetTime(m.clock.Now().Add(3500 * time.Millisecond))
				if err := m.reconcile(); err != nil {
					t.Log(err)
				}
			}
			if d := m.delivery(testSet); d == nil || d.UID != "again" || len(d.Finalizers) == 0 {
				t.Errorf("there is %+v", d)
			}
		})
	}
}

// lists has the hub's cache list other objects of a kind than there are.
func (m *fixture) lists(show func(list client.ObjectList) (shown bool)) interceptor.Funcs {
	return interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if show(list) {
				return nil
			}
			return c.List(ctx, list, opts...)
		},
	}
}

// TestDeletedDeliveryThatIsWrittenAllTheTime: the hub does not wait until its cache shows the last write of a delivery that is being
// deleted.
func TestDeletedDeliveryThatIsWrittenAllTheTime(t *testing.T) {
	m := newServedFixture(t, append(addonsOf(testSet, "1", releaseAddon("app")), addonsOf("other", "1", releaseAddon("new"))...)...)
	m.settle()
	m.delete(testSet)
	m.create(deliveredTo(testCluster, "other", "1"))
	shown := []hubv1.AddonDelivery{*m.delivery(testSet), *m.delivery("other")}
	m.r.Client = interceptor.NewClient(m.api, m.lists(func(list client.ObjectList) bool {
		l, ok := list.(*hubv1.AddonDeliveryList)
		if ok {
			l.Items = shown
		}
		return ok
	}))
	m.editDelivery(testSet, func(d *hubv1.AddonDelivery) { d.Generation += 5 })
	m.must(m.reconcile())
	if m.object("new") == nil {
		t.Error("what another set delivers there is not made")
	}
}

// TestDeliveriesAreForgotten: a user deletes a delivery, its set and its objects, and takes the finalizers off. The hub remembers nothing
// of them, while the cluster has other deliveries, and when it has none.
func TestDeliveriesAreForgotten(t *testing.T) {
	m := newServedFixture(t, append(addonsOf(testSet, "1", releaseAddon("app")), delivered("more", releaseAddon("other"))...)...)
	changes := observed.FluxChanges(handler.Funcs{}, &m.r.sightings, &m.r.ledger)
	m.settle()
	for i, gone := range []struct{ set, addon string }{{testSet, "app"}, {"more", "other"}} {
		left := 1 - i
		o, d := m.object(gone.addon), m.delivery(gone.set)
		of := client.ObjectKeyFromObject(d)
		m.r.waiting.For(of, true, time.Minute, m.clock.Now())
		m.deleteObject(&hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: gone.set}})
		m.strip(o)
		changes.Delete(t.Context(), event.DeleteEvent{Object: o}, nil)
		m.strip(d)
		m.must(m.reconcile())
		if renderings, objects := m.r.memory.Kept(), m.r.ledger.Entries.Len(); renderings != left || objects != left {
			t.Errorf("%d renderings and %d objects are remembered of %d deliveries", renderings, objects, left)
		}
		if m.r.waiting.For(of, true, time.Minute, m.clock.Now().Add(time.Second)) != time.Minute {
			t.Error("since when its status waits is remembered")
		}
	}
}

// TestTwoRegistrationsOfOneCluster: the hub makes nothing through a registration whose cluster another one has, and orphans what is there
// already.
func TestTwoRegistrationsOfOneCluster(t *testing.T) {
	one, two := testCluster, types.NamespacedName{Namespace: "fleet", Name: "two"}
	changes := func(m *fixture, cluster types.NamespacedName, change func(*hubv1.ClusterRegistration)) {
		edit(m, cluster.Namespace, cluster.Name, &hubv1.ClusterRegistration{}, change)
	}
	// of says that a registration is of a cluster, which another registration may have.
	of := func(uid types.UID, holder *types.NamespacedName) func(*hubv1.ClusterRegistration) {
		return func(r *hubv1.ClusterRegistration) {
			if r.Status.ClusterUID, r.Status.DuplicateOf = uid, nil; holder != nil {
				r.Status.DuplicateOf = &hubv1.RegistrationReference{Namespace: holder.Namespace, Name: holder.Name}
			}
		}
	}
	says := func(condition, reason string) func(*hubv1.ClusterRegistration) {
		return func(r *hubv1.ClusterRegistration) {
			status.Set(r, condition, metav1.ConditionTrue, reason, "said", moment)
		}
	}
	for name, tc := range map[string]struct {
		uid  string // of the cluster of two, to begin with
		with func(*fixture)
		// what each has in the end, what is uninstalled, and what is orphaned
		one, two, uninstalled, orphaned int
	}{
		"TheFirst":    {uid: "c1", one: 2},
		"TwoClusters": {uid: "c2", one: 2, two: 2},
		"LedThere":    {uid: "c2", with: func(m *fixture) { changes(m, two, of("c1", &one)) }, one: 2, orphaned: 2},
		"LedAway": {uid: "c1", with: func(m *fixture) {
			changes(m, one, of("c3", nil))
			m.settle(one, two)
			changes(m, two, of("c1", nil))
		}, one: 2, two: 2, orphaned: 2},
		"PausedMeantime": {uid: "c2", with: func(m *fixture) {
			changes(m, two, says(hubv1.SuspendedCondition, hubv1.PausedReason))
			m.settle(one, two)
			changes(m, two, of("c2", &one))
			m.settle(two)
		}, one: 2, two: 2},
		"Deselected": {uid: "c1", with: func(m *fixture) { m.withdraw(testSet) }, uninstalled: 2},
		"ItLeaves": {uid: "c1", with: func(m *fixture) {
			changes(m, one, func(r *hubv1.ClusterRegistration) { r.Finalizers = []string{hubv1.Finalizer} })
			m.deleteObject(&hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: one.Namespace, Name: one.Name}})
			changes(m, one, says(hubv1.UnregisteringCondition, hubv1.SameClusterReason))
			m.settle(one, two)
			m.withdraw(testSet)
			m.settle(one, two)
			changes(m, two, of("c1", nil))
		}, two: 2, orphaned: 2},
	} {
		t.Run(name, func(t *testing.T) {
			m := newServedFixture(t, append(addonsOf(testSet, "1", releaseAddon("app"), kustomizationAddon("git")),
				registered(two, tc.uid), kubeconfigSecret(two, "t0"), deliveredTo(two, testSet, "1"))...)
			if tc.uid == "c1" {
				changes(m, two, of("c1", &one))
			}
			m.settle(one, two)
			if tc.with != nil {
				tc.with(m)
				m.settle(one, two)
			}
			has := map[string]int{}
			for _, o := range m.objects() {
				has[o.GetAnnotations()[hubv1.RegistrationAnnotation]]++
			}
			if has["fleet/one"] != tc.one || has["fleet/two"] != tc.two || len(m.uninstalled) != tc.uninstalled || len(m.released) != tc.orphaned {
				t.Errorf("there are %v; uninstalled %v, orphaned %v", has, m.uninstalled, m.released)
			}
			if len(m.told) != tc.orphaned {
				t.Errorf("told as left: %v", m.told)
			}
			c := status.Find(find(m, "flux-system", identity.Delivery(testSet, two), &hubv1.AddonDelivery{}), hubv1.ReadyCondition)
			refused := c.Status != metav1.ConditionTrue && c.Reason == hubv1.DuplicateReason && strings.Contains(c.Message, "fleet/one")
			if tc.two == 0 && tc.one > 0 && !refused {
				t.Errorf("the delivery of two says %+v", c)
			}
		})
	}
}

// TestPausedRegistrationIsDeleted: a registration that is deleted, and stays since its pause would be lost, is paused all the same.
// Unregistering ends the pause.
func TestPausedRegistrationIsDeleted(t *testing.T) {
	m := newDeliveredFixture(t, releaseAddon("app"), kustomizationAddon("git"))
	m.editRegistration(func(reg *hubv1.ClusterRegistration) { reg.Finalizers = []string{hubv1.Finalizer} })
	m.pause(true)
	m.deleteObject(find(m, testCluster.Namespace, testCluster.Name, &hubv1.ClusterRegistration{}))
	m.withdraw(testSet)
	m.settle()
	if len(m.objects()) != 2 || len(m.released)+len(m.uninstalled) > 0 {
		t.Fatalf("paused: orphaned %v, uninstalled %v", m.released, m.uninstalled)
	}
	m.unregister(hubv1.UnregisteredReason, "it is unregistered")
	m.settle()
	if len(m.objects()) > 0 || len(m.uninstalled) != 2 {
		t.Errorf("unregistered: orphaned %v, uninstalled %v", m.released, m.uninstalled)
	}
}
