// SPDX-License-Identifier: Apache-2.0

package addonset

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/enqueue"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/status"
)

// The first revision of a set has failed, so clusters without a delivery get none. What becomes of those that the set counts, and another
// one that comes, wakes the set, which says how many clusters there are.
func TestSetCountsClustersThatItHasNotComeTo(t *testing.T) {
	set, revision := rollingSet(t)
	set.Status.Rollout = &hubv1.RolloutStatus{Revision: revision, Phase: hubv1.RolloutFailed, FailedRevisions: []string{revision}}
	canary, _ := clusterOf("canary", map[string]string{"ring": "canary"}, "")
	other, _ := clusterOf("other", nil, "")
	third, _ := clusterOf("third", nil, "")
	r := newFixture(t, set, canary, other)
	r.starts = enqueue.NewBell(enqueue.Itself)
	look := func(want string) {
		t.Helper()
		stored := &hubv1.AddonSet{}
		must.Do(t, r.Client.Get(t.Context(), client.ObjectKeyFromObject(set), stored))
		must.Get(r.Reconcile(t.Context(), stored)).Or(t)
		if got := stored.Status.Clusters.ReadySummary; got != want {
			t.Errorf("CLUSTERS %s, want %s", got, want)
		}
	}
	wakes := func(reg *hubv1.ClusterRegistration) {
		t.Helper()
		woken := r.setsCounting(t.Context(), reg)
		if len(woken) == 0 || woken[0] != (reconcile.Request{NamespacedName: client.ObjectKeyFromObject(set)}) {
			t.Errorf("what becomes of %s wakes %v", reg.Name, woken)
		}
	}
	look("0/2")
	must.Do(t, r.Client.Create(t.Context(), third))
	wakes(third)
	look("0/3")
	must.Do(t, r.Client.Delete(t.Context(), other))
	other.Labels = map[string]string{"tier": "none"}
	wakes(other)
	look("0/2")
	before := third.DeepCopy()
	status.Set(third, hubv1.DrainingCondition, metav1.ConditionTrue, hubv1.DrainInProgressReason, "", fleetTime)
	must.Do(t, r.Client.Status().Update(t.Context(), third))
	if !countsOtherwise().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: third}) {
		t.Error("that a cluster is drained wakes no set")
	}
	wakes(third)
	look("0/1")
}
