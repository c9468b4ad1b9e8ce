// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/fluxcd/pkg/apis/meta"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/fluxstate"
	"github.com/chandler-hub/chandler/internal/identity"
)

func byHand(change func(*helmv2.HelmRelease)) *helmv2.HelmRelease {
	old := &helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "by-hand", Finalizers: []string{fluxFinalizer}}}
	old.Spec = helmv2.HelmReleaseSpec{ChartRef: &helmv2.CrossNamespaceSourceReference{Kind: "OCIRepository", Name: "chart"}, ReleaseName: "app", TargetNamespace: "apps", StorageNamespace: "apps",
		KubeConfig: &meta.KubeConfigReference{SecretRef: &meta.SecretKeyReference{Name: roomCluster.Name}}}
	old.Status = helmv2.HelmReleaseStatus{StorageNamespace: "apps",
		Conditions:                  []metav1.Condition{{Type: fluxstate.Released, Status: metav1.ConditionTrue, Reason: helmv2.InstallSucceededReason}},
		ObservedPostRenderersDigest: "sha256:p",
		History:                     helmv2.Snapshots{{Name: "app", Namespace: "apps", Version: 3, APIVersion: helmv2.CurrentSnapshotAPIVersion, Digest: "sha256:d", ChartName: "chart-of-chart", ChartVersion: "1.0.0"}}}
	if change != nil {
		change(old)
	}
	return old
}

func adoptingAddon(name string, more ...map[string]any) map[string]any {
	return adoptingAddonIn("flux-system", name, more...)
}

func adoptingAddonIn(namespace, name string, more ...map[string]any) map[string]any {
	a := releaseAddon(name, more...)
	a["adopt"] = map[string]any{"namespace": namespace, "name": "by-hand"}
	return a
}

func adoptRoom(t *testing.T, old *helmv2.HelmRelease, addons ...map[string]any) *room {
	beside := kubeconfigSecret(roomCluster, "t0")
	beside.Namespace = "flux-system"
	return newServedRoom(t, append(addonsOf(roomSet, "1", addons...), old, beside)...)
}

// untilSuspended goes on until the new object is there, suspended.
func (m *room) untilSuspended(addon string) *helmv2.HelmRelease {
	m.t.Helper()
	for range 20 {
		m.must(m.reconcile(roomCluster))
		m.bookkeeping()
		if o, ok := m.object(roomCluster, addon).(*helmv2.HelmRelease); ok && o.Spec.Suspend {
			return o
		}
		m.flux()
	}
	m.t.Fatalf("no suspended object; %+v", m.delivery(roomCluster, roomSet).Status.Addons)
	return nil
}

// realFlux finalizes as helm-controller's reconcileReleaseDeletion does what it has never worked on: with no
// status.storageNamespace it uninstalls nothing, and leaves the status as it is. It returns the names.
func (m *room) realFlux() (skipped []string) {
	m.quietly(func() {
		for _, obj := range m.objects() {
			hr, ok := obj.(*helmv2.HelmRelease)
			if ok && hr.DeletionTimestamp != nil && !hr.Spec.Suspend && hr.Status.StorageNamespace == "" && slices.Contains(hr.Finalizers, fluxFinalizer) {
				controllerutil.RemoveFinalizer(hr, fluxFinalizer)
				m.must(m.api.Update(m.t.Context(), hr))
				skipped = append(skipped, hr.Name)
			}
		}
	})
	return skipped
}

func (m *room) settleReal() (skipped []string) {
	for range 30 {
		if err := m.reconcile(roomCluster); err != nil {
			m.t.Logf("reconcile: %v", err)
		}
		skipped = append(skipped, m.realFlux()...)
		m.flux()
		m.bookkeeping()
		m.clock.SetTime(m.clock.Now().Add(3500 * time.Millisecond))
	}
	return skipped
}

