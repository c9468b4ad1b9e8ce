// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"fmt"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/guard"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/status"
)

// TestFrozen: what another version of the hub has made stays as it is, and what is missing of it is made, by this one. A delivery without
// its add-ons is not Ready.
func TestFrozen(t *testing.T) {
	m := newFrozenFixture(t)
	edit(m, "flux-system", m.object(testCluster, "app").GetName(), &helmv2.HelmRelease{}, func(o *helmv2.HelmRelease) {
		o.Annotations[hubv1.HashAnnotation] = "older" // another renderer's
	})
	before := m.writes
	m.settle()
	m.frozen("app", "git")
	if n := m.writes - before; n > 1 {
		t.Errorf("%d writes, want none but the status", n)
	}

	m.quietly(func() { m.must(m.api.Delete(t.Context(), m.object(testCluster, "git"))) })
	if m.must(m.reconcile(testCluster)); status.IsTrue(m.delivery(testCluster, testSet), hubv1.ReadyCondition) {
		t.Error("it is Ready without one of its add-ons")
	}
	m.settle()
	m.frozen("app", "git")
	if len(m.uninstalled) != 1 {
		t.Errorf("Flux has uninstalled %v, want what was deleted", m.uninstalled)
	}
	if h := m.object(testCluster, "app").GetAnnotations()[hubv1.HashAnnotation]; h != "older" {
		t.Error("what another renderer made was written")
	}
}

// TestFrozenBeforeItWasReady: a cluster that the hub was upgraded over before it was Ready is so on that revision when it is; its set waits for
// that. One that has another revision's content is not.
func TestFrozenBeforeItWasReady(t *testing.T) {
	for _, other := range []bool{false, true} {
		m := newFrozenFixture(t)
		want := m.delivery(testCluster, testSet).Spec.RevisionName
		edit(m, "flux-system", m.delivery(testCluster, testSet).Name, &hubv1.AddonDelivery{}, func(d *hubv1.AddonDelivery) {
			d.Status.ReadyRevision = ""
			if other {
				d.Status.ObservedRevision, want = "base-0-e1", ""
			}
		})
		m.settle()
		if got := m.delivery(testCluster, testSet).Status.ReadyRevision; got != want {
			t.Errorf("other content %t: it is Ready on %q, want %q", other, got, want)
		}
	}
}

// TestPausedIsNotWritten: what a pause holds back has not been written, and is not taken for it when the hub is upgraded meanwhile.
func TestPausedIsNotWritten(t *testing.T) {
	m := newServedFixture(t, addonsOf(testSet, "1", releaseAddon("app"))...)
	m.settle()
	m.pause(true)
	m.settle()
	m.quietly(func() {
		for _, o := range addonsOf(testSet, "2", releaseAddon("app", map[string]any{"releaseName": "again"}))[1:] {
			m.must(m.api.Create(t.Context(), o))
		}
	})
	d := m.delivery(testCluster, testSet)
	edit(m, d.Namespace, d.Name, d, func(d *hubv1.AddonDelivery) { d.Spec.RevisionName = revisionOf(testSet, "2") })
	m.settle()
	if got := m.delivery(testCluster, testSet).Status.ObservedRevision; got != revisionOf(testSet, "1") {
		t.Errorf("it has written %s, and the cluster is paused", got)
	}
}

// TestFrozenDropped: what the revision does not have is on its way out, as if the hub had not been upgraded meanwhile.
func TestFrozenDropped(t *testing.T) {
	m := newFrozenFixture(t)
	revision := addonsOf(testSet, "2", releaseAddon("app"))[1]
	older := identity.OfEpoch(revision.GetName(), render.Epoch-1)
	revision.SetName(older)
	m.quietly(func() { m.must(m.api.Create(t.Context(), revision)) })
	edit(m, "flux-system", m.delivery(testCluster, testSet).Name, &hubv1.AddonDelivery{}, func(d *hubv1.AddonDelivery) {
		d.Spec.RevisionName, d.Status.ReadyRevision, d.Status.ObservedRevision = older, older, older
	})
	m.settle()
	for _, a := range m.delivery(testCluster, testSet).Status.Addons {
		if leaves := a.State == hubv1.AddonHeld && a.Removal != ""; leaves != (a.Name == "git") {
			t.Errorf("%s is %s: %s", a.Name, a.State, a.Message)
		}
	}
}

// TestFrozenAnotherForm: what Flux still uninstalls, since the revision has the add-on in another form, is leaving, as if the hub had not
// been upgraded meanwhile: its grant is in use, and the new form waits for it.
func TestFrozenAnotherForm(t *testing.T) {
	m := newFrozenFixture(t)
	revision := addonsOf(testSet, "2", kustomizationAddon("app"), kustomizationAddon("git"))[1]
	older := identity.OfEpoch(revision.GetName(), render.Epoch-1)
	revision.SetName(older)
	granted := guard.Dropped(string(m.object(testCluster, "app").GetUID()))
	m.quietly(func() {
		m.must(m.api.Create(t.Context(), revision))
		m.must(m.api.Delete(t.Context(), m.object(testCluster, "app")))
	})
	edit(m, "flux-system", m.delivery(testCluster, testSet).Name, &hubv1.AddonDelivery{}, func(d *hubv1.AddonDelivery) {
		d.Spec.RevisionName, d.Status.ObservedRevision, d.Spec.Removals = older, older, []string{granted}
	})
	m.busy = true
	m.settle()
	if a := m.delivery(testCluster, testSet).Status.Addons[0]; a.State != hubv1.AddonRemoving || a.Removal != granted || len(m.objects()) != 2 {
		t.Errorf("%s is %s of grant %q: %s; there are %d objects", a.Name, a.State, a.Removal, a.Message, len(m.objects()))
	}
	m.busy = false
	m.settle()
	m.frozen("app", "git")
	if kind := m.delivery(testCluster, testSet).Status.Addons[0].Kind; kind != "Kustomization" {
		t.Errorf("it is a %s", kind)
	}
}

