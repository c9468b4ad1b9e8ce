// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/identity"
)

// A tenant delivers an add-on, and then has it not come out any more: what is there of it stays as it is. When a platform set delivers the same
// add-on, there is one Flux object with the release, the platform's, and nothing is uninstalled, also when the tenant then deletes his set.
func TestAHeldAddonYieldsToThePlatforms(t *testing.T) {
	m := heldByTenant(t, nil)
	m.platformComes(releaseAddon("falco"))
	m.settle()
	if ours, theirs := m.releaseIn("flux-system"), m.releaseIn(testCluster.Namespace); ours == nil || theirs != nil || len(m.uninstalled) > 0 {
		t.Errorf("the platform's is %v, the tenant's %v; uninstalled: %v", ours, theirs, m.uninstalled)
	}
	if a := m.delivery(testCluster, testSet).Status.Addons; len(a) != 1 || a[0].State != hubv1.AddonReady {
		t.Errorf("the platform's add-on: %+v", a)
	}
	before := m.writes
	if m.settle(); m.writes != before {
		t.Errorf("%d writes when all is done", m.writes-before)
	}
	m.withdrawTenants()
	m.settle()
	if m.releaseIn("flux-system") == nil || len(m.uninstalled) > 0 {
		t.Errorf("the tenant has deleted his set, and uninstalled is %v", m.uninstalled)
	}
}

// The same with another release: the tenant's object goes as any that is lost, asked of his set's guard, and the platform's waits for it.
func TestAHeldAddonOfAnotherReleaseYieldsToThePlatforms(t *testing.T) {
	m := heldByTenant(t, map[string]any{"releaseName": "other"})
	m.platformComes(releaseAddon("falco"))
	m.settle()
	if m.releaseIn("flux-system") != nil {
		t.Fatal("the platform's was made beside the tenant's")
	}
	d := m.tenantsDelivery()
	a := d.Status.Addons
	if len(a) != 1 || a[0].State != hubv1.AddonHeld || a[0].Reason != hubv1.DroppedReason || a[0].Removal == "" {
		t.Fatalf("the tenant's add-on: %+v", a)
	}
	edit(m, d.Namespace, d.Name, d, func(d *hubv1.AddonDelivery) { d.Spec.Removals = []string{a[0].Removal} })
	m.settle()
	if ours, theirs := m.releaseIn("flux-system"), m.releaseIn(testCluster.Namespace); ours == nil || theirs != nil || len(m.uninstalled) != 1 {
		t.Errorf("the platform's is %v, the tenant's %v; uninstalled: %v", ours, theirs, m.uninstalled)
	}
}

// Where somebody had both before, with one release, the tenant's goes without being uninstalled: that would take the platform's away.
func TestTwoOfOneReleaseBecomeOne(t *testing.T) {
	m := heldByTenant(t, nil)
	theirs := m.releaseIn(testCluster.Namespace)
	m.quietly(func() { m.must(m.api.Delete(t.Context(), theirs.DeepCopy())); m.flux() })
	m.uninstalled = nil
	m.platformComes(releaseAddon("falco"))
	m.settle()
	theirs.ResourceVersion, theirs.UID = "", "t2"
	m.quietly(func() { m.must(m.api.Create(t.Context(), theirs)) })
	m.settle()
	if m.releaseIn("flux-system") == nil || m.releaseIn(testCluster.Namespace) != nil || len(m.uninstalled) > 0 {
		t.Errorf("the platform's is %v, the tenant's %v; uninstalled: %v", m.releaseIn("flux-system"), m.releaseIn(testCluster.Namespace), m.uninstalled)
	}
}

// Within a class what is there and stays as it is wins, whatever the priority.
func TestAHeldAddonStaysWithinItsClass(t *testing.T) {
	m := newFrozenFixture(t)
	other := addonsOf("other", "1", releaseAddon("app"))
	other[0].(*hubv1.AddonSet).Spec.Priority = 10
	m.quietly(func() {
		for _, o := range append(other, deliveredTo(testCluster, "other", "1")) {
			m.must(m.api.Create(t.Context(), o))
		}
	})
	m.settle()
	m.frozen("app", "git")
	a := m.delivery(testCluster, "other").Status.Addons
	if len(a) != 1 || a[0].State != hubv1.AddonLostTo || !strings.Contains(a[0].Message, "stays as it is for now") {
		t.Errorf("the other set's add-on: %+v", a)
	}
}

// heldByTenant is a controller where a tenant's set has delivered add-on falco, which does not come out any more.
func heldByTenant(t *testing.T, more map[string]any) *fixture {
	t.Helper()
	spec := map[string]any{
		"values":   map[string]any{"a": "<< cluster.labels['x'] >>"},
		"chartRef": map[string]any{"kind": "OCIRepository", "name": "mine", "namespace": testCluster.Namespace},
	}
	for k, v := range more {
		spec[k] = v
	}
	objects := addonsOf("mine", "1", releaseAddon("falco", spec))
	d := deliveredTo(testCluster, "mine", "1")
	for _, o := range append(objects, client.Object(d)) {
		o.SetNamespace(testCluster.Namespace)
	}
	reg := registered(testCluster, "c1")
	reg.Labels["x"] = "1"
	m := newFixture(t, append(objects, d, reg, kubeconfigSecret(testCluster, "t0"))...)
	m.settle()
	edit(m, testCluster.Namespace, testCluster.Name, &hubv1.ClusterRegistration{}, func(r *hubv1.ClusterRegistration) { delete(r.Labels, "x") })
	m.settle()
	if m.releaseIn(testCluster.Namespace) == nil {
		t.Fatal("the tenant's is not there")
	}
	return m
}

// platformComes has a platform set deliver add-ons.
func (m *fixture) platformComes(addons ...map[string]any) {
	m.t.Helper()
	m.quietly(func() {
		for _, o := range append(addonsOf(testSet, "1", addons...), deliveredTo(testCluster, testSet, "1")) {
			m.must(m.api.Create(m.t.Context(), o))
		}
	})
	m.settle()
}

// releaseIn returns the HelmRelease of add-on falco in a namespace, nil if there is none.
func (m *fixture) releaseIn(namespace string) *helmv2.HelmRelease {
	m.t.Helper()
	hr := &helmv2.HelmRelease{}
	err := m.api.Get(m.t.Context(), types.NamespacedName{Namespace: namespace, Name: identity.FluxObject("hub", testCluster, "falco")}, hr)
	if err != nil {
		m.must(client.IgnoreNotFound(err))
		return nil
	}
	return hr
}

// tenantsDelivery is that of the tenant's set.
func (m *fixture) tenantsDelivery() *hubv1.AddonDelivery {
	m.t.Helper()
	d := &hubv1.AddonDelivery{}
	m.must(m.api.Get(m.t.Context(), types.NamespacedName{Namespace: testCluster.Namespace, Name: identity.Delivery("mine", testCluster)}, d))
	return d
}

// withdrawTenants withdraws it, as when its set is deleted.
func (m *fixture) withdrawTenants() {
	m.t.Helper()
	d := m.tenantsDelivery()
	edit(m, d.Namespace, d.Name, d, func(d *hubv1.AddonDelivery) { d.Spec.Withdrawal = d.UID })
	m.quietly(func() { m.must(m.api.Delete(m.t.Context(), d)) })
}