// The status write is refused for ever, by an older role, a policy or a CRD: the object is resumed without a history.
func TestHistoryStatusRefused(t *testing.T) {
	for name, refusal := range map[string]error{
		"Forbidden": apierrors.NewForbidden(schema.GroupResource{Group: "helm.toolkit.fluxcd.io", Resource: "helmreleases/status"}, "x", errors.New("no")),
		"Invalid":   apierrors.NewInvalid(schema.GroupKind{Group: "helm.toolkit.fluxcd.io", Kind: "HelmRelease"}, "x", nil),
	} {
		t.Run(name, func(t *testing.T) {
			m := adoptRoom(t, byHand(nil), adoptingAddon("app"))
			m.failing = func(what string) (error, bool) {
				if what == "patch status of *v2.HelmRelease" {
					return refusal, false
				}
				return nil, false
			}
			m.settle()
			m.settle()
			o := m.object(roomCluster, "app").(*helmv2.HelmRelease)
			if o.Spec.Suspend {
				t.Errorf("it is still suspended: %+v", m.delivery(roomCluster, roomSet).Status.Addons)
			}
		})
	}
}

// An adoption is refused because the release differs, and the author drops adopt. His release begins without a history: Flux would uninstall what the
// hand-written object still delivers.
func TestHistoryAnotherRelease(t *testing.T) {
	adopting := adoptingAddon("app", map[string]any{"releaseName": "mine", "targetNamespace": "apps"})
	m := adoptRoom(t, byHand(nil), adopting)
	m.settle()
	plain := maps.Clone(adopting)
	delete(plain, "adopt")
	replaceSet(m, plain)
	got := watchHistory(m, "app")
	o, _ := m.object(roomCluster, "app").(*helmv2.HelmRelease)
	if o == nil {
		t.Fatalf("none: %+v", m.delivery(roomCluster, roomSet).Status.Addons)
	}
	if got != nil && got.Name == "app" {
		t.Errorf("release %s/%s (storage %s) has the history of release %s/%s, which HelmRelease by-hand still manages", o.GetReleaseNamespace(), o.GetReleaseName(), o.GetStorageNamespace(), got.Namespace, got.Name)
	}
}

func replaceSet(m *room, addons ...map[string]any) {
	m.t.Helper()
	objects := addonsOf(roomSet, "2", addons...)
	m.quietly(func() { m.must(m.api.Create(m.t.Context(), objects[1])) })
	edit(m, "flux-system", roomSet, &hubv1.AddonSet{}, func(s *hubv1.AddonSet) { s.Spec = objects[0].(*hubv1.AddonSet).Spec })
	d := m.delivery(roomCluster, roomSet)
	edit(m, d.Namespace, d.Name, d, func(d *hubv1.AddonDelivery) { d.Spec.RevisionName = revisionOf(roomSet, "2") })
}

// watchHistory settles, and returns the first history with a digest (so not Flux's of this room) that the object of an add-on gets.
func watchHistory(m *room, addon string) (got *helmv2.Snapshot) {
	for range 40 {
		if err := m.reconcile(roomCluster); err != nil {
			m.t.Logf("reconcile: %v", err)
		}
		if o, ok := m.object(roomCluster, addon).(*helmv2.HelmRelease); ok && got == nil {
			if l := o.Status.History.Latest(); l != nil && l.Digest != "" {
				got = l.DeepCopy()
			}
		}
		m.flux()
		m.bookkeeping()
		m.clock.SetTime(m.clock.Now().Add(3500 * time.Millisecond))
	}
	return got
}

// The set goes while the new object is suspended, and Flux would uninstall nothing: the release is uninstalled, or reported.
func TestHistoryLeavesWhileSuspended(t *testing.T) {
	m := adoptRoom(t, byHand(nil), adoptingAddon("app"))
	m.untilSuspended("app")
	m.flux()
	m.withdraw(roomCluster, roomSet)
	skipped := m.settleReal()
	if len(skipped) > 0 && len(m.told) == 0 && len(m.orphans(roomCluster)) == 0 {
		t.Errorf("release app stays on the cluster, and nobody says so")
	}
}

// Two add-ons adopt the same object. The one that does not get it begins without the history of the other's release.
func TestHistoryTwoAdopt(t *testing.T) {
	m := adoptRoom(t, byHand(nil), adoptingAddon("app"), adoptingAddon("bpp", map[string]any{"targetNamespace": "apps"}))
	got := watchHistory(m, "bpp")
	b := m.object(roomCluster, "bpp").(*helmv2.HelmRelease)
	a := m.object(roomCluster, "app").(*helmv2.HelmRelease)
	if got != nil && got.Name != b.Spec.ReleaseName {
		t.Errorf("release %s (storage %s) of bpp began with the history of release %s, which is that of app (%s, storage %s)", b.GetReleaseName(), b.GetStorageNamespace(),
			got.Name, a.GetReleaseName(), a.GetStorageNamespace())
	}
}

