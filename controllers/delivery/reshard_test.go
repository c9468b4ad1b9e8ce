// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/shard"
)

// TestReshard: when the cluster's shard is another one, all of its objects get it, also those that stay as they are, wait or go: the controllers of the former
// one may be gone. Nothing else of them changes, and it costs one write.
func TestReshard(t *testing.T) {
	for name, before := range map[string]func(*fixture){
		"Wanted": func(*fixture) {},
		"Frozen": func(m *fixture) {
			edit(m, "flux-system", m.object(testCluster, "app").GetName(), &helmv2.HelmRelease{}, func(o *helmv2.HelmRelease) {
				o.Annotations[hubv1.HashAnnotation] = "older"
			})
		},
		"Paused": func(m *fixture) { m.pause(true) },
		"Held": func(m *fixture) {
			edit(m, "flux-system", testSet, &hubv1.AddonSet{}, func(s *hubv1.AddonSet) {
				s.Spec.SelectAll, s.Spec.ClusterSelector = false, &metav1.LabelSelector{MatchLabels: map[string]string{"env": "none"}}
			})
		},
		"Deleted": func(m *fixture) {
			m.quietly(func() { m.must(m.api.Delete(m.t.Context(), m.object(testCluster, "app"))) })
		},
		"Leaves": func(m *fixture) {
			m.withdraw(testCluster, testSet)
			m.must(m.reconcile(testCluster))
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newFrozenFixture(t)
			if name != "Frozen" {
				m = newServedFixture(t, addonsOf(testSet, "1", releaseAddon("app"))...)
				m.settle()
			}
			before(m)
			spec := m.object(testCluster, "app").(*helmv2.HelmRelease).Spec.DeepCopy()
			for _, shards := range [][]string{{"a"}, {"b"}, {}} {
				m.r.Config.FluxShards = shards
				for range 3 {
					m.must(m.reconcile(testCluster))
				}
				o := m.object(testCluster, "app").(*helmv2.HelmRelease)
				if got, want := o.Labels[shard.Label], shard.Of("one", shards); got != want {
					t.Errorf("it is on shard %q, want %q", got, want)
				}
				if name == "Frozen" && o.Annotations[hubv1.HashAnnotation] != "older" || o.Spec.ReleaseName != spec.ReleaseName {
					t.Errorf("it was written: %+v", o)
				}
				writes := m.writes
				m.must(m.reconcile(testCluster))
				if m.writes != writes {
					t.Errorf("%d writes for nothing", m.writes-writes)
				}
			}
		})
	}
}
