// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestAdoptKustomization: a Kustomization that somebody wrote for the cluster goes over to an add-on that applies the same folder to the same place. One that
// does not fit is left alone: its successor would not know of what it has applied.
func TestAdoptKustomization(t *testing.T) {
	for name, tc := range map[string]struct {
		path, namespace string
		want            bool
	}{
		"TheSame":          {"app/", "", true},
		"AnotherFolder":    {"./other", "", false},
		"AnotherNamespace": {"./app", "elsewhere", false},
	} {
		t.Run(name, func(t *testing.T) {
			old := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: roomCluster.Namespace, Name: "by-hand", Finalizers: []string{fluxFinalizer}}}
			old.Spec.Path, old.Spec.TargetNamespace = tc.path, tc.namespace
			old.Spec.KubeConfig = &meta.KubeConfigReference{SecretRef: &meta.SecretKeyReference{Name: roomCluster.Name}}
			adopting := kustomizationAddon("app")
			adopting["adopt"] = map[string]any{"namespace": roomCluster.Namespace, "name": "by-hand"}
			m := newRoom(t, append(addonsOf(roomSet, "1", adopting),
				registered(roomCluster, "c1"), kubeconfigSecret(roomCluster, "t0"), deliveredTo(roomCluster, roomSet, "1"), old)...)
			m.settle()
			m.settle()
			err := m.api.Get(t.Context(), client.ObjectKeyFromObject(old), &kustomizev1.Kustomization{})
			if gone, made := err != nil, m.object(roomCluster, "app") != nil; gone != tc.want || made != tc.want || len(m.uninstalled) > 0 {
				t.Errorf("the old one is gone: %t, the new one made: %t, want both %t; uninstalled %v; %+v", gone, made, tc.want, m.uninstalled, m.delivery(roomCluster, roomSet).Status.Addons)
			}
		})
	}
}