// Faults at writes, before and after effect, with and without a restart: at the end nothing is suspended or uninstalled.
func TestHistoryFaults(t *testing.T) {
	for n := 1; n < 25; n += 2 {
		for _, effect := range []bool{false, true} {
			for _, restart := range []bool{false, true} {
				m := adoptRoom(t, byHand(nil), adoptingAddon("app"))
				count, what := 0, ""
				m.failing = func(w string) (error, bool) {
					if count++; count != n {
						return nil, false
					}
					what = w
					return errors.New("a fault"), effect
				}
				for range 8 {
					before := count
					_ = m.reconcile(roomCluster)
					m.bookkeeping()
					if restart && before < n && count >= n {
						m.restart()
					}
					m.flux()
				}
				m.settle()
				m.settle()
				o, ok := m.object(roomCluster, "app").(*helmv2.HelmRelease)
				if !ok || o.Spec.Suspend || o.Annotations[hubv1.HashAnnotation] == "" || len(m.uninstalled) > 0 || len(m.r.histories.entries) > 0 {
					t.Errorf("%d %s effect %v restart %v: %+v", n, what, effect, restart, o)
				}
				before := m.writes
				m.settle()
				if m.writes != before {
					t.Errorf("%d %s: writes for nothing", n, what)
				}
			}
		}
	}
}

// The installed chart has another name, and Flux is to reinstall for that. Without a history it upgrades in place. With one, it would uninstall first, and
// the removal guard has not been asked.
func TestHistoryOtherChart(t *testing.T) {
	old := byHand(func(o *helmv2.HelmRelease) { o.Status.History[0].ChartName = "podinfo-old" })
	a := adoptingAddon("app", map[string]any{"chart": map[string]any{"spec": map[string]any{"chart": "podinfo", "version": "1.x", "sourceRef": map[string]any{"kind": "HelmRepository", "name": "repo"}}}})
	delete(a["helmRelease"].(map[string]any), "chartRef")
	m := adoptRoom(t, old, a)
	got := watchHistory(m, "app")
	o := m.object(roomCluster, "app").(*helmv2.HelmRelease)
	if got != nil && got.ChartName == "podinfo-old" && (o.Spec.Upgrade == nil || o.Spec.Upgrade.ChartNameChangeStrategy != "InPlaceUpdate") {
		t.Errorf("the object is for chart podinfo, and has a history of chart %s: Flux may reinstall, and no guard has asked: %+v", got.ChartName, m.delivery(roomCluster, roomSet).Status.Addons)
	}
}

// Between the old object and the new one the set gets another chart. The history is of the chart of before.
func TestHistoryOtherChartMeanwhile(t *testing.T) {
	of := func(chart string) map[string]any {
		a := adoptingAddon("app", map[string]any{"chart": map[string]any{"spec": map[string]any{"chart": chart, "version": "1.x", "sourceRef": map[string]any{"kind": "HelmRepository", "name": "repo"}}}})
		delete(a["helmRelease"].(map[string]any), "chartRef")
		return a
	}
	old := byHand(func(o *helmv2.HelmRelease) { o.Status.History[0].ChartName = "podinfo" })
	m := adoptRoom(t, old, of("podinfo"))
	for range 10 {
		m.must(m.reconcile(roomCluster))
		m.bookkeeping()
		m.flux()
		if m.api.Get(t.Context(), client.ObjectKeyFromObject(old), &helmv2.HelmRelease{}) != nil {
			break
		}
	}
	if len(m.r.histories.entries) == 0 || m.object(roomCluster, "app") != nil {
		t.Fatalf("it is not between the two: %+v", m.delivery(roomCluster, roomSet).Status)
	}
	replaceSet(m, of("another"))
	if got := watchHistory(m, "app"); got != nil || m.object(roomCluster, "app") == nil || len(m.r.histories.entries) > 0 {
		t.Errorf("for chart another it has the history %+v; kept %v; %+v", got, m.r.histories.entries, m.delivery(roomCluster, roomSet).Status.Addons)
	}
}

