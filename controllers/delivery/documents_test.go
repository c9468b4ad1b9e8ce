// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/render"
)

// TestDocumentsOfOldRevisionsAreForgotten: a cluster is woken for what its deliveries refer to now, each of them, also while one of them cannot
// be read, and for nothing that they referred to before.
func TestDocumentsOfOldRevisionsAreForgotten(t *testing.T) {
	reading := func(name string) map[string]any {
		return map[string]any{"name": "reading", "manifests": map[string]any{"manifestsFrom": []any{map[string]any{"kind": "ConfigMap", "name": name}}}}
	}
	objects := append(addonsOf(testSet, "1", reading("before")), addonsOf(testSet, "2", reading("now"))[1:]...)
	objects = append(objects, addonsOf("more", "1", reading("theirs"))...)
	objects = append(objects, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "theirs"},
		Data: map[string]string{"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}"}})
	m := newFixture(t, append(objects, registered(testCluster, "c1"), kubeconfigSecret(testCluster, "t0"), deliveredTo(testCluster, testSet, "1"),
		deliveredTo(testCluster, "more", "1"))...)
	wakes := func(want ...string) {
		t.Helper()
		var got []string
		for _, name := range []string{"before", "now", "theirs"} {
			if len(m.r.documents.ReadersOf("ConfigMap")(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: name}})) > 0 {
				got = append(got, name)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("woken for %v, want %v", got, want)
		}
	}
	m.settle()
	wakes("before", "theirs")
	edit(m, "flux-system", m.delivery(testCluster, testSet).Name, &hubv1.AddonDelivery{}, func(d *hubv1.AddonDelivery) { d.Spec.RevisionName = revisionOf(testSet, "2") })
	m.reads("*v1alpha1.AddonSet more")
	m.settle()
	wakes("before", "now", "theirs")
	m.reads("")
	m.settle()
	wakes("now", "theirs")
	m.settle() // by what is remembered
	wakes("now", "theirs")
}

// afterRead does something once, when an object of a kind has been read.
type afterRead struct {
	client.Reader
	of client.Object
	do func()
}

func (a *afterRead) Get(ctx context.Context, k client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	err := a.Reader.Get(ctx, k, obj, opts...)
	if reflect.TypeOf(obj) == reflect.TypeOf(a.of) && a.do != nil {
		a.do()
		a.do = nil
	}
	return err
}

// readingFixture is a controller with an add-on of what a ConfigMap holds, and a function that writes that.
func readingFixture(t *testing.T) (m *fixture, says func(string)) {
	text := func(value string) map[string]string {
		return map[string]string{"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\ndata: {a: " + value + "}"}
	}
	m = newServedFixture(t, append(addonsOf(testSet, "1", map[string]any{"name": "reading", "manifests": map[string]any{
		"manifestsFrom": []any{map[string]any{"kind": "ConfigMap", "name": "doc"}}}}),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "doc"}, Data: text("before")})...)
	m.settle()
	return m, func(value string) {
		m.quietly(func() {
			edit(m, "flux-system", "doc", &corev1.ConfigMap{}, func(c *corev1.ConfigMap) { c.Data = text(value) })
		})
	}
}

// upToDate returns whether the Flux object of the add-on is of what the ConfigMap holds.
func upToDate(m *fixture) bool {
	doc := &corev1.ConfigMap{}
	m.must(m.api.Get(m.t.Context(), client.ObjectKey{Namespace: "flux-system", Name: "doc"}, doc))
	values := string(m.object(testCluster, "reading").(*helmv2.HelmRelease).Spec.Values.Raw)
	return strings.Contains(values, render.ConfigMap(nil, doc.Data).Version)
}

// A document that changes while a cluster is rendered by it is delivered as it is now: the event of that finds nothing that is remembered.
func TestADocumentChangesWhileItIsRendered(t *testing.T) {
	m, says := readingFixture(t)
	m.r.Live = &afterRead{m.r.Live, &corev1.ConfigMap{}, func() { says("now") }}
	says("between")
	m.settle()
	if !upToDate(m) {
		t.Error("the cluster keeps what the document said before")
	}
}

// What was planned is written, and not what came of a document that has changed since: that would be noted as what was planned.
func TestADocumentChangesBeforeItIsWritten(t *testing.T) {
	m, says := readingFixture(t)
	name := m.object(testCluster, "reading").GetName()
	edit(m, "flux-system", name, &helmv2.HelmRelease{}, func(o *helmv2.HelmRelease) { o.Finalizers = nil })
	m.quietly(func() { m.must(m.api.Delete(t.Context(), m.object(testCluster, "reading"))) })
	between := false
	m.failing = func(what string) (error, bool) {
		if strings.HasPrefix(what, "apply ") {
			between, m.failing = true, nil
			says("between")
		}
		return nil, false
	}
	if err := m.reconcile(testCluster); err != nil {
		t.Log(err)
	}
	if !between {
		t.Fatal("the object was not made")
	}
	says("before")
	m.settle()
	if !upToDate(m) {
		t.Error("the cluster keeps what the document said for a moment")
	}
}
