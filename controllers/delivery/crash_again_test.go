// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"fmt"
	"slices"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// TestMadeAgainAndCrash: somebody deletes a Flux object, and the hub dies wherever it may while it makes that again. A new hub makes it, with the
// release that the add-on went on with under another name. One thing is lost: no status names the release, if the hub dies between the two
// writes and the add-on is dropped at that very moment.
func TestMadeAgainAndCrash(t *testing.T) {
	for name, tc := range map[string]struct{ suspended, dropped bool }{
		"Uninstalled": {}, "Suspended": {suspended: true}, "SuspendedAndDropped": {suspended: true, dropped: true},
	} {
		t.Run(name, func(t *testing.T) {
			untold := 0
			for n := 1; ; n++ {
				crashed := false
				for _, effect := range []bool{false, true} {
					m := newServedFixture(t, slices.Concat(addonsOf(testSet, "1", releaseAddon("old"), releaseAddon("other")),
						addonsOf(testSet, "2", releaseAddon("app", map[string]any{"movedFrom": []any{map[string]any{"name": "old"}}}), releaseAddon("other"))[1:],
						addonsOf(testSet, "3", releaseAddon("app"), releaseAddon("other"))[1:], addonsOf(testSet, "4", releaseAddon("other"))[1:])...)
					to := func(revision string) {
						edit(m, "flux-system", m.delivery(testCluster, testSet).Name, &hubv1.AddonDelivery{}, func(d *hubv1.AddonDelivery) { d.Spec.RevisionName = revisionOf(testSet, revision) })
					}
					m.settle()
					to("2")
					m.settle()
					to("3")
					m.settle()
					m.released = nil
					hr := m.object(testCluster, "app").(*helmv2.HelmRelease)
					edit(m, hr.Namespace, hr.Name, hr, func(h *helmv2.HelmRelease) { h.Spec.Suspend = tc.suspended })
					m.quietly(func() { m.must(m.api.Delete(t.Context(), hr)) })
					m.flux()
					m.crashAt(n, effect)
					for range 4 {
						_ = m.reconcile(testCluster)
						m.flux()
					}
					crashed = crashed || m.dead()
					m.failing = nil
					if tc.dropped {
						to("4")
					}
					m.restart()
					m.settle()
					m.settle()
					where := fmt.Sprintf("write %d, with effect %t", n, effect)
					o, _ := m.object(testCluster, "app").(*helmv2.HelmRelease)
					switch {
					case tc.dropped && o == nil && len(m.told) == 0: // if it is there, the removal guard is asked
						untold++
						t.Logf("%s: nobody is told of it, and nobody removes it", where)
					case !tc.dropped && (o == nil || o.GetReleaseName() != "old"):
						t.Errorf("%s: %+v", where, o)
					}
				}
				if !crashed {
					break
				}
			}
			if want := map[bool]int{true: 1}[tc.dropped]; untold != want {
				t.Errorf("%d times nobody is told, want %d", untold, want)
			}
		})
	}
}