// Somebody deletes the set and its delivery while the new object is suspended. Nobody could resume it later.
func TestHistoryAbandoned(t *testing.T) {
	m := adoptRoom(t, byHand(nil), adoptingAddon("app"))
	o := m.untilSuspended("app")
	edit(m, o.Namespace, o.Name, o, func(o *helmv2.HelmRelease) { o.Generation = 1 }) // Flux has not looked at it
	m.busy = true
	m.quietly(func() {
		m.must(m.api.Delete(t.Context(), &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: roomSet}}))
	})
	m.delete(roomCluster, roomSet)
	m.settle()
	m.settle()
	if o, ok := m.object(roomCluster, "app").(*helmv2.HelmRelease); !ok || o.Spec.Suspend || m.delivery(roomCluster, roomSet) != nil {
		t.Errorf("there is %+v; delivery %v", o, m.delivery(roomCluster, roomSet))
	}
}

// Somebody has an object of the name that the hub's is to have, and the hand-written one goes. The hub does not ask again and again.
func TestHistoryHotLoop(t *testing.T) {
	for name, adopts := range map[string]bool{"WithAdopt": true, "Without": false} {
		t.Run(name, func(t *testing.T) {
			a := releaseAddon("app")
			if adopts {
				a = adoptingAddon("app")
			}
			m := adoptRoom(t, byHand(nil), a)
			if !adopts {
				edit(m, "flux-system", "by-hand", &helmv2.HelmRelease{}, func(o *helmv2.HelmRelease) { o.Finalizers = nil })
				m.quietly(func() { m.must(m.api.Delete(t.Context(), byHand(nil))) })
			}
			squatter := byHand(func(o *helmv2.HelmRelease) {
				o.Name, o.Spec.KubeConfig, o.Spec.ReleaseName, o.Finalizers = identity.FluxObject("hub", roomCluster, "app"), nil, "his", nil
				o.Spec.Interval.Duration = time.Hour
			})
			m.quietly(func() { m.must(m.api.Create(t.Context(), squatter)) })
			m.settle()
			m.settle()
			n := 0
			for range 50 {
				result, err := m.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: roomCluster})
				if err == nil && result.RequeueAfter > 0 && result.RequeueAfter <= soon {
					n++
				}
				m.clock.SetTime(m.clock.Now().Add(3500 * time.Millisecond))
			}
			if n > 5 {
				t.Errorf("it asks again and again")
			}
		})
	}
}

// Flux has the history and waits for a chart or a dependency. The release is uninstalled with its set all the same.
func TestHistoryStorageNamespace(t *testing.T) {
	m := adoptRoom(t, byHand(nil), adoptingAddon("app"))
	m.untilSuspended("app")
	m.flux()
	m.busy = true
	m.settle()
	o := m.object(roomCluster, "app").(*helmv2.HelmRelease)
	m.busy = false
	edit(m, o.Namespace, o.Name, o, func(o *helmv2.HelmRelease) { controllerutil.AddFinalizer(o, fluxFinalizer) }) // the fake API server has lost it
	m.withdraw(roomCluster, roomSet)
	m.settleReal()
	if len(m.uninstalled) == 0 {
		t.Errorf("the release is left behind")
	}
}

// Somebody deletes the new object while it waits for its history, right before it is resumed. Flux has let go what it had, since it was
// suspended. If it were resumed then, Flux would uninstall the release.
func TestDeletedAsItIsResumedWithItsHistory(t *testing.T) {
	m := adoptRoom(t, byHand(nil), adoptingAddon("app"))
	held := m.untilSuspended("app")
	deleted := false
	m.failing = func(what string) (error, bool) {
		if what == "patch *v2.HelmRelease" && !deleted {
			deleted = true
			m.quietly(func() { m.must(m.api.Delete(t.Context(), m.object(roomCluster, "app"))) })
			m.flux()
		}
		return nil, true
	}
	for range 10 {
		m.must(m.reconcile(roomCluster))
		if o, ok := m.object(roomCluster, "app").(*helmv2.HelmRelease); ok && o.UID == held.UID && o.DeletionTimestamp != nil && !o.Spec.Suspend {
			t.Fatal("it is resumed although Flux has let it go")
		}
		m.bookkeeping()
		m.clock.SetTime(m.clock.Now().Add(3 * time.Second))
	}
	if !deleted {
		t.Fatal("it has not been resumed")
	}
	m.settle()
	if o, ok := m.object(roomCluster, "app").(*helmv2.HelmRelease); !ok || o.DeletionTimestamp != nil || o.Spec.Suspend || len(m.uninstalled) > 0 {
		t.Errorf("%+v, uninstalled %v, told %v", o, m.uninstalled, m.told)
	}
}
