// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"errors"
	"fmt"
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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/delivery/observed"
	"github.com/chandler-hub/chandler/internal/fluxstate"
)

// byHand is a HelmRelease that a user has written for testCluster.
func byHand(change func(*helmv2.HelmRelease)) *helmv2.HelmRelease {
	old := &helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "by-hand", Finalizers: []string{fluxFinalizer}}}
	old.Spec = helmv2.HelmReleaseSpec{ChartRef: &helmv2.CrossNamespaceSourceReference{Kind: "OCIRepository", Name: "chart"},
		ReleaseName: "app", TargetNamespace: "apps", StorageNamespace: "apps",
		KubeConfig: &meta.KubeConfigReference{SecretRef: &meta.SecretKeyReference{Name: testCluster.Name}}}
	old.Status = helmv2.HelmReleaseStatus{StorageNamespace: "apps",
		Conditions: []metav1.Condition{{Type: fluxstate.Released, Status: metav1.ConditionTrue,
			Reason: helmv2.InstallSucceededReason}},
		ObservedPostRenderersDigest: "sha256:p",
		History: helmv2.Snapshots{{Name: "app", Namespace: "apps", Version: 3, APIVersion: helmv2.CurrentSnapshotAPIVersion,
			Digest: "sha256:d", ChartName: "chart-of-chart", ChartVersion: "1.0.0"}}}
	if change != nil {
		change(old)
	}
	return old
}

// adoptingAddon is add-on app, which adopts what a user has written in a namespace.
func adoptingAddon(namespace string) map[string]any {
	a := releaseAddon("app")
	a["adopt"] = map[string]any{"namespace": namespace, "name": "by-hand"}
	return a
}

// adoptFixture is a fixture with a hand-written HelmRelease that add-on app adopts.
func adoptFixture(t *testing.T, old *helmv2.HelmRelease, more ...client.Object) *fixture {
	objects := append(addonsOf(testSet, "1", adoptingAddon(old.Namespace)), old)
	if old.Namespace != testCluster.Namespace {
		objects = append(objects, kubeconfigBeside(old.Namespace))
	}
	return newServedFixture(t, append(objects, more...)...)
}

// adoptKustomizationFixture is a fixture with a hand-written Kustomization that add-on app adopts.
func adoptKustomizationFixture(t *testing.T, change func(*kustomizev1.Kustomization), more ...client.Object) *fixture {
	old := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: testCluster.Namespace, Name: "by-hand",
		Finalizers: []string{fluxFinalizer}}}
	old.Spec.Path = "./app"
	old.Spec.KubeConfig = &meta.KubeConfigReference{SecretRef: &meta.SecretKeyReference{Name: testCluster.Name}}
	change(old)
	adopting := kustomizationAddon("app")
	adopting["adopt"] = map[string]any{"namespace": old.Namespace, "name": old.Name}
	return newServedFixture(t, append(append(addonsOf(testSet, "1", adopting), old), more...)...)
}

// handWritten returns the Kustomization that add-on app adopts, nil if it is gone.
func (m *fixture) handWritten() *kustomizev1.Kustomization {
	return find(m, testCluster.Namespace, "by-hand", &kustomizev1.Kustomization{})
}

// TestAdoptKustomization: a hand-written Kustomization goes over to an add-on that applies the same folder to the same place. The hub
// leaves any other Kustomization alone: its successor would not know of what it has applied.
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
			m := adoptKustomizationFixture(t, func(k *kustomizev1.Kustomization) { k.Spec.Path, k.Spec.TargetNamespace = tc.path, tc.namespace })
			m.settle()
			m.settle()
			if gone, made := m.handWritten() == nil, m.object("app") != nil; gone != tc.want || made != tc.want || len(m.uninstalled) > 0 {
				t.Errorf("the old one is gone: %t, the new one made: %t; uninstalled %v; %+v", gone, made, m.uninstalled, m.firstAddon())
			}
		})
	}
}

