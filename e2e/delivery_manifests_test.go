// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/test/localfleet"
)

const manifestsSet = `
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: manifests, namespace: flux-system}
spec:
  selectAll: true
  addons:
    - name: gen-plain
      manifests:
        interval: 2s
        objects:
          - apiVersion: gen.example.org/v1
            kind: Widget
            metadata: {name: first}
            spec: {owner: << cluster.name >>, size: 9007199254740993}
          - apiVersion: apiextensions.k8s.io/v1
            kind: CustomResourceDefinition
            metadata: {name: widgets.gen.example.org}
            spec:
              group: gen.example.org
              scope: Namespaced
              names: {kind: Widget, plural: widgets, singular: widget, listKind: WidgetList}
              versions:
                - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
          - {apiVersion: v1, kind: ConfigMap, metadata: {name: gen-plain}, data: {region: << cluster.labels.region >>, text: "{{ .Values.x }} ${y} no"}}
$MORE`

func widget(name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("gen.example.org/v1")
	u.SetKind("Widget")
	u.SetNamespace("default")
	u.SetName(name)
	return u
}

func (g *generation) manifests(t *testing.T) {
	ctx := t.Context()
	more := "          - {apiVersion: v1, kind: ConfigMap, metadata: {name: gen-more}, data: {a: b}}\n"
	g.apply(t, strings.Replace(manifestsSet, "$MORE", more, 1))
	for c, region := range map[*localfleet.Cluster]string{g.one: "eu", g.two: "us"} {
		soon(t, "the object of the CRD arrives", func() error {
			w := widget("first")
			if err := c.Client.Get(ctx, client.ObjectKeyFromObject(w), w); err != nil {
				return err
			}
			if size, _, _ := unstructured.NestedInt64(w.Object, "spec", "size"); size != 9007199254740993 {
				return fmt.Errorf("a large number came out as %v", w.Object["spec"])
			}
			return nil
		})
		soon(t, "so does the rest", func() error {
			return errors.Join(wantData(ctx, c, "default", "gen-plain", "region", region), wantData(ctx, c, "default", "gen-plain", "text", "{{ .Values.x }} ${y} no"),
				wantData(ctx, c, "default", "gen-more", "a", "b"))
		})
	}
	soon(t, "two clusters have one chart", func() error { // those of sets before may still be on their way out
		charts := &sourcev1.HelmChartList{}
		err := g.Client.List(ctx, charts, client.HasLabels{hubv1.ChartLabel})
		if n := len(charts.Items); err == nil && n != 1 {
			err = fmt.Errorf("they have %d", n)
		}
		return err
	})
	check(t, g.one.Client.Delete(ctx, widget("first")))
	soon(t, "what a tenant deletes comes back", func() error {
		return g.one.Client.Get(ctx, types.NamespacedName{Namespace: "default", Name: "first"}, widget("first"))
	})

	// The hub goes and comes back: what it serves is the same, and nothing moves.
	g.stop()
	g.start(t)
	g.apply(t, strings.Replace(manifestsSet, "$MORE", "", 1))
	soon(t, "an object that is dropped is pruned", func() error { return wantNoConfigMap(ctx, g.one, "default", "gen-more") })
	check(t, g.one.Client.Get(ctx, types.NamespacedName{Namespace: "default", Name: "first"}, widget("first")))

	g.remove(t, "flux-system", "manifests")
	soon(t, "everything goes with the add-on", func() error {
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "widgets.gen.example.org"}}
		return errors.Join(wantGone(ctx, g.one.Client, crd), wantGone(ctx, g.two.Client, crd.DeepCopy()), wantNoConfigMap(ctx, g.one, "default", "gen-plain"))
	})
}

