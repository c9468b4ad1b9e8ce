// SPDX-License-Identifier: Apache-2.0

package pace

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/status"
)

// Delivery returns whether the status of a delivery differs only by progress from the one that was written last. It
// returns false if both are equal.
func Delivery(before, after *hubv1.AddonDelivery) bool {
	if after.DeletionTimestamp != nil || equality.Semantic.DeepEqual(before.Status, after.Status) || !onTheWay(before, after) {
		return false
	}
	a, b := before.Status.DeepCopy(), after.Status.DeepCopy()
	for i := range b.Addons {
		if was := addon(a, b.Addons[i].Name); was != nil && was.Object != "" &&
			(was.Object != b.Addons[i].Object || was.Kind != b.Addons[i].Kind) {
			return false
		}
	}
	for _, s := range []*hubv1.AddonDeliveryStatus{a, b} {
		s.ObservedGeneration, s.ObservedRevision, s.AddonCounts = 0, "", nil
		s.Conditions = without(s.Conditions)
		s.Addons = slices.DeleteFunc(s.Addons, isProgress)
	}
	return equality.Semantic.DeepEqual(a, b)
}

// Registration is the same for a registration: how many add-ons are Ready, which sets deliver, and that it has not
// been probed yet. unready is true if one of its deliveries is not Ready, or leaves: the registration must not report
// Ready for longer than they do. Nor must it say that nothing is Ready, or that something leaves, when that is over.
func Registration(before, after *hubv1.ClusterRegistration, unready bool) bool {
	was, is := status.IsTrue(before, hubv1.ReadyCondition), status.IsTrue(after, hubv1.ReadyCondition)
	if was && !is && unready || is && !was && !fresh(before) || begins(before, after) {
		return false
	}
	if after.DeletionTimestamp != nil || equality.Semantic.DeepEqual(before.Status, after.Status) || !onTheWay(before, after) {
		return false
	}
	if fresh(before) {
		return status.IsTrue(after, hubv1.KubeConfigValidCondition) && status.Reason(after, hubv1.ReachableCondition) == hubv1.NotProbedReason
	}
	a, b := before.Status.DeepCopy(), after.Status.DeepCopy()
	for _, s := range []*hubv1.ClusterRegistrationStatus{a, b} {
		s.ObservedGeneration, s.AddonCounts, s.Sets = 0, nil, nil
		s.Conditions = without(s.Conditions)
	}
	return equality.Semantic.DeepEqual(a, b)
}

// begins returns whether the first add-on is Ready, or nothing leaves any more.
func begins(before, after *hubv1.ClusterRegistration) bool {
	left := func(reg *hubv1.ClusterRegistration) bool {
		return status.Reason(reg, hubv1.ReadyCondition) == hubv1.AddonsLeavingReason
	}
	return readyOf(before) == 0 && readyOf(after) > 0 || left(before) && !left(after)
}

func readyOf(reg *hubv1.ClusterRegistration) int32 {
	if c := reg.Status.AddonCounts; c != nil {
		return c.Ready
	}
	return 0
}

// Delay returns how long a status that reports progress waits, given the status that was written last.
func Delay(before status.Object) time.Duration {
	if fresh(before) {
		return first
	}
	if _, ok := before.(*hubv1.ClusterRegistration); !ok {
		return later
	}
	return sum
}

// fresh returns whether no status of the object has been written yet.
func fresh(o status.Object) bool { return status.Find(o, hubv1.ReadyCondition) == nil }

// moving are the reasons of objects that are not Ready yet.
var moving = []string{hubv1.ProgressingReason, hubv1.WaitingForClusterReason, hubv1.NotProbedReason, hubv1.NoAddonSetReason,
	hubv1.WaitingForWaveReason, hubv1.AddonsLeavingReason}

// onTheWay returns whether an object is not Ready yet and had no failure before: the end of a failure is news.
func onTheWay(before, after status.Object) bool {
	was := status.Reason(before, hubv1.ReadyCondition)
	return slices.Contains(moving, status.Reason(after, hubv1.ReadyCondition)) &&
		(slices.Contains(moving, was) || slices.Contains([]string{"", hubv1.SucceededReason, hubv1.AddonsReadyReason}, was))
}

func without(conditions []metav1.Condition) []metav1.Condition {
	return slices.DeleteFunc(conditions, func(c metav1.Condition) bool {
		return c.Type == hubv1.ReadyCondition || c.Type == hubv1.ReconcilingCondition
	})
}

// isProgress returns whether an add-on is progressing or Ready, and there is nothing else to report about it.
func isProgress(a hubv1.AddonStatus) bool {
	switch a.State {
	case hubv1.AddonLostTo:
		return a.Reason == hubv1.HandOverReason
	case hubv1.AddonReady, hubv1.AddonProgressing, hubv1.AddonWaitingForCluster, hubv1.AddonWaitingForDependency, hubv1.AddonWaitingForNodes:
		return a.Reason == "" && a.Removal == "" && a.Release == nil
	}
	return false
}

func addon(s *hubv1.AddonDeliveryStatus, name string) *hubv1.AddonStatus {
	for i := range s.Addons {
		if s.Addons[i].Name == name {
			return &s.Addons[i]
		}
	}
	return nil
}
