// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// shows has the cache show these deliveries, whatever there is.
func (m *fixture) shows(deliveries ...hubv1.AddonDelivery) {
	m.r.Client = interceptor.NewClient(m.api, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if l, ok := list.(*hubv1.AddonDeliveryList); ok {
				l.Items = deliveries
				return nil
			}
			return c.List(ctx, list, opts...)
		},
	})
}

// vanish deletes the cluster's delivery, and removes its finalizer, as the hub that led before did.
func (m *fixture) vanish() {
	d := m.delivery(testCluster, testSet)
	m.quietly(func() {
		d.Finalizers = nil
		m.must(m.api.Update(m.t.Context(), d))
		m.must(client.IgnoreNotFound(m.api.Delete(m.t.Context(), d)))
	})
}

// makeAnother makes another delivery of its name.
func (m *fixture) makeAnother() {
	d := deliveredTo(testCluster, testSet, "1")
	d.UID = "again"
	m.quietly(func() { m.must(m.api.Create(m.t.Context(), d)) })
}

// changeLive has the cluster's delivery changed, which the cache may not show.
func (m *fixture) changeLive() {
	d := m.delivery(testCluster, testSet)
	edit(m, d.Namespace, d.Name, &hubv1.AddonDelivery{}, func(d *hubv1.AddonDelivery) { d.Generation += 5 })
}

// TestAChangeOfADeletedDeliveryStopsNothing: a delivery that is being deleted may be written all the time. The hub does not wait until its cache
// shows the last write.
func TestAChangeOfADeletedDeliveryStopsNothing(t *testing.T) {
	m := newServedFixture(t, append(addonsOf(testSet, "1", releaseAddon("app")), addonsOf("other", "1", releaseAddon("new"))...)...)
	m.settle()
	m.delete(testCluster, testSet)
	m.quietly(func() { m.must(m.api.Create(t.Context(), deliveredTo(testCluster, "other", "1"))) })
	m.shows(*m.delivery(testCluster, testSet), *m.delivery(testCluster, "other"))
	m.changeLive()
	m.must(m.reconcile(testCluster))
	if m.object(testCluster, "new") == nil {
		t.Error("what another set delivers there is not made")
	}
}

// TestUpdateMakesNoObject: the cache still shows a Flux object that is gone, and that is to be changed.
func TestUpdateMakesNoObject(t *testing.T) {
	m := newServedFixture(t, addonsOf(testSet, "1", releaseAddon("app"))...)
	m.settle()
	shown := m.object(testCluster, "app").(*helmv2.HelmRelease)
	m.quietly(func() {
		edit(m, shown.Namespace, shown.Name, &helmv2.HelmRelease{}, func(o *helmv2.HelmRelease) { o.Finalizers = nil })
		m.must(m.api.Delete(t.Context(), shown.DeepCopy()))
	})
	shown.UID, shown.Generation = "was", shown.Generation+1 // somebody has edited it
	m.r.Client = interceptor.NewClient(m.api, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if l, ok := list.(*helmv2.HelmReleaseList); ok {
				l.Items = []helmv2.HelmRelease{*shown}
				return nil
			}
			return c.List(ctx, list, opts...)
		},
	})
	if err := m.reconcile(testCluster); err != nil || m.object(testCluster, "app") != nil {
		t.Errorf("it was made again (%v)", err)
	}
}

// TestAnswerIsOfAnotherDelivery: a delivery that is being withdrawn has gone, and was made again, by the time at which its status is written:
// while something is left of it, or when nothing is. The other one keeps its finalizer.
func TestAnswerIsOfAnotherDelivery(t *testing.T) {
	for name, uninstalled := range map[string]int{"something is left": 0, "nothing is left": 1} {
		t.Run(name, func(t *testing.T) {
			m := newServedFixture(t, addonsOf(testSet, "1", releaseAddon("app"))...)
			m.settle()
			m.withdraw(testCluster, testSet)
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
				if err := m.reconcile(testCluster); err != nil {
					t.Log(err)
				}
			}
			if d := m.delivery(testCluster, testSet); d == nil || d.UID != "again" || len(d.Finalizers) == 0 {
				t.Errorf("there is %+v", d)
			}
		})
	}
}
