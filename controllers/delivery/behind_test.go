// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/delivery/observed"
	"github.com/chandler-hub/chandler/controllers/expectations"
)

// TestBehindItsOwnWrites: a cache that does not show yet what the controller has written is no ground to decide anything on. It is looked at again soon,
// but not for ever.
func TestBehindItsOwnWrites(t *testing.T) {
	m := newServedFixture(t, append(addonsOf(testSet, "1", releaseAddon("app")), addonsOf(testSet, "2", releaseAddon("app"), releaseAddon("other"))[1:]...)...)
	m.settle()
	d := m.delivery(testCluster, testSet)
	edit(m, d.Namespace, d.Name, &hubv1.AddonDelivery{}, func(d *hubv1.AddonDelivery) { d.Spec.RevisionName = revisionOf(testSet, "2") })
	written := m.delivery(testCluster, testSet)
	written.ResourceVersion = "999999" // the cache has an older one
	m.r.expectations.Expect(testCluster, observed.DeliveryKind, written, m.clock.Now())

	before := m.writes
	result, err := m.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: testCluster})
	if err != nil || result.RequeueAfter != expectations.Wait || m.writes != before {
		t.Errorf("it looks again after %s, has written %d times, %v; want %s and nothing written", result.RequeueAfter, m.writes-before, err, expectations.Wait)
	}
	m.clock.SetTime(m.clock.Now().Add(time.Minute))
	if m.settle(); m.object(testCluster, "other") == nil {
		t.Error("it waits without end")
	}
}
