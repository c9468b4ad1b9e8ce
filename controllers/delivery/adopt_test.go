// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"errors"
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/delivery/observed"
	"github.com/chandler-hub/chandler/internal/fluxstate"
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
			old := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: testCluster.Namespace, Name: "by-hand", Finalizers: []string{fluxFinalizer}}}
			old.Spec.Path, old.Spec.TargetNamespace = tc.path, tc.namespace
			old.Spec.KubeConfig = &meta.KubeConfigReference{SecretRef: &meta.SecretKeyReference{Name: testCluster.Name}}
			adopting := kustomizationAddon("app")
			adopting["adopt"] = map[string]any{"namespace": testCluster.Namespace, "name": "by-hand"}
			m := newFixture(t, append(addonsOf(testSet, "1", adopting),
				registered(testCluster, "c1"), kubeconfigSecret(testCluster, "t0"), deliveredTo(testCluster, testSet, "1"), old)...)
			m.settle()
			m.settle()
			err := m.api.Get(t.Context(), client.ObjectKeyFromObject(old), &kustomizev1.Kustomization{})
			if gone, made := err != nil, m.object(testCluster, "app") != nil; gone != tc.want || made != tc.want || len(m.uninstalled) > 0 {
				t.Errorf("the old one is gone: %t, the new one made: %t, want both %t; uninstalled %v; %+v", gone, made, tc.want, m.uninstalled, m.delivery(testCluster, testSet).Status.Addons)
			}
		})
	}
}

func byHand(change func(*helmv2.HelmRelease)) *helmv2.HelmRelease {
	old := &helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "by-hand", Finalizers: []string{fluxFinalizer}}}
	old.Spec = helmv2.HelmReleaseSpec{ChartRef: &helmv2.CrossNamespaceSourceReference{Kind: "OCIRepository", Name: "chart"}, ReleaseName: "app", TargetNamespace: "apps", StorageNamespace: "apps",
		KubeConfig: &meta.KubeConfigReference{SecretRef: &meta.SecretKeyReference{Name: testCluster.Name}}}
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

func adoptFixture(t *testing.T, old *helmv2.HelmRelease, addons ...map[string]any) *fixture {
	beside := kubeconfigSecret(testCluster, "t0")
	beside.Namespace = "flux-system"
	return newServedFixture(t, append(addonsOf(testSet, "1", addons...), old, beside)...)
}

// TestAdoptKeepsItsObject: an add-on goes on with the hand-written object beside its set, also if the hub dies in between. What others had in
// it is gone, with the marks by which they would prune it. One of another namespace changes hands.
func TestAdoptKeepsItsObject(t *testing.T) {
	for name, fails := range map[string]string{"AsItIs": "", "AfterTheSpec": "second", "BeforeTheLabels": "apply", "OfAnotherNamespace": ""} {
		t.Run(name, func(t *testing.T) {
			there := byHand(func(o *helmv2.HelmRelease) {
				o.UID, o.Spec.Timeout = "hand", &metav1.Duration{Duration: time.Hour}
				o.Labels = map[string]string{"kustomize.toolkit.fluxcd.io/name": "git", "team": "a"}
				o.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: "1"}}
				if name == "OfAnotherNamespace" {
					o.Namespace = testCluster.Namespace
				}
			})
			m := adoptFixture(t, there, adoptingAddonIn(there.Namespace, "app"))
			patches := 0
			m.failing = func(what string) (error, bool) {
				if what == "patch *unstructured.Unstructured" {
					patches++
				}
				if fails == "second" && patches == 2 || fails == "apply" && patches > 0 && strings.HasPrefix(what, "apply ") {
					m.failing = nil
					return errors.New("the hub is killed"), false
				}
				return nil, false
			}
			m.settle()
			m.settle()
			o, ok := m.object(testCluster, "app").(*helmv2.HelmRelease)
			if !ok || len(m.uninstalled) > 0 {
				t.Fatalf("there is %+v; uninstalled %v; %+v", o, m.uninstalled, m.delivery(testCluster, testSet).Status.Addons)
			}
			if s := m.delivery(testCluster, testSet).Status.Addons[0].State; s != hubv1.AddonReady {
				t.Errorf("its state is %s", s)
			}
			if name == "OfAnotherNamespace" {
				if o.UID == there.UID || o.Namespace == there.Namespace || len(m.released) != 1 {
					t.Errorf("it is %s/%s, and orphaned is %v", o.Namespace, o.Name, m.released)
				}
				return
			}
			if o.UID != there.UID || o.Name != there.Name || o.Spec.Suspend || len(m.released) > 0 {
				t.Errorf("it is %s %s, suspended %t; orphaned %v", o.UID, o.Name, o.Spec.Suspend, m.released)
			}
			if latest := o.Status.History.Latest(); latest == nil || latest.Digest != "sha256:d" {
				t.Errorf("its history is %v", o.Status.History)
			}
			if o.Spec.Timeout != nil || o.Labels["kustomize.toolkit.fluxcd.io/name"] != "" || o.Labels["team"] != "a" || len(o.OwnerReferences) > 0 {
				t.Errorf("it keeps timeout %v, labels %v, owners %v", o.Spec.Timeout, o.Labels, o.OwnerReferences)
			}
		})
	}
}