func (g *generation) manifestsFrom(t *testing.T) {
	ctx := t.Context()
	s := secret("flux-system", "gen-objects", map[string][]byte{"objects": []byte("apiVersion: v1\nkind: Secret\nmetadata: {name: gen-secret, namespace: default}\nstringData: {password: hunter2}\n")})
	check(t, g.Client.Create(ctx, s))
	documents := func(value string) {
		g.apply(t, fmt.Sprintf(`
apiVersion: v1
kind: ConfigMap
metadata: {name: gen-objects, namespace: flux-system}
data:
  a.yaml: |
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: gen-from-a, namespace: default}
    data: {value: %q}
    ---
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: gen-from-b, namespace: default}
`, value))
	}
	documents("x")
	g.apply(t, `
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: documents, namespace: flux-system}
spec:
  selectAll: true
  addons:
    - name: gen-documents
      manifests: {interval: 1h, manifestsFrom: [{kind: ConfigMap, name: gen-objects}, {kind: Secret, name: gen-objects}, {kind: ConfigMap, name: gen-nothing, optional: true}]}
`)
	soon(t, "the objects arrive", func() error {
		got := secret("default", "gen-secret", nil)
		if err := g.one.Client.Get(ctx, client.ObjectKeyFromObject(got), got); err != nil {
			return err
		}
		if string(got.Data["password"]) != "hunter2" {
			return errors.New("the Secret has another content")
		}
		return errors.Join(wantData(ctx, g.one, "default", "gen-from-a", "value", "x"), wantData(ctx, g.two, "default", "gen-from-a", "value", "x"))
	})
	documents("y")
	soon(t, "a change arrives at once", func() error { return wantData(ctx, g.one, "default", "gen-from-a", "value", "y") })
	for kind, list := range map[string]client.ObjectList{"HelmRelease": unstructuredList("helm.toolkit.fluxcd.io/v2", "HelmRelease"), "AddonDelivery": unstructuredList("chandler.dev/v1alpha1", "AddonDelivery")} {
		check(t, g.Client.List(ctx, list))
		if raw := fmt.Sprint(list); strings.Contains(raw, "hunter2") {
			t.Errorf("a %s holds what is secret", kind)
		}
	}
	g.remove(t, "flux-system", "documents")
	soon(t, "everything goes with the add-on", func() error {
		return errors.Join(wantNoConfigMap(ctx, g.one, "default", "gen-from-a"), wantGone(ctx, g.one.Client, secret("default", "gen-secret", nil)))
	})
}

// applyOnce is ClusterResourceSet's strategy: what is there is left alone, whatever happens to it or to the set.
func (g *generation) applyOnce(t *testing.T) {
	ctx := t.Context()
	set := func(value string) {
		g.apply(t, fmt.Sprintf(`
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: once, namespace: flux-system}
spec:
  selectAll: true
  addons:
    - {name: gen-once, manifests: {interval: 2s, strategy: ApplyOnce, objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: gen-once}, data: {value: %[1]s}}]}}
    - {name: gen-ever, manifests: {interval: 2s, objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: gen-ever}, data: {value: %[1]s}}]}}
`, value))
	}
	both := func(once, ever string) func() error {
		return func() error {
			return errors.Join(wantData(ctx, g.one, "default", "gen-once", "value", once), wantData(ctx, g.one, "default", "gen-ever", "value", ever))
		}
	}
	set("first")
	soon(t, "both arrive", both("first", "first"))
	for _, name := range []string{"gen-once", "gen-ever"} {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		check(t, g.one.Client.Patch(ctx, cm, client.RawPatch(types.MergePatchType, []byte(`{"data":{"value":"theirs"}}`))))
	}
	soon(t, "an edit of the one is undone", both("theirs", "first"))
	set("second")
	soon(t, "a change reaches the one", both("theirs", "second"))
	soon(t, "and both are Ready", func() error {
		return errors.Join(g.delivered(ctx, "once", "one", "two"), g.addonOf(ctx, "one", "once", "gen-once", hubv1.AddonReady, ""), g.addonOf(ctx, "one", "once", "gen-ever", hubv1.AddonReady, ""))
	})
	g.remove(t, "flux-system", "once")
	soon(t, "both go with the set", func() error {
		return errors.Join(wantNoConfigMap(ctx, g.one, "default", "gen-once"), wantNoConfigMap(ctx, g.one, "default", "gen-ever"))
	})
}

func unstructuredList(apiVersion, kind string) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(apiVersion)
	list.SetKind(kind + "List")
	return list
}
