// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
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
	"github.com/chandler-hub/chandler/internal/manifestchart"
	"github.com/chandler-hub/chandler/test/localfleet"
)

const manifestsSet = `
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: manifests, namespace: flux-system}
spec:
  selectAll: true
  rollout: {strategy: AllAtOnce}
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
	// With such an annotation Helm would neither correct the object nor remove it.
	more := "          - {apiVersion: v1, kind: ConfigMap, metadata: {name: gen-more, annotations: {helm.sh/hook: 'pre-install, crd-install'}}, " +
		"data: {a: b}}\n"
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
	charts := &sourcev1.OCIRepositoryList{}
	check(t, g.Client.List(ctx, charts, client.InNamespace("flux-system"), client.HasLabels{hubv1.SourceLabel}))
	if n := len(charts.Items); n != 1 || charts.Items[0].Spec.Reference.Digest != manifestchart.Digest() {
		t.Errorf("two clusters have %d charts: %+v", n, charts.Items)
	}
	check(t, g.one.Client.Delete(ctx, widget("first")))
	check(t, g.one.Client.Delete(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "gen-more"}}))
	soon(t, "what a tenant deletes comes back", func() error {
		return errors.Join(g.one.Client.Get(ctx, types.NamespacedName{Namespace: "default", Name: "first"}, widget("first")),
			wantData(ctx, g.one, "default", "gen-more", "a", "b"))
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
  rollout: {strategy: AllAtOnce}
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

// copiedSecrets: a Secret arrives as a Secret, with all that it holds and nothing that tools keep of it; what changes in it arrives, too.
// No object of the hub has any of it.
func (g *generation) copiedSecrets(t *testing.T) {
	ctx := t.Context()
	content := map[string][]byte{".dockerconfigjson": []byte(`{"auths":{"registry.example.org":{"auth":"aHVudGVyMg=="}}}`),
		"odd": []byte("hunter2, [{}] \\ = \"'\r\n---\n{{ .Values }} ${x}\n\n"), "empty": {}}
	s := secret("flux-system", "gen-pull", content)
	s.Type = corev1.SecretTypeDockerConfigJson
	s.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "hunter2"}
	check(t, g.Client.Create(ctx, s))
	g.apply(t, `
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: copies, namespace: flux-system}
spec:
  selectAll: true
  rollout: {strategy: AllAtOnce}
  addons:
    - name: gen-copies
      manifests: {interval: 1h, manifestsFrom: [{kind: Secret, name: gen-pull, copyAs: {}}, {kind: Secret, name: gen-pull, key: odd, copyAs: {name: gen-part, namespace: kube-public, labels: {a: b}}}]}
`)
	arrives := func(c *localfleet.Cluster) func() error {
		return func() error {
			whole, part := secret("default", "gen-pull", nil), secret("kube-public", "gen-part", nil)
			if err := errors.Join(c.Client.Get(ctx, client.ObjectKeyFromObject(whole), whole), c.Client.Get(ctx, client.ObjectKeyFromObject(part), part)); err != nil {
				return err
			}
			if whole.Type != corev1.SecretTypeDockerConfigJson || len(whole.Data) != len(content) || len(part.Data) != 1 || part.Labels["a"] != "b" {
				return fmt.Errorf("they are of type %s with %d keys, and with %d and labels %v", whole.Type, len(whole.Data), len(part.Data), part.Labels)
			}
			for k, v := range content {
				if !bytes.Equal(whole.Data[k], v) {
					return fmt.Errorf("key %s has %q", k, whole.Data[k])
				}
			}
			if !bytes.Equal(part.Data["odd"], content["odd"]) || strings.Contains(fmt.Sprint(whole.Annotations), "hunter2") {
				return fmt.Errorf("the part has %q, and the whole annotations %v", part.Data["odd"], whole.Annotations)
			}
			return nil
		}
	}
	soon(t, "both copies arrive", arrives(g.one))
	soon(t, "on every cluster", arrives(g.two))
	content["odd"] = []byte("other")
	s.Data = content
	check(t, g.Client.Update(ctx, s))
	soon(t, "a change arrives", arrives(g.one))
	for kind, list := range map[string]client.ObjectList{"HelmRelease": unstructuredList("helm.toolkit.fluxcd.io/v2", "HelmRelease"), "AddonDelivery": unstructuredList("chandler.dev/v1alpha1", "AddonDelivery"), "Event": unstructuredList("v1", "Event")} {
		check(t, g.Client.List(ctx, list))
		if raw := fmt.Sprint(list); strings.Contains(raw, "hunter2") || strings.Contains(raw, "aHVudGVy") {
			t.Errorf("a %s holds what is secret", kind)
		}
	}
	g.remove(t, "flux-system", "copies")
	soon(t, "the copies go with the add-on", func() error {
		return errors.Join(wantGone(ctx, g.one.Client, secret("default", "gen-pull", nil)), wantGone(ctx, g.one.Client, secret("kube-public", "gen-part", nil)))
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
  rollout: {strategy: AllAtOnce}
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