// TestAdoptTakesTheKeyThatFluxTakes: a kubeConfig without a key is that of value, and of value.yaml if there is no value.
func TestAdoptTakesTheKeyThatFluxTakes(t *testing.T) {
	here := string(testKubeconfig("t0"))
	elsewhere := strings.ReplaceAll(here, "192.0.2.7", "192.0.2.8")
	if elsewhere == here {
		t.Fatal("the kubeconfig has another form")
	}
	for name, tc := range map[string]struct {
		key  string
		data map[string]string
		want bool
	}{
		"Value":              {"", map[string]string{"value": here}, true},
		"ValueYAML":          {"", map[string]string{"value.yaml": here}, true},
		"ValueFirst":         {"", map[string]string{"value": elsewhere, "value.yaml": here}, false},
		"ValueBeforeTheRest": {"", map[string]string{"value": here, "value.yaml": elsewhere}, true},
		"EmptyValue":         {"", map[string]string{"value": "", "value.yaml": here}, false},
		"NeitherOfThem":      {"", map[string]string{"kubeconfig": here}, false},
		"Named":              {"kubeconfig", map[string]string{"kubeconfig": here, "value": elsewhere}, true},
		"NamedAndNotThere":   {"kubeconfig", map[string]string{"value": here}, false},
	} {
		t.Run(name, func(t *testing.T) {
			old := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: testCluster.Namespace, Name: "by-hand", Finalizers: []string{fluxFinalizer}}}
			old.Spec.Path = "./app"
			old.Spec.KubeConfig = &meta.KubeConfigReference{SecretRef: &meta.SecretKeyReference{Name: "by-hand", Key: tc.key}}
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: testCluster.Namespace, Name: "by-hand"}, Data: map[string][]byte{}}
			for k, v := range tc.data {
				secret.Data[k] = []byte(v)
			}
			adopting := kustomizationAddon("app")
			adopting["adopt"] = map[string]any{"namespace": testCluster.Namespace, "name": "by-hand"}
			m := newFixture(t, append(addonsOf(testSet, "1", adopting),
				registered(testCluster, "c1"), kubeconfigSecret(testCluster, "t0"), deliveredTo(testCluster, testSet, "1"), old, secret)...)
			m.settle()
			m.settle()
			err := m.api.Get(t.Context(), client.ObjectKeyFromObject(old), &kustomizev1.Kustomization{})
			if gone := err != nil; gone != tc.want {
				t.Errorf("it is adopted: %t; %+v", gone, m.delivery(testCluster, testSet).Status.Addons)
			}
		})
	}
}

// TestAdoptRefusedIsLookedAtAgain: nothing tells the hub that a hand-written Kustomization, or the Secret beside it, has been mended.
func TestAdoptRefusedIsLookedAtAgain(t *testing.T) {
	old := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: testCluster.Namespace, Name: "by-hand", Finalizers: []string{fluxFinalizer}}}
	old.Spec.Path = "./app"
	old.Spec.KubeConfig = &meta.KubeConfigReference{SecretRef: &meta.SecretKeyReference{Name: "missing"}}
	adopting := kustomizationAddon("app")
	adopting["adopt"] = map[string]any{"namespace": testCluster.Namespace, "name": "by-hand"}
	m := newServedFixture(t, append(addonsOf(testSet, "1", adopting), old)...)
	m.settle()
	if a := m.delivery(testCluster, testSet).Status.Addons[0]; a.State != hubv1.AddonFailed || !strings.Contains(a.Message, "does not exist") {
		t.Fatalf("it is %s: %s", a.State, a.Message)
	}
	result, err := m.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: testCluster})
	if err != nil || result.RequeueAfter != observed.RetryFailed {
		t.Errorf("it is looked at again after %s, want %s; %v", result.RequeueAfter, observed.RetryFailed, err)
	}
}

