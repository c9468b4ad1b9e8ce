// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestPlatformWaitsForNoTenantsGatedHeir: the platform's set leaves a tenant's cluster. The tenant's own set has the same release, and an add-on
// that it depends on never comes.
func TestPlatformWaitsForNoTenantsGatedHeir(t *testing.T) {
	falco := map[string]any{"releaseName": "falco", "targetNamespace": "falco", "storageNamespace": "falco"}
	tenants := addonsOf("mine", "1", dependsOn(releaseAddon("his", falco), "never"), kustomizationAddon("never"))
	td := deliveredTo(roomCluster, "mine", "1")
	for _, o := range append(tenants, client.Object(td)) {
		o.SetNamespace(roomCluster.Namespace)
	}
	objects := append(addonsOf(roomSet, "1", releaseAddon("falco")), tenants...)
	m := newRoom(t, append(objects, registered(roomCluster, "c1"), kubeconfigSecret(roomCluster, "t0"), deliveredTo(roomCluster, roomSet, "1"))...)
	m.settle()
	m.quietly(func() { m.must(m.api.Create(t.Context(), td)) })
	m.busy = true
	m.settle()
	m.withdraw(roomCluster, roomSet)
	for range 3 {
		m.settle()
	}
	if o := m.object(roomCluster, "falco"); o != nil && o.GetDeletionTimestamp() == nil {
		t.Errorf("the platform's is not even asked to go: %+v", m.delivery(roomCluster, roomSet).Status.Addons)
	}
}