// TestAdoptReadsTheKubeconfigThatFluxReads: without a key in kubeConfig, Flux takes key value of the Secret, and value.yaml if there is no
// value.
func TestAdoptReadsTheKubeconfigThatFluxReads(t *testing.T) {
	here := string(testKubeconfig("t0"))
	elsewhere := strings.ReplaceAll(here, "192.0.2.7", "192.0.2.8")
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
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: testCluster.Namespace, Name: "by-hand"}, Data: map[string][]byte{}}
			for k, v := range tc.data {
				secret.Data[k] = []byte(v)
			}
			m := adoptKustomizationFixture(t, func(k *kustomizev1.Kustomization) {
				*k.Spec.KubeConfig.SecretRef = meta.SecretKeyReference{Name: "by-hand", Key: tc.key}
			}, secret)
			m.settle()
			m.settle()
			if gone := m.handWritten() == nil; gone != tc.want {
				t.Errorf("it is adopted: %t; %+v", gone, m.firstAddon())
			}
		})
	}
}

// TestAdoptLooksAgainAfterARefusal: no event tells the hub that a user has mended a hand-written Kustomization, or the Secret beside it.
func TestAdoptLooksAgainAfterARefusal(t *testing.T) {
	m := adoptKustomizationFixture(t, func(k *kustomizev1.Kustomization) { k.Spec.KubeConfig.SecretRef.Name = "missing" })
	m.settle()
	if a := m.firstAddon(); a.State != hubv1.AddonFailed || !strings.Contains(a.Message, "does not exist") {
		t.Fatalf("it is %s: %s", a.State, a.Message)
	}
	if after := m.again(); after != observed.RetryFailed {
		t.Errorf("it is looked at again after %s, want %s", after, observed.RetryFailed)
	}
}

// TestAdoptKustomizationWaitsForFlux: the hub takes a hand-written Kustomization over when Flux has applied its last change. Flux then
// prunes what only the former folder has. The new Kustomization does not know of that, so nothing else would.
func TestAdoptKustomizationWaitsForFlux(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*kustomizev1.Kustomization)
		want   bool // at once
	}{
		"ChangedSince": {func(*kustomizev1.Kustomization) {}, false},
		"SaysReady": {func(k *kustomizev1.Kustomization) {
			k.Status.Conditions = []metav1.Condition{readyCondition(metav1.ConditionTrue, "Succeeded", "", 1)}
		}, false},
		"Applied":        {func(k *kustomizev1.Kustomization) { k.Status.ObservedGeneration = 2 }, true},
		"NothingApplied": {func(k *kustomizev1.Kustomization) { k.Status = kustomizev1.KustomizationStatus{} }, true},
		"Suspended":      {func(k *kustomizev1.Kustomization) { k.Spec.Suspend = true }, false}, // which is a change as well
		"SuspendedByTheHub": {func(k *kustomizev1.Kustomization) {
			k.Spec.Suspend, k.Annotations = true, map[string]string{hubv1.SuspendedAnnotation: hubv1.TakenOverSuspension}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			m := adoptKustomizationFixture(t, func(k *kustomizev1.Kustomization) {
				k.Generation = 2
				k.Status = kustomizev1.KustomizationStatus{ObservedGeneration: 1, LastAppliedRevision: "main@sha1:1",
					Inventory: &kustomizev1.ResourceInventory{Entries: []kustomizev1.ResourceRef{{ID: "default_former__ConfigMap"}}}}
				tc.change(k)
			})
			m.busy = true
			m.settle()
			if gone := m.handWritten() == nil; gone != tc.want {
				t.Fatalf("it is gone: %t, want %t; %+v", gone, tc.want, m.firstAddon())
			}
			if !tc.want {
				edit(m, testCluster.Namespace, "by-hand", &kustomizev1.Kustomization{}, func(k *kustomizev1.Kustomization) {
					k.Status.ObservedGeneration, k.Status.Conditions, k.Spec.Suspend = 2, nil, false
				})
			}
			m.busy = false
			m.settle()
			m.settle()
			m.wantReady("app")
		})
	}
}