// TestAdoptNotYetMoved: a hand-written HelmRelease whose release has another name or place since, and Flux has not moved it yet, is taken over when Flux has.
// What is still installed would be left on the cluster otherwise, and nobody would say so.
func TestAdoptNotYetMoved(t *testing.T) {
	for name, change := range map[string]func(*helmv2.HelmRelease){
		"OfAnother":       func(o *helmv2.HelmRelease) { o.Status.History[0].Name = "another" },
		"Elsewhere":       func(o *helmv2.HelmRelease) { o.Status.History[0].Namespace = "another" },
		"RecordedAsOther": func(o *helmv2.HelmRelease) { o.Status.StorageNamespace = "another" },
	} {
		t.Run(name, func(t *testing.T) {
			old := byHand(change)
			m := newServedFixture(t, append(addonsOf(testSet, "1", adoptingAddonIn(old.Namespace, "app")), old)...)
			m.quietly(func() {
				beside := kubeconfigSecret(testCluster, "t0")
				beside.Namespace = old.Namespace
				m.must(m.api.Create(t.Context(), beside))
			})
			m.settle()
			there := &helmv2.HelmRelease{}
			m.must(m.api.Get(t.Context(), client.ObjectKeyFromObject(old), there))
			if a := m.delivery(testCluster, testSet).Status.Addons[0]; there.Spec.Suspend || len(m.released) > 0 || !strings.Contains(a.Message, "another") {
				t.Fatalf("suspended: %t; released: %v; it is %s: %s", there.Spec.Suspend, m.released, a.State, a.Message)
			}
			edit(m, old.Namespace, old.Name, &helmv2.HelmRelease{}, func(o *helmv2.HelmRelease) { o.Status = byHand(nil).Status })
			m.settle()
			if a := m.delivery(testCluster, testSet).Status.Addons[0]; m.object(testCluster, "app") == nil || a.State != hubv1.AddonReady || len(m.uninstalled) > 0 {
				t.Errorf("Flux has moved it, and it is %s: %s; uninstalled: %v", a.State, a.Message, m.uninstalled)
			}
		})
	}
}

// TestAdoptTakesNoReleaseOfTheHub: whoever may write a HelmRelease that a set adopts chooses its release. With that of another add-on, its workload would become
// another chart's, if the set has the higher priority. A tenant's add-on of that release keeps the platform from nothing.
func TestAdoptTakesNoReleaseOfTheHub(t *testing.T) {
	for name, tc := range map[string]struct {
		namespace string // of the set whose add-on has the release
		adopted   bool
	}{"AnotherPlatformSets": {"flux-system", false}, "ATenants": {testCluster.Namespace, true}} {
		t.Run(name, func(t *testing.T) {
			objects := addonsOf(testSet, "1", releaseAddon("web"))
			delivery := deliveredTo(testCluster, testSet, "1")
			for _, o := range append(objects, delivery) {
				o.SetNamespace(tc.namespace)
			}
			m := newFixture(t, append(objects, delivery, registered(testCluster, "c1"), kubeconfigSecret(testCluster, "t0"))...)
			m.settle()
			web := m.object(testCluster, "web").(*helmv2.HelmRelease)
			old := byHand(func(o *helmv2.HelmRelease) {
				o.Namespace, o.Status = "tenants", helmv2.HelmReleaseStatus{}
				o.Spec.ReleaseName, o.Spec.TargetNamespace, o.Spec.StorageNamespace = web.Spec.ReleaseName, web.Spec.TargetNamespace, web.Spec.StorageNamespace
			})
			own := kubeconfigSecret(testCluster, "no-credential")
			own.Namespace = old.Namespace
			m.quietly(func() {
				for _, o := range append(addonsOf("extra", "1", adoptingAddonIn("tenants", "app")), old, own) {
					if set, ok := o.(*hubv1.AddonSet); ok {
						set.Spec.Priority = 10
					}
					m.must(m.api.Create(t.Context(), o))
				}
				m.must(m.api.Create(t.Context(), deliveredTo(testCluster, "extra", "1")))
			})
			m.settle()
			m.settle()
			a := m.delivery(testCluster, "extra").Status.Addons[0]
			if stays := m.object(testCluster, "web") != nil; stays == tc.adopted || (m.object(testCluster, "app") != nil) != tc.adopted {
				t.Errorf("the add-on that has the release stays: %t; the other one is %s: %s", stays, a.State, a.Message)
			}
			if !tc.adopted && (a.State != hubv1.AddonFailed || !strings.Contains(a.Message, `which add-on "web" of AddonSet flux-system/base delivers here`)) {
				t.Errorf("it is %s: %s", a.State, a.Message)
			}
		})
	}
}

