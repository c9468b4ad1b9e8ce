// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/guard"
	"github.com/chandler-hub/chandler/internal/status"
)

// reportHeld sets or clears the condition that the removal guard of the set holds something on this cluster. It
// returns what the Ready condition says of it.
func (c *cluster) reportHeld(d *delivery) string {
	what := c.heldHere(d)
	if what == "" {
		status.Clear(d, hubv1.RemovalsHeldCondition)
		return ""
	}
	status.Set(d, hubv1.RemovalsHeldCondition, metav1.ConditionTrue, hubv1.TooManyRemovalsReason, guard.MessageHere(d.Set, what), c.Now)
	return "; a removal is held: see condition " + hubv1.RemovalsHeldCondition
}

// heldHere says what the guard holds of a delivery; "" for nothing. While the guard holds something, nothing else
// leaves the set.
func (c *cluster) heldHere(d *delivery) string {
	if d.Set == nil || d.Set.Status.HeldRemovals == nil || d.Leaving || c.Registration == nil {
		return ""
	}
	asks := func(a hubv1.AddonStatus) bool { return a.State == hubv1.AddonHeld && a.Removal != "" }
	switch left := c.LeavesAfter(d.Delivery); {
	case left > 0:
		c.LookAgain(left) // the guard may hold it then
		return ""
	case status.Goes(c.Registration), c.Unwanted(d.Delivery), !c.Reaches(d.Namespace):
		return guard.WholeSet
	case slices.ContainsFunc(d.Status.Addons, asks):
		return guard.SomeAddons
	}
	return ""
}

// reportDeselected returns what the Ready condition says of a set that does not select the cluster any more. Of a set that does not reach
// the cluster the condition says that already.
func (c *cluster) reportDeselected(d *delivery) string {
	if d.Spec.WithdrawAfter == nil || d.Leaving {
		return ""
	}
	says, leaves := fmt.Sprintf("; AddonSet %s does not select the cluster any more", d.SetKey()), ""
	if d.Reason == hubv1.OutOfReachReason {
		says = ""
	}
	if after := d.Spec.WithdrawAfter.Time; c.Now.Before(after) {
		leaves = fmt.Sprintf("; it leaves after %s, unless it is selected again", after.UTC().Format(time.RFC3339))
	}
	return says + leaves
}