// TestFrozenRebuilt: another cluster is behind the registration. What Flux remembers of the old one goes, and the new one gets all of it.
func TestFrozenRebuilt(t *testing.T) {
	m := newFrozenFixture(t)
	edit(m, testCluster.Namespace, testCluster.Name, &hubv1.ClusterRegistration{}, func(r *hubv1.ClusterRegistration) { r.Status.ClusterUID = types.UID("c2") })
	m.settle()
	m.frozen("app", "git")
	if o := m.object(testCluster, "app"); o == nil || o.GetAnnotations()[hubv1.ClusterUIDAnnotation] != "c2" || len(m.uninstalled) > 0 {
		t.Errorf("the object is %v; uninstalled: %v", o, m.uninstalled)
	}
}

// TestFrozenWithNothing: a delivery of an older epoch that has no objects gets them.
func TestFrozenWithNothing(t *testing.T) {
	m := newFrozenFixture(t)
	m.quietly(func() {
		for _, o := range m.objects() {
			o.SetFinalizers(nil)
			m.must(m.api.Update(t.Context(), o))
			m.must(m.api.Delete(t.Context(), o))
		}
	})
	m.restart()
	m.must(m.reconcile(testCluster))
	if d := m.delivery(testCluster, testSet); status.IsTrue(d, hubv1.ReadyCondition) {
		t.Errorf("it is Ready with %s", d.Status.AddonCounts.Summary)
	}
	m.settle()
	m.frozen("app", "git")
}

// TestFrozenWithoutRevision: nothing can be made, and an empty cluster is not Ready.
func TestFrozenWithoutRevision(t *testing.T) {
	m := newFrozenFixture(t)
	m.quietly(func() {
		r := &appsv1.ControllerRevision{}
		r.Namespace, r.Name = "flux-system", m.delivery(testCluster, testSet).Spec.RevisionName
		m.must(m.api.Delete(t.Context(), r))
	})
	m.settle()
	m.frozen("app", "git")
	m.quietly(func() {
		for _, o := range m.objects() {
			m.must(m.api.Delete(t.Context(), o))
		}
	})
	m.settle()
	if d := m.delivery(testCluster, testSet); status.IsTrue(d, hubv1.ReadyCondition) {
		t.Errorf("it is Ready with %s", d.Status.AddonCounts.Summary)
	}
}

// TestFrozenLeaves: a frozen delivery is uninstalled as any other.
func TestFrozenLeaves(t *testing.T) {
	m := newFrozenFixture(t)
	m.withdraw(testCluster, testSet)
	m.settle()
	if m.delivery(testCluster, testSet) != nil || len(m.objects()) > 0 || len(m.uninstalled) != 2 {
		t.Errorf("left: %v; uninstalled: %v", m.objects(), m.uninstalled)
	}
}

// newFrozenFixture is a controller with a set on a cluster, delivered by a hub of the epoch before.
func newFrozenFixture(t *testing.T) *fixture {
	t.Helper()
	m := newServedFixture(t, addonsOf(testSet, "1", releaseAddon("app"), kustomizationAddon("git"))...)
	m.settle()
	older := identity.OfEpoch(revisionOf(testSet, "1"), render.Epoch-1)
	m.quietly(func() {
		r := &appsv1.ControllerRevision{}
		m.must(m.api.Get(t.Context(), client.ObjectKey{Namespace: "flux-system", Name: revisionOf(testSet, "1")}, r))
		r.ResourceVersion, r.Name = "", older
		m.must(m.api.Create(t.Context(), r))
	})
	edit(m, "flux-system", m.delivery(testCluster, testSet).Name, &hubv1.AddonDelivery{}, func(d *hubv1.AddonDelivery) {
		d.Spec.RevisionName, d.Status.ReadyRevision, d.Status.ObservedRevision = older, older, older
	})
	m.restart()
	m.settle()
	return m
}

// frozen wants the delivery Ready, because frozen, with these add-ons.
func (m *fixture) frozen(addons ...string) {
	m.t.Helper()
	d := m.delivery(testCluster, testSet)
	if c := status.Find(d, hubv1.ReadyCondition); c.Reason != hubv1.FrozenReason || c.Status != "True" {
		m.t.Errorf("it is %s, %s: %s", c.Status, c.Reason, c.Message)
	}
	if want := fmt.Sprintf("%[1]d/%[1]d", len(addons)); d.Status.AddonCounts.Summary != want || len(m.objects()) != len(addons) {
		m.t.Errorf("it has %s of %s, and %d objects", d.Status.AddonCounts.Summary, want, len(m.objects()))
	}
}