// TestAdoptDropsTheChart: the HelmChart of a hand-written HelmRelease goes with it, also if the first try fails: Flux leaves it behind, and fetches it for ever.
func TestAdoptDropsTheChart(t *testing.T) {
	for name, fault := range map[string]bool{"AtOnce": false, "AfterAFault": true} {
		t.Run(name, func(t *testing.T) {
			old := byHand(func(o *helmv2.HelmRelease) {
				o.Namespace, o.Status.HelmChart = testCluster.Namespace, testCluster.Namespace+"/by-hand"
			})
			chart := &sourcev1.HelmChart{ObjectMeta: metav1.ObjectMeta{Namespace: testCluster.Namespace, Name: "by-hand", Labels: map[string]string{
				"helm.toolkit.fluxcd.io/name": old.Name, "helm.toolkit.fluxcd.io/namespace": old.Namespace,
			}}}
			m := adoptFixture(t, old, adoptingAddonIn(testCluster.Namespace, "app"))
			m.quietly(func() { m.must(m.api.Create(t.Context(), chart)) })
			if fault {
				m.failing = func(what string) (error, bool) {
					if what != "delete *v1.HelmChart" {
						return nil, false
					}
					m.failing = nil
					return errors.New("a fault"), false
				}
			}
			m.settle()
			m.settle()
			if a := m.delivery(testCluster, testSet).Status.Addons[0]; a.State != hubv1.AddonReady || m.failing != nil {
				t.Fatalf("it is %s: %s", a.State, a.Message)
			}
			if err := m.api.Get(t.Context(), client.ObjectKeyFromObject(chart), &sourcev1.HelmChart{}); !apierrors.IsNotFound(err) {
				t.Errorf("the chart is still there: %v", err)
			}
		})
	}
}

// TestAdoptTakenBack: a hand-written object that was suspended to be handed over, and could not be deleted, works on: nobody else would resume it if its
// AddonSet does not adopt it any more.
func TestAdoptTakenBack(t *testing.T) {
	for name, effect := range map[string]bool{"Refused": false, "AnswerLost": true} {
		t.Run(name, func(t *testing.T) {
			old, refused := byHand(func(o *helmv2.HelmRelease) { o.Namespace = testCluster.Namespace }), 0
			m := adoptFixture(t, old, adoptingAddonIn(testCluster.Namespace, "app"))
			m.failing = func(what string) (error, bool) {
				if what != "delete *v2.HelmRelease" {
					return nil, false
				}
				refused++
				return errors.New("a policy refuses that"), effect
			}
			for range 5 {
				if err := m.reconcile(testCluster); refused > 0 && err != nil {
					break
				}
			}
			is := &helmv2.HelmRelease{}
			if err := m.api.Get(t.Context(), client.ObjectKeyFromObject(old), is); err != nil || refused == 0 {
				t.Fatalf("it was to be deleted %d times: %v", refused, err)
			}
			if goes := is.DeletionTimestamp != nil; goes != effect || is.Spec.Suspend != effect {
				t.Errorf("it is being deleted: %t, and suspended: %t, want both %t", goes, is.Spec.Suspend, effect)
			}
			m.failing = nil
			m.settle()
			if a := m.delivery(testCluster, testSet).Status.Addons[0]; a.State != hubv1.AddonReady || len(m.uninstalled) > 0 {
				t.Errorf("it is %s: %s; uninstalled: %v", a.State, a.Message, m.uninstalled)
			}
		})
	}
}

