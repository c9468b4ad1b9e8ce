// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/delivery/observed"
)

// TestStrippedDeliveriesAreForgotten: somebody deletes a delivery, its set and its objects, and takes the finalizers off. Nothing of them is
// remembered, while the cluster has other deliveries, and when it has none.
func TestStrippedDeliveriesAreForgotten(t *testing.T) {
	objects := append(addonsOf(testSet, "1", releaseAddon("app")), addonsOf("more", "1", releaseAddon("other"))...)
	m := newServedFixture(t, append(objects, deliveredTo(testCluster, "more", "1"))...)
	changes := observed.FluxChanges(&m.r.sightings, &m.r.ledger)
	m.settle()
	for left, set := range []string{testSet, "more"} {
		addon := map[string]string{testSet: "app", "more": "other"}[set]
		o, d := m.object(testCluster, addon), m.delivery(testCluster, set)
		of := client.ObjectKeyFromObject(d)
		m.r.waiting.For(of, true, time.Minute, m.clock.Now())
		m.must(m.api.Delete(t.Context(), &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: set}}))
		edit(m, o.GetNamespace(), o.GetName(), &helmv2.HelmRelease{}, func(o *helmv2.HelmRelease) { o.Finalizers = nil })
		edit(m, d.Namespace, d.Name, d, func(d *hubv1.AddonDelivery) { d.Finalizers = nil })
		m.must(m.api.Delete(t.Context(), o))
		changes.Delete(event.DeleteEvent{Object: o})
		m.must(m.api.Delete(t.Context(), d))
		m.must(m.reconcile(testCluster))
		if n := m.r.memory.Kept(); n != 1-left {
			t.Errorf("%d renderings are remembered of %d deliveries", n, 1-left)
		}
		if m.r.waiting.For(of, true, time.Minute, m.clock.Now().Add(time.Second)) != time.Minute {
			t.Error("since when its status waits is remembered")
		}
		if n := len(m.r.ledger.Entries); n != 1-left {
			t.Errorf("%d objects are remembered of %d", n, 1-left)
		}
	}
}
