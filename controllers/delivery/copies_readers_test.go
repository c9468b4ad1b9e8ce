// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/identity"
)

func (m *fixture) next(generation string, addons ...map[string]any) {
	for _, rev := range addonsOf(testSet, generation, addons...)[1:] {
		m.must(m.api.Create(m.t.Context(), rev))
	}
	m.roll(generation)
}

func besideSecret(name string, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: testCluster.Namespace, Name: name,
		Annotations: map[string]string{hubv1.ShareAnnotation: "flux-system"}}, Data: data}
}

func ofKey(key string) map[string]any {
	return map[string]any{"kind": "Secret", "name": "values", "valuesKey": key, "targetPath": key, "from": "Cluster"}
}

func depends(a map[string]any, on string) map[string]any {
	a["dependsOn"] = []any{map[string]any{"name": on}}
	return a
}

// readsAll: every key that a live HelmRelease reads of a copy is there.
func (m *fixture) readsAll(addon string) {
	m.t.Helper()
	hr, _ := m.object(testCluster, addon).(*helmv2.HelmRelease)
	if hr == nil {
		m.t.Fatalf("no release %s", addon)
	}
	for _, from := range hr.Spec.ValuesFrom {
		s := &corev1.Secret{}
		err := m.api.Get(m.t.Context(), client.ObjectKey{Namespace: hr.Namespace, Name: from.Name}, s)
		if _, has := s.Data[from.GetValuesKey()]; !has {
			m.t.Errorf("live HelmRelease %s reads key %q of %s, which is not there (%v); copies %v", hr.Name, from.GetValuesKey(), from.Name, err, m.copies())
		}
	}
}

// A failing add-on stays as it is: what it reads must stay too, though another add-on reads the same Secret.
func TestCopiesFailingAddonKeepsItsKeys(t *testing.T) {
	a := readsBeside("a", ofKey("one"), map[string]any{"kind": "Secret", "name": "second", "from": "Cluster"})
	b := readsBeside("b", ofKey("two"))
	m := newServedFixture(t, append(addonsOf(testSet, "1", a, b),
		besideSecret("values", map[string][]byte{"one": []byte("1"), "two": []byte("2")}),
		besideSecret("second", map[string][]byte{"values.yaml": []byte("a: 1")}))...)
	m.settle()
	m.readsAll("a")
	m.readsAll("b")
	m.quietly(func() {
		m.must(m.api.Delete(t.Context(), besideSecret("second", nil)))
	})
	m.settle()
	m.readsAll("b")
	m.readsAll("a")
}

// An add-on that waits for another keeps the keys that its live object reads.
func TestCopiesWaitingAddonKeepsItsKeys(t *testing.T) {
	m := newServedFixture(t, append(addonsOf(testSet, "1", readsBeside("web", ofKey("one"))),
		besideSecret("values", map[string][]byte{"one": []byte("1"), "two": []byte("2")}))...)
	m.settle()
	m.next("2", readsBeside("base", map[string]any{"kind": "Secret", "name": "none", "from": "Cluster"}), depends(readsBeside("web", ofKey("two")), "base"))
	m.settle()
	if hr := m.object(testCluster, "web").(*helmv2.HelmRelease); hr.Spec.ValuesFrom[0].ValuesKey != "one" {
		t.Fatal("web did not wait")
	}
	m.readsAll("web")
}

// What is shared no longer goes at once, though the present revision does not read it any more and the live object waits.
func TestCopiesUnsharedThoughNotReadByThePresentRevision(t *testing.T) {
	m := newServedFixture(t, append(addonsOf(testSet, "1", readsBeside("web", ofKey("one"))),
		besideSecret("values", map[string][]byte{"one": []byte("1"), "two": []byte("2")}))...)
	m.settle()
	m.next("2", readsBeside("base", map[string]any{"kind": "Secret", "name": "none", "from": "Cluster"}), depends(readsBeside("web"), "base"))
	m.settle()
	m.readsAll("web")
	m.changesBeside(func(s *corev1.Secret) { s.Annotations[hubv1.ShareAnnotation] = "another" })
	m.wantsCopy("")
}

