// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// forgedDelivery is one that anybody may write in a namespace of his own, and has deleted.
func (m *fixture) forgedDelivery(namespace string) {
	m.t.Helper()
	d := deliveredTo(testCluster, "whatever", "1")
	d.Namespace, d.UID, d.Finalizers = namespace, "forged", append(d.Finalizers, "evil/x")
	m.quietly(func() {
		m.must(m.api.Create(m.t.Context(), d))
		m.must(m.api.Delete(m.t.Context(), d))
	})
}

// Somebody in another namespace edits what he has forged between each look of the hub and its write, or the write fails: the cluster whose label
// that has is served all the same, and its forgery is looked at again.
func TestForgedThatCannotBeDismissedHoldsUpNobody(t *testing.T) {
	for name, err := range map[string]error{
		"IsEdited":     apierrors.NewConflict(schema.GroupResource{Resource: "x"}, "x", errors.New("it has changed")),
		"IsNotReached": errors.New("no"),
	} {
		t.Run(name, func(t *testing.T) {
			m := newServedFixture(t, addonsOf(testSet, "1", releaseAddon("app"))...)
			m.forgedDelivery("evil")
			m.failing = func(what string) (error, bool) {
				if what == "patch *v1alpha1.AddonDelivery" {
					return err, false
				}
				return nil, false
			}
			result, err := m.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: testCluster})
			if hr := m.object(testCluster, "app"); hr == nil || err != nil || result.RequeueAfter == 0 || result.RequeueAfter > time.Second {
				t.Errorf("the platform's add-on is %v, its cluster is looked at again after %s: %v", hr, result.RequeueAfter, err)
			}
		})
	}
}
