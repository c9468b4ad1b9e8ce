// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/status"
)

// excuse is why a rollout does not wait for an add-on.
type excuse int

const (
	// heldBack: it is held back on purpose.
	heldBack excuse = iota + 1
	// asking: it asks the removal guard.
	asking
	// silent: the cluster does not answer.
	silent
	// nodeless: the cluster has no node to run it on. That is none if its revision may have taken them away.
	nodeless
)

// excuses are the states of an add-on in which a rollout does not wait for it.
var excuses = map[hubv1.AddonState]excuse{
	hubv1.AddonSuspended:       heldBack,
	hubv1.AddonPaused:          heldBack,
	hubv1.AddonHeld:            asking,
	hubv1.AddonUnreachable:     silent,
	hubv1.AddonWaitingForNodes: nodeless,
}

// Excused returns whether a rollout or a tool that waits for a set should not wait for a cluster, since an add-on cannot go on there, or
// nothing can: its origin cannot be read.
func Excused(d *hubv1.AddonDelivery) bool {
	if status.Reason(d, hubv1.ReadyCondition) == hubv1.OriginMissingReason {
		return true
	}
	c := Cluster{Start: d.Spec.Start, Nodeless: whose(d, nodeless)}
	lost := c.lostNodes() && !ready(d)
	return slices.ContainsFunc(d.Status.Addons, func(a hubv1.AddonStatus) bool {
		is := excuses[a.State]
		return is != 0 && (is != nodeless || !lost)
	})
}

// whose says which add-on has one of these excuses; "" if none has. What asks the removal guard has an excuse until that grants
// it: then it works.
func whose(d *hubv1.AddonDelivery, of ...excuse) string {
	for _, a := range d.Status.Addons {
		is := excuses[a.State]
		if is == asking && slices.Contains(d.Spec.Removals, a.Removal) {
			continue
		}
		if slices.Contains(of, is) {
			return fmt.Sprintf("%s is %s", a.Name, a.State)
		}
	}
	return ""
}
