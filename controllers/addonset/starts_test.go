// SPDX-License-Identifier: Apache-2.0

package addonset

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/rollout"
	"github.com/chandler-hub/chandler/internal/status"
)

// TestStartsThatTheCacheDoesNotShow: argo-cd#23685, where a reconcile that runs again before the cache has caught up overruns
// the budget. Here what the matcher has been told counts as started, until the cache shows it.
func TestStartsThatTheCacheDoesNotShow(t *testing.T) {
	set, one := types.NamespacedName{Namespace: "flux-system", Name: "base"}, types.NamespacedName{Namespace: "fleet", Name: "one"}
	start := &hubv1.DeliveryStart{Time: metav1.NewTime(fleetTime), Healthy: true}
	r := &registry{}
	r.put(set, compiled{uid: "u"})
	r.decide(set, &rollout.Decision{State: hubv1.RolloutStatus{Revision: "base-2-e1"},
		Starts: []rollout.Start{{Cluster: one, Revision: "base-2-e1", Start: start}}})
	stale := rollout.Cluster{Key: one, Revision: "base-1-e1", Ready: true, Healthy: true}
	for range 2 {
		if got := r.foresee(set, []rollout.Cluster{stale})[0]; got.Revision != "base-2-e1" || got.Start != start || got.Ready {
			t.Fatalf("it counts as %+v", got)
		}
	}
	r.put(set, compiled{uid: "u", generation: 2}) // the set is published again
	if got := r.foresee(set, []rollout.Cluster{stale})[0]; got.Revision != "base-2-e1" {
		t.Fatalf("after an edit it counts as %+v", got)
	}
	seen := rollout.Cluster{Key: one, Revision: "base-2-e1", Start: start, Ready: true}
	if got := r.foresee(set, []rollout.Cluster{seen})[0]; !got.Ready {
		t.Fatalf("what the cache shows counts as %+v", got)
	}
	// Somebody gives it the old one back: that is news, and not what the hub has told the matcher.
	if got := r.foresee(set, []rollout.Cluster{stale})[0]; got.Revision != "base-1-e1" {
		t.Fatalf("it is still expected: %+v", got)
	}
}

// TestStartsOfAnOlderRevision: what has not begun when the set changes does not begin.
func TestStartsOfAnOlderRevision(t *testing.T) {
	set, one := types.NamespacedName{Namespace: "flux-system", Name: "base"}, types.NamespacedName{Namespace: "fleet", Name: "one"}
	r := &registry{}
	r.put(set, compiled{uid: "u"})
	r.decide(set, &rollout.Decision{State: hubv1.RolloutStatus{Revision: "base-2-e1"},
		Starts: []rollout.Start{{Cluster: one, Revision: "base-2-e1", Start: &hubv1.DeliveryStart{Time: metav1.NewTime(fleetTime)}}}})
	r.decide(set, &rollout.Decision{State: hubv1.RolloutStatus{Revision: "base-3-e1"}})
	c := r.sets.All()[set]
	if got := c.gives(one, "", gift{revision: "base-1-e1"}); got.revision != "base-1-e1" {
		t.Errorf("it gets %+v", got)
	}
}

// TestStartsOfADeliveryThatIsGone: somebody deletes a delivery, and the cluster gets another one with the last revision that was
// completed. What was decided about the old one does not concern it: the revision may have failed meanwhile.
func TestStartsOfADeliveryThatIsGone(t *testing.T) {
	set, one := types.NamespacedName{Namespace: "flux-system", Name: "base"}, types.NamespacedName{Namespace: "fleet", Name: "one"}
	start := &hubv1.DeliveryStart{Time: metav1.NewTime(fleetTime)}
	r := &registry{}
	r.put(set, compiled{uid: "u"})
	r.decide(set, &rollout.Decision{State: hubv1.RolloutStatus{Revision: "base-2-e1"},
		Starts: []rollout.Start{{Cluster: one, Delivery: "old", Revision: "base-2-e1", Start: start}}})
	c := r.sets.All()[set]
	if got := c.gives(one, "old", gift{revision: "base-1-e1"}); got.revision != "base-2-e1" {
		t.Errorf("the old one gets %+v", got)
	}
	if got := c.gives(one, "new", gift{revision: "base-1-e1"}); got.revision != "base-1-e1" {
		t.Errorf("the new one gets %+v", got)
	}
	is := rollout.Cluster{Key: one, Delivery: "new", Revision: "base-1-e1", Ready: true}
	if got := r.foresee(set, []rollout.Cluster{is})[0]; got.Revision != "base-1-e1" || len(r.sets.All()[set].starts) != 0 {
		t.Errorf("the new one counts as %+v, and expected is %v", got, r.sets.All()[set].starts)
	}
}

// TestStartsThatAreHeld: a cluster was told to start, and its delivery could not be written. When the revision has failed, or
// somebody holds it, it does not start any more.
func TestStartsThatAreHeld(t *testing.T) {
	set, one := types.NamespacedName{Namespace: "flux-system", Name: "base"}, types.NamespacedName{Namespace: "fleet", Name: "one"}
	r := &registry{}
	r.put(set, compiled{uid: "u"})
	r.decide(set, &rollout.Decision{State: hubv1.RolloutStatus{Revision: "base-2-e1"},
		Starts: []rollout.Start{{Cluster: one, Revision: "base-2-e1", Start: &hubv1.DeliveryStart{Time: metav1.NewTime(fleetTime)}}}})
	r.decide(set, &rollout.Decision{State: hubv1.RolloutStatus{Revision: "base-2-e1", Phase: hubv1.RolloutFailed}, Held: true})
	c := r.sets.All()[set]
	if got := c.gives(one, "", gift{revision: "base-1-e1"}); got.revision != "base-1-e1" {
		t.Errorf("it gets %+v", got)
	}
}

func TestFloatingIsSaid(t *testing.T) {
	r := &Reconciler{Clock: clocktesting.NewFakePassiveClock(fleetTime.Add(time.Hour))}
	set := &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Generation: 1}}
	says := func(newest revised, enforced metav1.ConditionStatus, want string) {
		t.Helper()
		r.summarizeFloating(set, true, &newest)
		if c := status.Find(set, hubv1.RolloutEnforcedCondition); c == nil || c.Status != enforced || c.Message != want {
			t.Errorf("it says %+v\nwant %s: %s", c, enforced, want)
		}
	}
	const all = "whatever the set delivers changes with its revision, so it goes through the waves"
	says(revised{loose: []string{"variablesFrom: ConfigMap colors"}}, metav1.ConditionFalse,
		"these may change without a new revision, on all clusters at once: variablesFrom: ConfigMap colors")
	says(revised{}, metav1.ConditionTrue, all)
	says(revised{news: []string{"branch main of GitRepository apps"}}, metav1.ConditionTrue,
		all+"; upstream has news, which waits for the end of this rollout: branch main of GitRepository apps")
	r.summarizeFloating(set, false, &revised{})
	if c := status.Find(set, hubv1.RolloutEnforcedCondition); c != nil {
		t.Errorf("without waves it says %+v", c)
	}
}