// TestAdoptSuspended: what somebody has suspended stays so, and is not taken over before he resumes it. What the hub has suspended itself, to hand it over, before
// it died, goes on.
func TestAdoptSuspended(t *testing.T) {
	for name, ours := range map[string]bool{"BySomebody": false, "ByAHubThatDied": true} {
		t.Run(name, func(t *testing.T) {
			old := byHand(func(o *helmv2.HelmRelease) {
				o.Namespace = testCluster.Namespace
				if o.Spec.Suspend = true; ours {
					o.Annotations = map[string]string{hubv1.SuspendedAnnotation: hubv1.TakenOverSuspension}
				}
			})
			m := adoptFixture(t, old, adoptingAddonIn(testCluster.Namespace, "app"))
			m.settle()
			m.settle()
			a, is := m.delivery(testCluster, testSet).Status.Addons[0], &helmv2.HelmRelease{}
			gone := m.api.Get(t.Context(), client.ObjectKeyFromObject(old), is) != nil
			if gone != ours || !ours && (!is.Spec.Suspend || a.State != hubv1.AddonFailed || !strings.Contains(a.Message, "is suspended")) {
				t.Fatalf("it is gone: %t, want %t, and suspended: %t; %s: %s", gone, ours, is.Spec.Suspend, a.State, a.Message)
			}
			if !ours {
				edit(m, old.Namespace, old.Name, &helmv2.HelmRelease{}, func(o *helmv2.HelmRelease) { o.Spec.Suspend = false })
				m.settle()
				m.settle()
			}
			if a := m.delivery(testCluster, testSet).Status.Addons[0]; a.State != hubv1.AddonReady || len(m.uninstalled) > 0 {
				t.Errorf("it is %s: %s; uninstalled: %v", a.State, a.Message, m.uninstalled)
			}
		})
	}
}

// TestAdoptFromATeam: a platform set takes over what somebody wrote by hand in the namespace of a Team that has the cluster too. Otherwise both objects would
// have the release.
func TestAdoptFromATeam(t *testing.T) {
	old := byHand(func(o *helmv2.HelmRelease) { o.Namespace = teamNamespace })
	beside := kubeconfigSecret(testCluster, "t0")
	beside.Namespace = teamNamespace
	m := teamFixture(t, true)
	m.settle()
	m.quietly(func() {
		for _, o := range append(addonsOf("extra", "1", adoptingAddonIn(teamNamespace, "app")), old, beside) {
			m.must(m.api.Create(t.Context(), o))
		}
		m.must(m.api.Create(t.Context(), deliveredTo(testCluster, "extra", "1")))
	})
	for range 20 {
		m.must(m.reconcile(testCluster))
		gone := m.api.Get(t.Context(), client.ObjectKeyFromObject(old), &helmv2.HelmRelease{}) != nil
		if !gone && m.object(testCluster, "app") != nil {
			t.Fatal("two objects have the release")
		}
		m.flux()
	}
	if a := m.delivery(testCluster, "extra").Status.Addons[0]; m.object(testCluster, "app") == nil || a.State != hubv1.AddonReady || len(m.uninstalled) > 0 {
		t.Errorf("it is %s: %s; uninstalled: %v", a.State, a.Message, m.uninstalled)
	}
}