// TestAdoptKeepsTheObject: an add-on goes on with the hand-written HelmRelease beside its set, also if the hub dies in between. What other
// tools had in it is gone, with the marks by which they would prune it. A HelmRelease of another namespace is orphaned, and the add-on gets
// a new one.
func TestAdoptKeepsTheObject(t *testing.T) {
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
			m := adoptFixture(t, there)
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
			m.wantReady("app")
			o := m.release("app")
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

// TestAdoptReleaseWaits: the hub takes a hand-written HelmRelease over when Flux has moved it to the release that its spec names, and when
// the user who has suspended it resumes it. Otherwise what is still installed would be left on the cluster, and nothing would say so.
func TestAdoptReleaseWaits(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*helmv2.HelmRelease)
		says   string
	}{
		"ReleaseOfAnotherName": {func(o *helmv2.HelmRelease) { o.Status.History[0].Name = "another" }, "another"},
		"ReleaseElsewhere":     {func(o *helmv2.HelmRelease) { o.Status.History[0].Namespace = "another" }, "another"},
		"RecordedInAnother":    {func(o *helmv2.HelmRelease) { o.Status.StorageNamespace = "another" }, "another"},
		"SuspendedByAUser":     {func(o *helmv2.HelmRelease) { o.Spec.Suspend = true }, "is suspended"},
		"SuspendedByAHubThatDied": {func(o *helmv2.HelmRelease) {
			o.Spec.Suspend, o.Annotations = true, map[string]string{hubv1.SuspendedAnnotation: hubv1.TakenOverSuspension}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			old := byHand(func(o *helmv2.HelmRelease) { o.Namespace = testCluster.Namespace; tc.change(o) })
			suspended := old.Spec.Suspend
			m := adoptFixture(t, old)
			m.settle()
			m.settle()
			there, a := reread(m, old), m.firstAddon()
			if (there == nil) != (tc.says == "") {
				t.Fatalf("the old one is gone: %t; it is %s: %s", there == nil, a.State, a.Message)
			}
			if there != nil {
				if there.Spec.Suspend != suspended || len(m.released) > 0 || !strings.Contains(a.Message, tc.says) {
					t.Fatalf("suspended: %t; released: %v; it is %s: %s", there.Spec.Suspend, m.released, a.State, a.Message)
				}
				edit(m, old.Namespace, old.Name, &helmv2.HelmRelease{},
					func(o *helmv2.HelmRelease) { o.Status, o.Spec.Suspend = byHand(nil).Status, false })
				m.settle()
				m.settle()
			}
			m.wantReady("app")
		})
	}
}

// TestAdoptTakesNoReleaseOfTheHub: whoever may write a HelmRelease that a set adopts chooses its release. With the release of another
// add-on, the workload of that add-on would become another chart's, if the set has the higher priority. A tenant's add-on does not keep the
// platform off.
func TestAdoptTakesNoReleaseOfTheHub(t *testing.T) {
	for name, tc := range map[string]struct {
		namespace string // of the set whose add-on has the release
		adopted   bool
	}{"AnotherPlatformSets": {"flux-system", false}, "ATenants": {testCluster.Namespace, true}} {
		t.Run(name, func(t *testing.T) {
			objects := inNamespace(tc.namespace, delivered(testSet, releaseAddon("web")))
			m := newFixture(t, append(objects, registered(testCluster, "c1"), kubeconfigSecret(testCluster, "t0"))...)
			m.settle()
			web := m.release("web").Spec
			old := byHand(func(o *helmv2.HelmRelease) {
				o.Namespace, o.Status = "tenants", helmv2.HelmReleaseStatus{}
				o.Spec.ReleaseName, o.Spec.TargetNamespace, o.Spec.StorageNamespace = web.ReleaseName, web.TargetNamespace, web.StorageNamespace
			})
			extra := delivered("extra", adoptingAddon("tenants"))
			extra[0].(*hubv1.AddonSet).Spec.Priority = 10
			own := kubeconfigSecret(testCluster, "no-credential")
			own.Namespace = old.Namespace
			m.create(append(extra, old, own)...)
			m.settle()
			m.settle()
			a := m.says("extra", "app")
			if stays := m.object("web") != nil; stays == tc.adopted || (m.object("app") != nil) != tc.adopted {
				t.Errorf("the add-on that has the release stays: %t; the other one is %s: %s", stays, a.State, a.Message)
			}
			const want = `which add-on "web" of AddonSet flux-system/base delivers here`
			if !tc.adopted && (a.State != hubv1.AddonFailed || !strings.Contains(a.Message, want)) {
				t.Errorf("it is %s: %s", a.State, a.Message)
			}
		})
	}
}

