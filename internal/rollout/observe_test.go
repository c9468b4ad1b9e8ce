// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/rollout"
	"github.com/chandler-hub/chandler/internal/status"
)

// observed is what a rollout sees of a cluster whose only add-on is in a state.
func observed(state hubv1.AddonState, change func(*hubv1.AddonDelivery, *hubv1.ClusterRegistration)) (rollout.Cluster, *hubv1.AddonDelivery) {
	d, reg := &hubv1.AddonDelivery{}, &hubv1.ClusterRegistration{}
	status.Set(reg, hubv1.ReachableCondition, "True", "Answers", "", time.Unix(0, 0))
	d.Spec.RevisionName = "base-2-e3"
	d.Status.Addons = []hubv1.AddonStatus{{Name: "web", State: state, Removal: "asked"}}
	if change != nil {
		change(d, reg)
	}
	return rollout.Observe(d, reg), d
}

// Whoever waits for a set waits for the clusters that its rollout waits for, and for no others.
func TestOneTableOfExcuses(t *testing.T) {
	c, d := observed(hubv1.AddonReady, func(d *hubv1.AddonDelivery, _ *hubv1.ClusterRegistration) {
		status.Set(d, hubv1.ReadyCondition, "False", hubv1.OriginMissingReason, "", time.Unix(0, 0))
	})
	if !rollout.Excused(d) || c.Excused != hubv1.OriginMissingReason {
		t.Errorf("its origin is missing: for the set %t, and for its rollout %q", rollout.Excused(d), c.Excused)
	}
	for _, state := range []hubv1.AddonState{
		hubv1.AddonReady, hubv1.AddonProgressing, hubv1.AddonWaitingForDependency, hubv1.AddonWaitingForCluster, hubv1.AddonWaitingForNodes,
		hubv1.AddonPaused, hubv1.AddonUnreachable, hubv1.AddonExcluded, hubv1.AddonFailed, hubv1.AddonSuspended, hubv1.AddonLostTo,
		hubv1.AddonNotOwned, hubv1.AddonHeld, hubv1.AddonRemoving, hubv1.AddonOrphaned,
	} {
		c, d := observed(state, nil)
		if of := rollout.Excused(d); of != (c.Excused != "" || c.Offline || c.Nodeless != "") {
			t.Errorf("%s: for the set %t, and for its rollout %q, offline %t", state, of, c.Excused, c.Offline)
		}
	}
}

// A hub with a new epoch moves no cluster by itself. What changes nothing takes no slot, and so it must not be what another epoch
// may render differently.
func TestAnotherEpochChangesSomething(t *testing.T) {
	same := rollout.Unchanged(func(string) []byte { return []byte(`{"addons":[]}`) })
	c := &rollout.Cluster{Revision: "base-1-e2"}
	if same(c, "base-2-e3") {
		t.Error("it changes nothing")
	}
	if c.Revision = "base-1-e3"; !same(c, "base-2-e3") {
		t.Error("it changes something")
	}
}

// A removal that is granted, and somebody who deletes a delivery, make a new generation of it. A cluster that was Ready on its revision
// long ago would count as one that is late until the status is about that generation, and a good revision would fail.
func TestAnotherGenerationOfADelivery(t *testing.T) {
	reg := &hubv1.ClusterRegistration{}
	began := metav1.NewTime(time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC))
	d := &hubv1.AddonDelivery{ObjectMeta: metav1.ObjectMeta{Generation: 3}}
	d.Spec.RevisionName, d.Spec.Start = "base-2-e1", &hubv1.DeliveryStart{Time: began, Healthy: true}
	d.Status.ObservedGeneration, d.Status.ReadyRevision, d.Status.ReadyTime = 2, "base-2-e1", &began
	if c := rollout.Observe(d, reg); !c.Ready {
		t.Errorf("%+v", c)
	}
	d.Spec.Start.Time = metav1.NewTime(began.Add(time.Minute)) // it is tried again
	if c := rollout.Observe(d, reg); c.Ready {
		t.Errorf("tried again: %+v", c)
	}
	d.Spec.RevisionName = "base-3-e1"
	if c := rollout.Observe(d, reg); c.Ready || c.Healthy {
		t.Errorf("another revision: %+v", c)
	}
}