// TestAdoptBeforeTheClusterAnswers: which cluster a registration is for is known when it has answered. Until then an add-on that adopts waits, like any other: it
// has not failed.
func TestAdoptBeforeTheClusterAnswers(t *testing.T) {
	old := byHand(func(o *helmv2.HelmRelease) { o.Spec.ReleaseName, o.Status.History[0].Name = "legacy", "legacy" })
	beside := kubeconfigSecret(testCluster, "t0")
	beside.Namespace = "flux-system"
	reg := registered(testCluster, "c1")
	answered := reg.Status
	reg.Status = hubv1.ClusterRegistrationStatus{}
	m := newFixture(t, append(addonsOf(testSet, "1", adoptingAddon("app")), old, beside, reg, kubeconfigSecret(testCluster, "t0"), deliveredTo(testCluster, testSet, "1"))...)
	m.settle()
	if a := m.delivery(testCluster, testSet).Status.Addons[0]; a.State != hubv1.AddonWaitingForCluster || len(m.released) > 0 {
		t.Errorf("it is %s: %s; released: %v", a.State, a.Message, m.released)
	}
	edit(m, reg.Namespace, reg.Name, &hubv1.ClusterRegistration{}, func(r *hubv1.ClusterRegistration) { r.Status = answered })
	m.settle()
	m.settle()
	a := m.delivery(testCluster, testSet).Status.Addons[0]
	if o, ok := m.object(testCluster, "app").(*helmv2.HelmRelease); !ok || o.Spec.ReleaseName != "legacy" || a.State != hubv1.AddonReady || len(m.uninstalled) > 0 {
		t.Errorf("it is %s: %s; uninstalled: %v", a.State, a.Message, m.uninstalled)
	}
}

// TestAdoptNotYetApplied: a hand-written Kustomization that has changed since Flux applied it is taken over when Flux has applied that. Flux prunes what only the
// former folder has then, and nobody else would: the new one does not know of it.
func TestAdoptNotYetApplied(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*kustomizev1.Kustomization)
		want   bool // at once
	}{
		"ChangedSince": {func(*kustomizev1.Kustomization) {}, false},
		"SaysReady": {func(k *kustomizev1.Kustomization) {
			k.Status.Conditions = []metav1.Condition{{Type: hubv1.ReadyCondition, Status: metav1.ConditionTrue, Reason: "Succeeded", ObservedGeneration: 1}}
		}, false},
		"Applied":        {func(k *kustomizev1.Kustomization) { k.Status.ObservedGeneration = 2 }, true},
		"NothingApplied": {func(k *kustomizev1.Kustomization) { k.Status = kustomizev1.KustomizationStatus{} }, true},
		"Suspended":      {func(k *kustomizev1.Kustomization) { k.Spec.Suspend = true }, false}, // which is a change as well
		"SuspendedByTheHub": {func(k *kustomizev1.Kustomization) {
			k.Spec.Suspend, k.Annotations = true, map[string]string{hubv1.SuspendedAnnotation: hubv1.TakenOverSuspension}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			old := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: testCluster.Namespace, Name: "by-hand", Finalizers: []string{fluxFinalizer}, Generation: 2}}
			old.Spec.Path = "./app"
			old.Spec.KubeConfig = &meta.KubeConfigReference{SecretRef: &meta.SecretKeyReference{Name: testCluster.Name}}
			old.Status = kustomizev1.KustomizationStatus{ObservedGeneration: 1, LastAppliedRevision: "main@sha1:1",
				Inventory: &kustomizev1.ResourceInventory{Entries: []kustomizev1.ResourceRef{{ID: "default_former__ConfigMap"}}}}
			tc.change(old)
			adopting := kustomizationAddon("app")
			adopting["adopt"] = map[string]any{"namespace": testCluster.Namespace, "name": "by-hand"}
			m := newServedFixture(t, append(addonsOf(testSet, "1", adopting), old)...)
			m.busy = true
			m.settle()
			there := &kustomizev1.Kustomization{}
			if gone := m.api.Get(t.Context(), client.ObjectKeyFromObject(old), there) != nil; gone != tc.want {
				a := m.delivery(testCluster, testSet).Status.Addons[0]
				t.Fatalf("it is gone: %t, want %t; suspended: %t; %s: %s", gone, tc.want, there.Spec.Suspend, a.State, a.Message)
			}
			if !tc.want {
				edit(m, old.Namespace, old.Name, &kustomizev1.Kustomization{}, func(k *kustomizev1.Kustomization) {
					k.Status.ObservedGeneration, k.Status.Conditions, k.Spec.Suspend = 2, nil, false
				})
			}
			m.busy = false
			m.settle()
			m.settle()
			if a := m.delivery(testCluster, testSet).Status.Addons[0]; m.object(testCluster, "app") == nil || a.State != hubv1.AddonReady || len(m.uninstalled) > 0 {
				t.Errorf("Flux has applied it, and it is %s: %s; uninstalled: %v", a.State, a.Message, m.uninstalled)
			}
		})
	}
}
