// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/plan"
)

// What is to leave waits for an object that somebody has forged in a namespace that has nothing to do with the cluster: for ever, while the cluster answers and Flux gets
// nothing done there.
func TestForgedFinishedOutOfReachHoldsARemoval(t *testing.T) {
	for name, forge := range map[string]bool{"Without": false, "With": true} {
		t.Run(name, func(t *testing.T) {
			m := newServedRoom(t, addonsOf(roomSet, "1", releaseAddon("app"))...)
			m.busy = true // with its first try: an image that does not come
			m.settle()
			if forge {
				key := plan.Key{Kind: "HelmRelease", Namespace: "flux-system", Name: identity.FluxObject("hub", roomCluster, "app")}
				m.forgedFinished("evil", "whatever", []string{"Helm release app/app"}, map[string]string{hubv1.HeirAnnotation: key.String()})
			}
			m.withdraw(roomCluster, roomSet)
			m.settle()
			m.clock.SetTime(m.clock.Now().Add(24 * time.Hour))
			for range 5 {
				m.settle()
			}
			o := m.object(roomCluster, "app")
			if o != nil && o.GetDeletionTimestamp() == nil {
				t.Errorf("not even asked to go: %+v", m.delivery(roomCluster, roomSet).Status.Addons)
			}
		})
	}
}

// A forged object that names a registration that is not there, or one without deliveries: the hub neither panics nor goes on writing.
func TestForgedFinishedOfNobody(t *testing.T) {
	for name, withRegistration := range map[string]bool{"NoRegistration": false, "NoDeliveries": true} {
		t.Run(name, func(t *testing.T) {
			m := newRoom(t)
			if withRegistration {
				m.quietly(func() { m.must(m.api.Create(t.Context(), registered(roomCluster, "c1"))) })
			}
			m.forgedFinished("evil", "a", []string{"Helm release app/app"}, map[string]string{hubv1.HeirAnnotation: "HelmRelease evil/" + identity.FluxObject("hub", roomCluster, "b")}, "evil/x")
			m.forgedFinished("evil", "b", []string{"Helm release app/app"}, map[string]string{hubv1.HeirAnnotation: "HelmRelease evil/" + identity.FluxObject("hub", roomCluster, "a")}, "evil/x")
			m.settle()
			before, told := m.writes, len(m.told)
			m.settle()
			if m.writes != before || len(m.told) != told {
				t.Errorf("%d writes, told %v", m.writes-before, m.told)
			}
			for _, o := range m.objects() {
				t.Log(o.GetName(), o.GetFinalizers())
			}
		})
	}
}

// In his own namespace, the registration's: a finished object under the very name of his own set's add-on, kept by his own finalizer; and one under the name of
// the platform's. The hub comes to rest.
func TestForgedFinishedInReachComesToRest(t *testing.T) {
	tenants := addonsOf("mine", "1", releaseAddon("his"))
	td := deliveredTo(roomCluster, "mine", "1")
	for _, o := range append(tenants, client.Object(td)) {
		o.SetNamespace(roomCluster.Namespace)
	}
	m := newServedRoom(t, append(addonsOf(roomSet, "1", releaseAddon("app")), append(tenants, td)...)...)
	m.forgedFinished(roomCluster.Namespace, "his", []string{"Helm release his/his", "Helm release evil/evil"}, map[string]string{hubv1.DeliveryAnnotation: td.Name}, "evil/x")
	m.forgedFinished(roomCluster.Namespace, "app", []string{"Helm release app/app"}, map[string]string{hubv1.DeliveryAnnotation: td.Name}, "evil/x")
	for range 5 {
		m.settle()
	}
	before, told := m.writes, len(m.told)
	m.settle()
	if m.writes != before || len(m.told) != told {
		t.Errorf("%d writes, told %v", m.writes-before, m.told[told:])
	}
	t.Logf("told %d; platform's: %+v; tenant's %+v", told, m.delivery(roomCluster, roomSet).Status.Addons, m.tenantsDelivery().Status.Addons)
}

// A finished object in a namespace that does not reach the cluster may still be what a Team has left there: its own namespace is told, once.
func TestFinishedOutOfReachIsTold(t *testing.T) {
	for name, has := range map[string]bool{"NothingIsLeft": false, "AReleaseIsLeft": true} {
		t.Run(name, func(t *testing.T) {
			m := newServedRoom(t, addonsOf(roomSet, "1", releaseAddon("app"))...)
			m.forgedFinished("evil", "x", []string{"Helm release app/app"}, nil, "evil/x")
			if has {
				hr := &helmv2.HelmRelease{}
				m.must(m.api.Get(t.Context(), types.NamespacedName{Namespace: "evil", Name: identity.FluxObject("hub", roomCluster, "x")}, hr))
				hr.Status.History = helmv2.Snapshots{{Name: "x", Namespace: "x", Version: 1}}
				m.quietly(func() { m.must(m.api.Update(t.Context(), hr)) })
			}
			m.settle()
			m.settle()
			if told := len(m.told) == 1 && strings.Contains(m.told[0], `add-on "x"`); told != has || len(m.told) > 1 {
				t.Errorf("told %v", m.told)
			}
		})
	}
}