// TestFailuresThatPass: a cluster on which something fails that says nothing of its revision has not failed, and is late if it goes on.
func TestFailuresThatPass(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		attempt hubv1.AttemptResult
		failed  bool
	}{
		"NotReached": {"StateError", hubv1.AttemptUnreached, false},
		"NotWritten": {hubv1.NotWrittenReason, "", false},
		"Upgrade":    {"UpgradeFailed", hubv1.AttemptFailed, true},
		"Render":     {hubv1.RenderFailedReason, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := observed(hubv1.AddonFailed, func(d *hubv1.AddonDelivery, _ *hubv1.ClusterRegistration) {
				d.Status.Addons[0].Reason, d.Status.Addons[0].LastAttempt = tc.reason, tc.attempt
				d.Status.AddonCounts = &hubv1.ObjectCounts{Failed: 1}
			})
			if (c.Failed != "") != tc.failed {
				t.Errorf("it has failed: %q", c.Failed)
			}
		})
	}
}

// Whoever waits for a set waits for a cluster that has lost its nodes since it got the revision, and for no other without nodes.
func TestWaitsForLostNodes(t *testing.T) {
	began := metav1.NewTime(time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC))
	for name, tc := range map[string]struct {
		start   *hubv1.DeliveryStart
		ready   string
		excused bool
	}{
		"it had nodes":                    {&hubv1.DeliveryStart{Time: began, Healthy: true}, "base-1-e3", false},
		"it had nodes, and was Ready":     {&hubv1.DeliveryStart{Time: began, Healthy: true}, "base-2-e3", true},
		"it had none":                     {&hubv1.DeliveryStart{Time: began, Healthy: true, WithoutNodes: true}, "base-1-e3", true},
		"it was not healthy":              {&hubv1.DeliveryStart{Time: began}, "base-1-e3", true},
		"it got the revision as all did":  {nil, "base-1-e3", true},
		"it is new, and has no nodes yet": {nil, "", true},
	} {
		none := int32(0)
		c, d := observed(hubv1.AddonWaitingForNodes, func(d *hubv1.AddonDelivery, reg *hubv1.ClusterRegistration) {
			d.Spec.Start, d.Status.ReadyRevision, d.Status.ReadyTime, reg.Status.Nodes = tc.start, tc.ready, &began, &none
		})
		if rollout.Excused(d) != tc.excused || c.Nodeless != "web is WaitingForNodes" || !c.WithoutNodes || c.Excused != "" {
			t.Errorf("%s: excused %t; %+v", name, rollout.Excused(d), c)
		}
	}
}

// TestFailedInTheSecondOfTheStart: times are in seconds. A failure in the second in which a cluster gets a revision came before the
// revision, unless the status is about the revision.
func TestFailedInTheSecondOfTheStart(t *testing.T) {
	at := metav1.Unix(1000, 0)
	for observed, fails := range map[int64]bool{1: false, 2: true} {
		d := &hubv1.AddonDelivery{}
		d.Generation, d.Status.ObservedGeneration, d.Spec.Start = 2, observed, &hubv1.DeliveryStart{Time: at, Healthy: true}
		d.Status.Addons = []hubv1.AddonStatus{{Name: "web", State: hubv1.AddonFailed, Since: &at}}
		c := rollout.Observe(d, &hubv1.ClusterRegistration{})
		if since := !c.FailedSince.Before(at.Time); since != fails {
			t.Errorf("a status of generation %d of 2 says that an add-on failed at the start: since the start %t, want %t", observed, since, fails)
		}
	}
}
