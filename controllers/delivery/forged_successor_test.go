// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/identity"
)

func dependsOn(addon map[string]any, on ...string) map[string]any {
	var d []any
	for _, n := range on {
		d = append(d, map[string]any{"name": n})
	}
	addon["dependsOn"] = d
	return addon
}

// TestPlatformWaitsForNoTenantsGatedSuccessor: the platform's set leaves a tenant's cluster. The tenant's own set has the same release, and
// an add-on that it depends on never comes.
func TestPlatformWaitsForNoTenantsGatedSuccessor(t *testing.T) {
	falco := map[string]any{"releaseName": "falco", "targetNamespace": "falco", "storageNamespace": "falco"}
	tenants := addonsOf("mine", "1", dependsOn(releaseAddon("his", falco), "never"), kustomizationAddon("never"))
	td := deliveredTo(testCluster, "mine", "1")
	for _, o := range append(tenants, client.Object(td)) {
		o.SetNamespace(testCluster.Namespace)
	}
	objects := append(addonsOf(testSet, "1", releaseAddon("falco")), tenants...)
	m := newServedFixture(t, objects...)
	m.settle()
	m.quietly(func() { m.must(m.api.Create(t.Context(), td)) })
	m.busy = true
	m.settle()
	m.withdraw(testCluster, testSet)
	for range 3 {
		m.settle()
	}
	if o := m.object(testCluster, "falco"); o != nil && o.GetDeletionTimestamp() == nil {
		t.Errorf("the platform's is not even asked to go: %+v", m.delivery(testCluster, testSet).Status.Addons)
	}
}

// TestForgedSuccessorKeepsNoOrphanOutOfTheStatus: what the platform's set orphans on a tenant's cluster is in status.orphans, also if the
// tenant has a suspended object of the hub's name in his namespace with the same release.
func TestForgedSuccessorKeepsNoOrphanOutOfTheStatus(t *testing.T) {
	for name, forge := range map[string]bool{"Without": false, "With": true} {
		t.Run(name, func(t *testing.T) {
			m := newServedFixture(t, addonsOf(testSet, "1", releaseAddon("app"))...)
			m.settle()
			if forge {
				m.quietly(func() {
					hr := m.object(testCluster, "app").DeepCopyObject().(*helmv2.HelmRelease)
					hr.Namespace, hr.ResourceVersion, hr.UID, hr.Finalizers = testCluster.Namespace, "", "theirs", []string{"evil/x"}
					hr.Name = identity.FluxObject("hub", testCluster, "evil")
					hr.Labels[hubv1.AddonLabel] = "evil"
					hr.Status = helmv2.HelmReleaseStatus{}
					hr.Spec.Suspend = true
					m.must(m.api.Create(t.Context(), hr))
				})
			}
			edit(m, "flux-system", testSet, &hubv1.AddonSet{}, func(s *hubv1.AddonSet) { s.Spec.DeletionPolicy = hubv1.DeletionPolicyOrphan })
			m.withdraw(testCluster, testSet)
			for range 5 {
				m.settle()
			}
			if d := m.delivery(testCluster, testSet); d != nil || len(m.told) == 0 || len(m.orphans(testCluster)) == 0 {
				t.Errorf("delivery %v, told %v, orphans %v", d, m.told, m.orphans(testCluster))
			}
		})
	}
}
