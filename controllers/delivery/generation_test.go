// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"fmt"
	"testing"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// The status of an add-on knows the generation of the object that was there before. One that somebody deleted is made again, and its
// generations begin anew: it is Ready when Flux says so, whether or not the hub has been restarted since.
func TestObjectMadeAgainIsReady(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		t.Run(fmt.Sprintf("restarted=%t", restarted), func(t *testing.T) {
			m := newServedFixture(t, addonsOf(testSet, "1", releaseAddon("app"))...)
			m.settle()
			d := m.delivery(testCluster, testSet)
			edit(m, d.Namespace, d.Name, d, func(d *hubv1.AddonDelivery) { d.Status.Addons[0].AppliedGeneration = 3 })
			if restarted {
				m.restart()
			} else {
				m.quietly(func() { m.must(m.api.Delete(t.Context(), m.object(testCluster, "app"))) })
			}
			m.settle()
			if a := m.delivery(testCluster, testSet).Status.Addons[0]; a.State != hubv1.AddonReady || a.AppliedGeneration != 1 {
				t.Errorf("%s, %d: %s", a.State, a.AppliedGeneration, a.Message)
			}
			before := m.writes
			if m.settle(); m.writes != before {
				t.Errorf("%d writes for nothing", m.writes-before)
			}
		})
	}
}
