// SPDX-License-Identifier: Apache-2.0

// Package status sets the conditions of our kinds, in memory, in the form that kstatus expects: Ready is always
// there, Reconciling and Stalled are there only while true, and never both. It is pure; time is an argument.
package status

import (
	"fmt"
	"math"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// Object is one of our kinds.
type Object interface {
	GetGeneration() int64
	GetConditions() *[]metav1.Condition
	SetObservedGeneration(int64)
}

// Phase is the state of an object in kstatus's terms.
type Phase int

const (
	// Done is kstatus Current: Ready=True.
	Done Phase = iota
	// Working is kstatus InProgress: Ready=False and Reconciling=True. The state will change without help.
	Working
	// Broken is Ready=False without Reconciling: something failed and is tried again, or a person has to look.
	Broken
	// Stalled is kstatus Failed: Ready=False and Stalled=True. Only an edit of the object's spec helps.
	Stalled
)

// Summary is the result of a reconcile, as the conditions report it.
type Summary struct {
	Phase   Phase
	Reason  string
	Message string
}

// Summarize sets Ready, Reconciling and Stalled from a summary, and the observed generation, and bounds the status.
func Summarize(o Object, out Summary, now time.Time) {
	o.SetObservedGeneration(o.GetGeneration())
	ready := metav1.ConditionFalse
	if out.Phase == Done {
		ready = metav1.ConditionTrue
	}
	Set(o, hubv1.ReadyCondition, ready, out.Reason, out.Message, now)
	for typ, phase := range map[string]Phase{hubv1.ReconcilingCondition: Working, hubv1.StalledCondition: Stalled} {
		if out.Phase == phase {
			Set(o, typ, metav1.ConditionTrue, out.Reason, out.Message, now)
		} else {
			Clear(o, typ)
		}
	}
	Bound(o)
}

// Set sets one condition, and cuts its message to MaxMessage characters. The transition time changes only with the
// condition's status.
func Set(o Object, typ string, s metav1.ConditionStatus, reason, message string, now time.Time) {
	meta.SetStatusCondition(o.GetConditions(), metav1.Condition{
		Type: typ, Status: s, Reason: reason, Message: said(message),
		ObservedGeneration: o.GetGeneration(), LastTransitionTime: metav1.NewTime(now),
	})
}

// Clear removes a condition that is there only while it is true.
func Clear(o Object, typ string) { meta.RemoveStatusCondition(o.GetConditions(), typ) }

// IsTrue returns whether a condition is there and true.
func IsTrue(o Object, typ string) bool { return meta.IsStatusConditionTrue(*o.GetConditions(), typ) }

// Online returns whether a cluster answers. A cluster that the hub cannot probe counts as online until Flux's results
// say otherwise, because Flux has to try it first.
func Online(reg *hubv1.ClusterRegistration) bool {
	if c := Find(reg, hubv1.ReachableCondition); reg.Status.UsesWorkloadIdentity() {
		return c == nil || c.Status != metav1.ConditionFalse
	}
	return IsTrue(reg, hubv1.ReachableCondition)
}

// Unregistered returns whether a registration is being deleted and its add-ons go with it. The registration controller
// reports that in a condition. Without the condition, the registration is about to be made again, or it stays and
// what is paused stays paused.
func Unregistered(reg *hubv1.ClusterRegistration) bool {
	reason := Reason(reg, hubv1.UnregisteringCondition)
	return reg.DeletionTimestamp != nil && reason != "" && !hubv1.Waits(reason)
}

// Goes returns whether a registration is being deleted.
func Goes(reg *hubv1.ClusterRegistration) bool { return reg.DeletionTimestamp != nil }

// Find returns a condition, or nil.
func Find(o Object, typ string) *metav1.Condition {
	return meta.FindStatusCondition(*o.GetConditions(), typ)
}

// Fraction returns "ready/total".
func Fraction(ready, total int32) string { return fmt.Sprintf("%d/%d", ready, total) }

// Count returns a number with its noun, given in the singular: "1 cluster", "2 clusters", "0 deliveries".
func Count[N int | int32 | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if stem, ok := strings.CutSuffix(noun, "y"); ok {
		return fmt.Sprintf("%d %sies", n, stem)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Are is Count with its verb: "1 cluster is", "2 clusters are".
func Are[N int | int32 | int64](n N, noun string) string {
	if n == 1 {
		return Count(n, noun) + " is"
	}
	return Count(n, noun) + " are"
}

// SomeReady says how many of total add-ons are Ready: "1 of 3 add-ons are Ready", "all 3 add-ons are Ready".
func SomeReady(ready, total int32) string {
	switch {
	case total == 1 && ready == 1:
		return "the add-on is Ready"
	case ready == total && total > 0:
		return fmt.Sprintf("all %s Ready", Are(total, "add-on"))
	case total == 1:
		return "the add-on is not Ready"
	}
	return fmt.Sprintf("%d of %s Ready", ready, Are(total, "add-on"))
}

// DeliveredTo says to how many clusters a set is delivered, by their summary: "delivered to 3/4 clusters".
func DeliveredTo(summary string) string { return fmt.Sprintf("delivered to %s clusters", summary) }

// ExpiresIn returns how long a credential is still valid, for a table: "expired", hours on the last day, days in the
// last ninety, and otherwise ">90d". It is coarse on purpose: while the expiry is far off, the text does not change,
// and nothing is written.
func ExpiresIn(at, now time.Time) string {
	left := at.Sub(now)
	switch {
	case left <= 0:
		return "expired"
	case left < 24*time.Hour:
		return fmt.Sprintf("%dh", int(math.Ceil(left.Hours())))
	case left <= 90*24*time.Hour:
		return fmt.Sprintf("%dd", int(left.Hours()/24))
	}
	return ">90d"
}

// Reason returns the reason of a condition, "" if it does not exist.
func Reason(obj Object, condition string) string {
	if c := Find(obj, condition); c != nil {
		return c.Reason
	}
	return ""
}

// Expiring returns the reason of the condition CredentialExpiring: within 30 days, 7 days or 1 day, or expired. It
// returns "" if the expiry is further off.
func Expiring(at, now time.Time) string {
	const day = 24 * time.Hour
	switch left := at.Sub(now); {
	case left <= 0:
		return hubv1.ExpiredReason
	case left <= day:
		return hubv1.ExpiresIn1DayReason
	case left <= 7*day:
		return hubv1.ExpiresIn7DaysReason
	case left <= 30*day:
		return hubv1.ExpiresIn30DaysReason
	}
	return ""
}

// Separator stands between the parts of a message.
const Separator = "; "

// List returns at most n names, and how many more there are: "a, b and 3 more".
func List(names []string, n int) string {
	if len(names) <= n {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:n], ", "), len(names)-n)
}