// TestAdoptDropsTheChart: the HelmChart of a hand-written HelmRelease goes with it, also if the first try fails. Flux leaves the HelmChart
// behind, and fetches it for ever.
func TestAdoptDropsTheChart(t *testing.T) {
	for name, fault := range map[string]bool{"AtOnce": false, "AfterAFault": true} {
		t.Run(name, func(t *testing.T) {
			old := byHand(func(o *helmv2.HelmRelease) {
				o.Namespace, o.Status.HelmChart = testCluster.Namespace, testCluster.Namespace+"/by-hand"
			})
			chart := &sourcev1.HelmChart{ObjectMeta: metav1.ObjectMeta{Namespace: testCluster.Namespace, Name: "by-hand", Labels: map[string]string{
				"helm.toolkit.fluxcd.io/name": old.Name, "helm.toolkit.fluxcd.io/namespace": old.Namespace,
			}}}
			m := adoptFixture(t, old, chart)
			deleted := m.onWrite("delete *v1.HelmChart", func() error {
				if fault {
					return errors.New("a fault")
				}
				return nil
			})
			m.settle()
			m.settle()
			m.wantReady("app")
			if reread(m, chart) != nil || !*deleted {
				t.Errorf("the chart is still there: %t; it was to be deleted: %t", reread(m, chart) != nil, *deleted)
			}
		})
	}
}

// TestAdoptThatFailsResumes: a hand-written HelmRelease that the hub has suspended to hand it over, and could not delete, works on. Nothing
// else would resume it if its AddonSet does not adopt it any more.
func TestAdoptThatFailsResumes(t *testing.T) {
	for name, effect := range map[string]bool{"Refused": false, "AnswerLost": true} {
		t.Run(name, func(t *testing.T) {
			old, refused := byHand(func(o *helmv2.HelmRelease) { o.Namespace = testCluster.Namespace }), 0
			m := adoptFixture(t, old)
			m.failing = func(what string) (error, bool) {
				if what != "delete *v2.HelmRelease" {
					return nil, false
				}
				refused++
				return errors.New("a policy refuses that"), effect
			}
			for range 5 {
				if err := m.reconcile(); refused > 0 && err != nil {
					break
				}
			}
			is := reread(m, old)
			if is == nil || refused == 0 {
				t.Fatalf("it was to be deleted %d times", refused)
			}
			if goes := is.DeletionTimestamp != nil; goes != effect || is.Spec.Suspend != effect {
				t.Errorf("it is being deleted: %t, and suspended: %t, want both %t", goes, is.Spec.Suspend, effect)
			}
			m.failing = nil
			m.settle()
			m.wantReady("app")
		})
	}
}

// TestAdoptAsFluxWritesItsStatus: Flux answers the suspension of a hand-written Kustomization with a write to its status, and the deletion,
// which names the version that was suspended, is refused. The hub deletes the Kustomization at once all the same, but not if its spec has
// changed: a user may have resumed it.
func TestAdoptAsFluxWritesItsStatus(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*kustomizev1.Kustomization)
		want   bool
	}{
		"Status": {func(k *kustomizev1.Kustomization) { k.Status.ObservedGeneration = k.Generation }, true},
		"Spec":   {func(k *kustomizev1.Kustomization) { k.Spec.Suspend, k.Generation = false, k.Generation+1 }, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := adoptKustomizationFixture(t, func(k *kustomizev1.Kustomization) { k.Generation = 2 })
			m.busy = true
			came := m.onWrite("delete *v1.Kustomization", func() error {
				edit(m, testCluster.Namespace, "by-hand", &kustomizev1.Kustomization{}, tc.change)
				return apierrors.NewConflict(schema.GroupResource{Resource: "kustomizations"}, "by-hand", errors.New("it has changed"))
			})
			m.must(m.reconcile())
			k := m.handWritten()
			if goes := k == nil || k.DeletionTimestamp != nil; !*came || goes != tc.want {
				t.Errorf("a deletion came: %t, and it goes: %t, want %t", *came, goes, tc.want)
			}
		})
	}
}

