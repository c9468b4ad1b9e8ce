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
	for name, before := range map[string]func(*room){
		"Wanted": func(*room) {},
		"Frozen": func(m *room) {
			edit(m, "flux-system", m.object(roomCluster, "app").GetName(), &helmv2.HelmRelease{}, func(o *helmv2.HelmRelease) {
				o.Annotations[hubv1.HashAnnotation] = "older"
			})
		},
		"Paused": func(m *room) { m.pause(true) },
		"Held": func(m *room) {
			edit(m, "flux-system", roomSet, &hubv1.AddonSet{}, func(s *hubv1.AddonSet) {
				s.Spec.SelectAll, s.Spec.ClusterSelector = false, &metav1.LabelSelector{MatchLabels: map[string]string{"env": "none"}}
			})
		},
		"Deleted": func(m *room) {
			m.quietly(func() { m.must(m.api.Delete(m.t.Context(), m.object(roomCluster, "app"))) })
		},
		"Leaves": func(m *room) {
			m.withdraw(roomCluster, roomSet)
			m.must(m.reconcile(roomCluster))
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newFrozenRoom(t)
			if name != "Frozen" {
				m = newServedRoom(t, addonsOf(roomSet, "1", releaseAddon("app"))...)
				m.settle()
			}
			before(m)
			spec := m.object(roomCluster, "app").(*helmv2.HelmRelease).Spec.DeepCopy()
			for _, shards := range [][]string{{"a"}, {"b"}, {}} {
				m.r.Config.FluxShards = shards
				for range 3 {
					m.must(m.reconcile(roomCluster))
				}
				o := m.object(roomCluster, "app").(*helmv2.HelmRelease)
				if got, want := o.Labels[shard.Label], shard.Of("one", shards); got != want {
					t.Errorf("it is on shard %q, want %q", got, want)
				}
				if name == "Frozen" && o.Annotations[hubv1.HashAnnotation] != "older" || o.Spec.ReleaseName != spec.ReleaseName {
					t.Errorf("it was written: %+v", o)
				}
				writes := m.writes
				m.must(m.reconcile(roomCluster))
				if m.writes != writes {
					t.Errorf("%d writes for nothing", m.writes-writes)
				}
			}
		})
	}
}
