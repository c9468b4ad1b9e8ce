// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"encoding/json"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/plan"
)

func dependsOn(addon map[string]any, on ...string) map[string]any {
	var d []any
	for _, n := range on {
		d = append(d, map[string]any{"name": n})
	}
	addon["dependsOn"] = d
	return addon
}

// A tenant of namespace "evil", which has nothing to do with cluster fleet/one, deadlocks what the platform delivers there: web depends on cni, and an
// object that says that it was cni's, and that web is to go on with what it left, keeps cni off until web is installed.
func TestForgedFinishedOutOfReachDeadlocks(t *testing.T) {
	for name, forge := range map[string]bool{"Without": false, "With": true} {
		t.Run(name, func(t *testing.T) {
			m := newServedRoom(t, addonsOf(roomSet, "1", releaseAddon("cni"), dependsOn(kustomizationAddon("web"), "cni"))...)
			web := plan.Desired{Key: plan.Key{Kind: "Kustomization", Namespace: "flux-system", Name: identity.FluxObject("hub", roomCluster, "web")}, Content: plan.Content{Folder: plan.FolderOf("./app")}}
			if forge {
				raw, _ := json.Marshal(web.Has())
				ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{
					Namespace: "evil", Name: identity.FluxObject("hub", roomCluster, "cni"), UID: "forged",
					Labels:      map[string]string{hubv1.ClusterKeyLabel: identity.ClusterKey("hub", roomCluster), hubv1.AddonLabel: "cni"},
					Annotations: map[string]string{hubv1.InheritedAnnotation: string(raw), hubv1.HeirAnnotation: web.Key.String()},
					Finalizers:  []string{hubv1.FluxObjectFinalizer},
				}}
				m.quietly(func() {
					m.must(m.api.Create(m.t.Context(), ks))
					m.must(m.api.Delete(m.t.Context(), ks))
				})
			}
			for range 20 {
				m.settle()
			}
			for _, a := range m.delivery(roomCluster, roomSet).Status.Addons {
				if a.State != hubv1.AddonReady {
					t.Errorf("%s is %s: %s", a.Name, a.State, a.Message)
				}
			}
		})
	}
}