// The same, though the add-on does not render for another reason.
func TestCopiesUnsharedThoughTheAddonFails(t *testing.T) {
	m := newServedFixture(t, append(addonsOf(testSet, "1", readsBeside("web", ofKey("one"))),
		besideSecret("values", map[string][]byte{"one": []byte("1"), "two": []byte("2")}))...)
	m.settle()
	bad := readsBeside("web", ofKey("one"))
	bad["helmRelease"].(map[string]any)["values"] = map[string]any{"x": "<< cluster.labels.nope >>"}
	m.next("2", bad)
	m.settle()
	m.changesBeside(func(s *corev1.Secret) { s.Annotations[hubv1.ShareAnnotation] = "another" })
	m.wantsCopy("")
}

// The same, though the revision of the delivery is gone.
func TestCopiesUnsharedThoughNothingRenders(t *testing.T) {
	m := besideFixture(t)
	edit(m, "flux-system", m.delivery(testCluster, testSet).Name, &hubv1.AddonDelivery{}, func(d *hubv1.AddonDelivery) { d.Spec.RevisionName = "none-e1" })
	m.settle()
	m.changesBeside(func(s *corev1.Secret) { s.Annotations[hubv1.ShareAnnotation] = "another" })
	m.wantsCopy("")
}

// The copy of an add-on that has gone goes, though another add-on of the set fails.
func TestCopiesCopyGoesThoughAnotherAddonFails(t *testing.T) {
	m := newServedFixture(t, append(addonsOf(testSet, "1", readsBeside("web", ofKey("one"))),
		besideSecret("values", map[string][]byte{"one": []byte("1"), "two": []byte("2")}))...)
	m.settle()
	bad := readsBeside("bad")
	bad["helmRelease"].(map[string]any)["values"] = map[string]any{"x": "<< cluster.labels.nope >>"}
	m.next("2", bad, readsBeside("web"))
	m.settle()
	if hr := m.object(testCluster, "web").(*helmv2.HelmRelease); len(hr.Spec.ValuesFrom) > 0 {
		t.Fatal("web reads it")
	}
	m.wantsCopy("")
}

// A delivery that vanished leaves its Flux objects: they go on reading the copy.
func TestCopiesDeliveryVanished(t *testing.T) {
	m := besideFixture(t)
	m.vanish()
	m.must(m.reconcile(testCluster))
	m.must(m.reconcile(testCluster))
	if m.kubeconfigOf(testCluster) == nil {
		t.Fatal("the kubeconfig is gone")
	}
	m.readsAll("web")
}

// A user's own Secret that has a copy's name is left alone.
func TestCopiesUsersOwnSecret(t *testing.T) {
	as := identity.Copy("hub", testCluster, identity.Delivery(testSet, testCluster), "Secret", "values")
	m := newServedFixture(t, append(addonsOf(testSet, "1", readsBeside("web", ofKey("one"))),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: as}, Type: corev1.SecretTypeOpaque, Data: map[string][]byte{"mine": []byte("m")}},
		besideSecret("values", map[string][]byte{"one": []byte("1"), "two": []byte("2")}))...)
	m.settle()
	s := &corev1.Secret{}
	m.must(m.api.Get(t.Context(), client.ObjectKey{Namespace: "flux-system", Name: as}, s))
	if len(s.Data) != 1 || len(s.Labels) > 0 {
		t.Errorf("the user's Secret is now %v %v", s.Data, s.Labels)
	}
	d := m.delivery(testCluster, testSet)
	if len(d.Status.Addons) == 0 || !strings.Contains(d.Status.Addons[0].Message, as) {
		t.Errorf("nothing tells")
	}
}

// A platform namespace that becomes a Team's.
func TestCopiesBecomesATeams(t *testing.T) {
	m := besideFixture(t)
	of := teamOf("x")
	of.Spec.HubNamespaces = []string{"flux-system"}
	of.Namespace = "other"
	edit(m, testCluster.Namespace, testCluster.Name, &hubv1.ClusterRegistration{}, func(r *hubv1.ClusterRegistration) { r.Labels = map[string]string{"env": "prod"} })
	m.quietly(func() { m.must(m.api.Create(t.Context(), of)) })
	m.restart()
	m.r.Config.PlatformNamespaces = []string{"other"}
	m.r.Shared.Config = m.r.Config
	m.settle()
	m.wantsCopy("")
}

