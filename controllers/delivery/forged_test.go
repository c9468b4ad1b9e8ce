// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"encoding/json"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/identity"
)

// forgedFinished is what anybody who may write HelmReleases in any namespace can make: an object with the hub's name for an add-on of somebody else's
// cluster, the hub's finalizer and one of his own, and then deleted.
func (m *room) forgedFinished(namespace, addon string, inherited []string, more map[string]string, finalizers ...string) {
	m.t.Helper()
	raw, err := json.Marshal(inherited)
	m.must(err)
	hr := &helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: identity.FluxObject("hub", roomCluster, addon), UID: "forged",
		Labels:      map[string]string{hubv1.ClusterKeyLabel: identity.ClusterKey("hub", roomCluster), hubv1.AddonLabel: addon},
		Annotations: map[string]string{hubv1.InheritedAnnotation: string(raw)},
		Finalizers:  append([]string{hubv1.FluxObjectFinalizer}, finalizers...),
	}}
	for k, v := range more {
		hr.Annotations[k] = v
	}
	m.quietly(func() {
		m.must(m.api.Create(m.t.Context(), hr))
		m.must(m.api.Delete(m.t.Context(), hr))
	})
}

// A tenant of namespace "evil", which has nothing to do with cluster fleet/one, keeps the platform's add-on off it.
func TestForgedFinishedOutOfReachKeepsAPlatformAddonOff(t *testing.T) {
	m := newServedRoom(t, addonsOf(roomSet, "1", releaseAddon("app"))...)
	m.forgedFinished("evil", "app", []string{"Helm release x/y"}, nil)
	m.settle()
	for _, o := range m.objects() {
		t.Logf("%s/%s %v %v", o.GetNamespace(), o.GetName(), o.GetFinalizers(), o.GetDeletionTimestamp())
	}
	t.Log(m.told, m.delivery(roomCluster, roomSet).Status.Addons)
	for _, a := range m.delivery(roomCluster, roomSet).Status.Addons {
		if a.State != hubv1.AddonReady {
			t.Errorf("%s is %s: %s", a.Name, a.State, a.Message)
		}
	}
	hr := &helmv2.HelmRelease{}
	if err := m.api.Get(t.Context(), client.ObjectKey{Namespace: "flux-system", Name: identity.FluxObject("hub", roomCluster, "app")}, hr); err != nil {
		t.Errorf("the platform's add-on is not there: %v", err)
	}
}

// The same where the platform's is there, and somebody deletes its Flux object: it does not come back.
func TestForgedFinishedOutOfReachKeepsAPlatformAddonFromComingBack(t *testing.T) {
	m := newServedRoom(t, addonsOf(roomSet, "1", releaseAddon("app"))...)
	m.settle()
	m.forgedFinished("evil", "app", []string{"Helm release x/y"}, nil)
	m.settle()
	hr := &helmv2.HelmRelease{}
	key := client.ObjectKey{Namespace: "flux-system", Name: identity.FluxObject("hub", roomCluster, "app")}
	m.must(m.api.Get(t.Context(), key, hr))
	m.quietly(func() { m.must(m.api.Delete(t.Context(), hr)) })
	m.settle()
	m.settle()
	if err := m.api.Get(t.Context(), key, hr); err != nil {
		t.Errorf("the platform's add-on is not made again: %v; %+v", err, m.delivery(roomCluster, roomSet).Status.Addons)
	}
}

// What he writes is told in an event about somebody else's registration.
func TestForgedFinishedOutOfReachTellsLies(t *testing.T) {
	m := newServedRoom(t, addonsOf(roomSet, "1", releaseAddon("app"))...)
	m.settle()
	m.forgedFinished("evil", "other", []string{"Helm release kube-system/DELETE-ME-BY-HAND " + strings.Repeat("x", 2000)}, map[string]string{hubv1.DeletionPolicyAnnotation: "Orphan"})
	m.settle()
	if len(m.told) > 0 {
		t.Errorf("told (%d): %.600s", len(m.told[0]), m.told)
	}
}

// An honest case of the same: the delivery is not there any more (its set was deleted with a finalizer taken off, or restored), and somebody deletes the
// suspended Flux object by hand: it never goes.
func TestForgedFinishedWithoutADeliveryNeverGoes(t *testing.T) {
	m := newServedRoom(t, addonsOf(roomSet, "1", releaseAddon("app"))...)
	m.settle()
	d := m.delivery(roomCluster, roomSet)
	edit(m, d.Namespace, d.Name, d, func(d *hubv1.AddonDelivery) { d.Finalizers = nil })
	m.quietly(func() { m.must(m.api.Delete(t.Context(), d)) })
	m.quietly(func() {
		set := &hubv1.AddonSet{}
		set.Namespace, set.Name = "flux-system", roomSet
		m.must(m.api.Delete(t.Context(), set))
	})
	hr := m.object(roomCluster, "app").(*helmv2.HelmRelease)
	edit(m, hr.Namespace, hr.Name, hr, func(h *helmv2.HelmRelease) { h.Spec.Suspend = true })
	m.quietly(func() { m.must(m.api.Delete(t.Context(), hr)) })
	for range 5 {
		m.settle()
	}
	if o := m.object(roomCluster, "app"); o != nil {
		t.Errorf("still Terminating: finalizers %v, told %v", o.GetFinalizers(), m.told)
	}
}
