// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// A cluster that comes does not wait for all those to which a set delivers that somebody edits.
func TestAClusterGoesBeforeThoseOfASet(t *testing.T) {
	m := newServedFixture(t, addonsOf(testSet, "1", releaseAddon("app"))...)
	set := &hubv1.AddonSet{}
	m.must(m.api.Get(t.Context(), types.NamespacedName{Namespace: "flux-system", Name: testSet}, set))
	edited := set.DeepCopy()
	edited.ResourceVersion, edited.Spec.Priority = "9999", 7
	q := priorityqueue.New[reconcile.Request]("clusters")
	defer q.ShutDown()
	m.r.ofSet().Update(t.Context(), event.UpdateEvent{ObjectOld: set, ObjectNew: edited}, q)
	comes := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "fleet", Name: "new"}}
	q.Add(comes)
	if first, _ := q.Get(); first != comes {
		t.Errorf("%v comes first", first)
	}
	if second, _ := q.Get(); second.NamespacedName != testCluster {
		t.Errorf("then comes %v", second)
	}
}