// The copy goes also if the set has manifests that are applied once, and that have changed since.
func TestCopiesCopyGoesBesideApplyOnce(t *testing.T) {
	once := func(text string) map[string]any {
		return map[string]any{"name": "once", "manifests": map[string]any{"strategy": "ApplyOnce", "objects": []any{
			map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "c"}, "data": map[string]any{"k": text}}}}}
	}
	m := newServedFixture(t, append(addonsOf(testSet, "1", once("1"), readsBeside("web", ofKey("one"))),
		besideSecret("values", map[string][]byte{"one": []byte("1"), "two": []byte("2")}))...)
	m.settle()
	m.readsAll("web")
	m.next("2", once("2"), readsBeside("web"))
	m.settle()
	if hr := m.object(testCluster, "web").(*helmv2.HelmRelease); len(hr.Spec.ValuesFrom) > 0 {
		t.Fatal("web reads it")
	}
	m.wantsCopy("")
}

// A duplicate registration orphans its objects, and the copy goes with them.
func TestCopiesDuplicate(t *testing.T) {
	m := besideFixture(t)
	edit(m, testCluster.Namespace, testCluster.Name, &hubv1.ClusterRegistration{}, func(r *hubv1.ClusterRegistration) {})
	r := &hubv1.ClusterRegistration{}
	m.must(m.api.Get(t.Context(), testCluster, r))
	r.Status.DuplicateOf = &hubv1.RegistrationReference{Namespace: "fleet", Name: "other"}
	m.must(m.api.Status().Update(t.Context(), r))
	m.settle()
	if m.object(testCluster, "web") != nil {
		t.Fatal("web is there")
	}
	m.wantsCopy("")
}

// An owner who shares nothing any more, variables among it.
func TestCopiesUnsharedTogetherWithVariables(t *testing.T) {
	facts := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: testCluster.Namespace, Name: "facts",
		Annotations: map[string]string{hubv1.ShareAnnotation: "flux-system"}}, Data: map[string]string{"a": "b"}}
	m := newServedFixture(t, append(addonsWithVariablesFrom(testSet, "1", "facts", readsBeside("web", ofKey("one"))), facts,
		besideSecret("values", map[string][]byte{"one": []byte("1")}))...)
	m.settle()
	m.readsAll("web")
	m.quietly(func() {
		edit(m, testCluster.Namespace, "facts", &corev1.ConfigMap{}, func(s *corev1.ConfigMap) { s.Annotations = nil })
	})
	m.changesBeside(func(s *corev1.Secret) { s.Annotations = nil })
	m.wantsCopy("")
}

func addonsWithVariablesFrom(set, generation, name string, addons ...map[string]any) []client.Object {
	return setOf(set, generation, map[string]any{"selectAll": true, "addons": addons,
		"variablesFrom": []any{map[string]any{"configMap": name, "from": "Cluster"}}})
}

// What a release reads stays while it is removed, or its add-on is excluded and the removal is held: rename of the original in one revision.
func TestCopiesRenamedOriginalWhileWaiting(t *testing.T) {
	m := newServedFixture(t, append(addonsOf(testSet, "1", readsBeside("web", ofKey("one"))),
		besideSecret("values", map[string][]byte{"one": []byte("1")}), besideSecret("renamed", map[string][]byte{"one": []byte("1")}))...)
	m.settle()
	to := ofKey("one")
	to["name"] = "renamed"
	m.next("2", readsBeside("base", map[string]any{"kind": "Secret", "name": "none", "from": "Cluster"}), depends(readsBeside("web", to), "base"))
	m.settle()
	m.readsAll("web")
	// ... and what it still reads is rotated within seconds
	m.changesBeside(func(s *corev1.Secret) { s.Data["one"] = []byte("rotated") })
	if got := m.copies()["flux-system/"+identity.Copy("hub", testCluster, identity.Delivery(testSet, testCluster), "Secret", "values")]; got != "one=rotated" {
		t.Errorf("the live release reads %q of a copy whose original was rotated", got)
	}
}

// Manifests that are applied once are never written again: what they read stays for ever.
func TestCopiesApplyOnceKeepsItsKeys(t *testing.T) {
	once := func(key string) map[string]any {
		return map[string]any{"name": "once", "manifests": map[string]any{"strategy": "ApplyOnce",
			"manifestsFrom": []any{map[string]any{"kind": "Secret", "name": "values", "key": key, "from": "Cluster"}}}}
	}
	m := newServedFixture(t, append(addonsOf(testSet, "1", once("one")),
		besideSecret("values", map[string][]byte{"one": []byte("a: 1"), "two": []byte("a: 2")}))...)
	m.settle()
	m.next("2", once("two"))
	m.settle()
	m.readsAll("once")
}
