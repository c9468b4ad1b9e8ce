// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"testing"
	"time"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// TestSettle: what labels decide by the set's expressions and overlays may come back, as labels do by which a set selects. What somebody
// says of this cluster alone is at once.
func TestSettle(t *testing.T) {
	label := func(value string) func(m *fixture) {
		return func(m *fixture) {
			edit(m, testCluster.Namespace, testCluster.Name, &hubv1.ClusterRegistration{}, func(r *hubv1.ClusterRegistration) {
				r.Labels = map[string]string{"tier": value}
			})
		}
	}
	overridden := func(m *fixture) {
		edit(m, testCluster.Namespace, testCluster.Name, &hubv1.ClusterRegistration{}, func(r *hubv1.ClusterRegistration) {
			r.Spec.Overrides = []hubv1.Override{{Name: "app", Exclude: true}}
		})
	}
	conditional := map[string]any{"when": "<< cluster.labels['tier'] == 'gold' >>", "optional": true}
	for name, tc := range map[string]struct {
		addon map[string]any
		drop  func(m *fixture)
		stays bool
	}{
		"a label that when reads": {chartAddon("app", nil), label("silver"), true},
		"of plain manifests":      {manifestsAddon(), label("silver"), true},
		"an override":             {chartAddon("app", nil), overridden, false},
	} {
		t.Run(name, func(t *testing.T) {
			for k, v := range conditional {
				tc.addon[k] = v
			}
			m := newServedFixture(t, addonsOf(testSet, "1", tc.addon)...)
			m.r.Config.DeselectionDelay = 5 * time.Minute
			m.quietly(func() { label("gold")(m) })
			m.settle()
			before := m.object(testCluster, "app")
			if before == nil {
				t.Fatalf("it does not arrive: %+v", m.delivery(testCluster, testSet).Status)
			}
			m.quietly(func() { tc.drop(m) })
			m.settle()
			if !tc.stays {
				if m.addon("app").State != hubv1.AddonHeld { // the guard is asked
					t.Errorf("nothing happens: %+v", m.addon("app"))
				}
				return
			}
			if a := m.addon("app"); a.State == hubv1.AddonHeld {
				t.Fatalf("the guard is asked at once: %+v", a)
			}
			label("gold")(m)
			m.settle()
			if a, after := m.addon("app"), m.object(testCluster, "app"); a.State != hubv1.AddonReady || after.GetUID() != before.GetUID() {
				t.Errorf("the label is back, and it is %+v", a)
			}
			m.quietly(func() { tc.drop(m) })
			m.settle()
			m.clock.SetTime(m.clock.Now().Add(5 * time.Minute))
			m.settle()
			if m.addon("app").State != hubv1.AddonHeld {
				t.Errorf("the label is gone for good, and it is %+v", m.addon("app"))
			}
		})
	}
}
