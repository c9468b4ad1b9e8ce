// SPDX-License-Identifier: Apache-2.0

package report

import (
	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/status"
)

// Count counts the add-ons of a delivery. An add-on that another set delivers does not count as Ready. An add-on that
// was Ready when it was paused or suspended still counts as Ready.
func Count(addons []hubv1.AddonStatus) *hubv1.ObjectCounts {
	var c hubv1.ObjectCounts
	for _, a := range addons {
		switch a.State {
		case hubv1.AddonExcluded, hubv1.AddonRemoving, hubv1.AddonOrphaned:
			continue
		case hubv1.AddonHeld:
			if Leaves(&a) {
				continue
			}
		case hubv1.AddonReady:
			c.Ready++
		case hubv1.AddonPaused, hubv1.AddonSuspended:
			if a.Before == hubv1.AddonReady {
				c.Ready++
			}
		case hubv1.AddonFailed, hubv1.AddonNotOwned:
			c.Failed++
		}
		c.Total++
	}
	c.Summary = status.Fraction(c.Ready, c.Total)
	return &c
}

// Leaves returns whether an add-on was being removed when it was last reported.
func Leaves(a *hubv1.AddonStatus) bool {
	return a.State == hubv1.AddonRemoving || a.State == hubv1.AddonHeld && a.Reason == hubv1.DroppedReason
}