// TestAdoptFromATeam: a platform set takes a hand-written HelmRelease over that lies in the namespace of a Team which has the cluster too.
// At no time do two objects have the release.
func TestAdoptFromATeam(t *testing.T) {
	old := byHand(func(o *helmv2.HelmRelease) { o.Namespace = teamNamespace })
	m := teamFixture(t, true)
	m.settle()
	m.create(append(delivered(testSet, adoptingAddon(teamNamespace)), old, kubeconfigBeside(teamNamespace))...)
	for range 20 {
		m.must(m.reconcile())
		if reread(m, old) != nil && m.object("app") != nil {
			t.Fatal("two objects have the release")
		}
		m.flux()
	}
	m.wantReady("app")
}

// TestAdoptBeforeTheClusterAnswers: the hub knows which cluster a registration is for when the cluster has answered. Until then an add-on
// that adopts waits, like any other, and has not failed.
func TestAdoptBeforeTheClusterAnswers(t *testing.T) {
	old := byHand(func(o *helmv2.HelmRelease) { o.Spec.ReleaseName, o.Status.History[0].Name = "legacy", "legacy" })
	m := adoptFixture(t, old)
	answered := registered(testCluster, "c1").Status
	m.editRegistration(func(r *hubv1.ClusterRegistration) { r.Status = hubv1.ClusterRegistrationStatus{} })
	m.settle()
	if a := m.firstAddon(); a.State != hubv1.AddonWaitingForCluster || len(m.released) > 0 {
		t.Errorf("it is %s: %s; released: %v", a.State, a.Message, m.released)
	}
	m.editRegistration(func(r *hubv1.ClusterRegistration) { r.Status = answered })
	m.settle()
	m.settle()
	m.wantReady("app")
	if name := m.release("app").Spec.ReleaseName; name != "legacy" {
		t.Errorf("its release is %s", name)
	}
}

// strictNames refuses names as the real client does, before it sends anything (client-go/rest/request.go). The fake client says NotFound.
type strictNames struct{ client.Reader }

func (c strictNames) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if msgs := rest.IsValidPathSegmentName(key.Name); len(msgs) != 0 {
		return fmt.Errorf("invalid resource name %q: %v", key.Name, msgs)
	}
	return c.Reader.Get(ctx, key, obj, opts...)
}

// TestAdoptRefusesNames: a set adopts what no object can be called, or a HelmRelease that names such a kubeconfig. The error is the one
// add-on's, and the other add-ons come.
func TestAdoptRefusesNames(t *testing.T) {
	for name, tc := range map[string]struct {
		adopted, kubeconfig string
		texts               []string
	}{
		"OfTheObject":     {"a/b", "one", []string{"adopt.name", `"a/b"`}},
		"OfItsKubeconfig": {"by-hand", "a/b", []string{"HelmRelease fleet/by-hand", "spec.kubeConfig.secretRef.name", `"a/b"`}},
		"OfAParentFolder": {"by-hand", "..", []string{"HelmRelease fleet/by-hand", "spec.kubeConfig.secretRef.name", `".."`}},
	} {
		t.Run(name, func(t *testing.T) {
			old := byHand(func(o *helmv2.HelmRelease) {
				o.Namespace, o.Spec.Suspend, o.Spec.KubeConfig.SecretRef.Name = testCluster.Namespace, true, tc.kubeconfig
			})
			bad := releaseAddon("bad")
			bad["adopt"] = map[string]any{"namespace": "<< cluster.namespace >>", "name": tc.adopted}
			m := newServedFixture(t, append(addonsOf(testSet, "1", releaseAddon("falco"), bad), old)...)
			m.r.Live = strictNames{m.api}
			m.settle()
			m.wantReady("falco")
			a := m.addon("bad")
			for _, text := range tc.texts {
				if a.State != hubv1.AddonFailed || a.Reason != hubv1.RenderFailedReason || !strings.Contains(a.Message, text) {
					t.Errorf("it is %s, %s: %s", a.State, a.Reason, a.Message)
				}
			}
		})
	}
}
