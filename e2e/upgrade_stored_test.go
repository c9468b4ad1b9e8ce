// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/test/localfleet"
)

var keep = flag.String("keep", "", "have TestStoredObjects keep what is stored now as that of this release, such as v0.1")

// stored are the kinds that the hub keeps its state in, and the types that it reads them as.
var stored = map[schema.GroupVersionKind]func() client.Object{
	hubv1.GroupVersion.WithKind("AddonSet"):                  func() client.Object { return &hubv1.AddonSet{} },
	hubv1.GroupVersion.WithKind("ClusterRegistration"):       func() client.Object { return &hubv1.ClusterRegistration{} },
	hubv1.GroupVersion.WithKind("AddonDelivery"):             func() client.Object { return &hubv1.AddonDelivery{} },
	appsv1.SchemeGroupVersion.WithKind("ControllerRevision"): func() client.Object { return &appsv1.ControllerRevision{} },
}

// TestStoredObjects: what each release has stored, today's CRDs still accept, keep and let the hub read, to the last field; and
// today's compiler still understands each revision.
func TestStoredObjects(t *testing.T) {
	beside(t)
	if *keep != "" {
		keepStored(t, filepath.Join("testdata", "stored", *keep))
	}
	files, err := filepath.Glob(filepath.Join("testdata", "stored", "*", "*.yaml"))
	check(t, err)
	if len(files) == 0 {
		t.Fatal("nothing is kept of any release")
	}
	c, err := localfleet.StartCluster(t.Context(), localfleet.ClusterOptions{
		Name: "stored", Dir: workDir, CRDPaths: []string{filepath.Join("..", "config", "crd", "bases")}, Scheme: scheme,
	})
	check(t, err)
	t.Cleanup(func() { check(t, c.Stop()) })
	seen := map[string]map[string]bool{}
	for _, file := range files {
		release := filepath.Base(filepath.Dir(file))
		raw, err := os.ReadFile(file)
		check(t, err)
		for _, u := range objects(t, string(raw)) {
			if seen[release] == nil {
				seen[release] = map[string]bool{}
				namespace(t, c.Client, u.GetNamespace())
			}
			seen[release][u.GetKind()] = true
			t.Run(fmt.Sprintf("%s %s %s", release, u.GetKind(), u.GetName()), func(t *testing.T) { restore(t, c, u) })
		}
	}
	for release, kinds := range seen {
		if len(kinds) != len(stored) {
			t.Errorf("of %s just these are kept: %v", release, kinds)
		}
	}
}

// restore stores an object as it was stored, and reads it back.
func restore(t *testing.T, c *localfleet.Cluster, want *unstructured.Unstructured) {
	ctx := t.Context()
	into := stored[want.GroupVersionKind()]
	if into == nil {
		t.Fatalf("%s is no kind that the hub stores", want.GroupVersionKind())
	}
	namespace(t, c.Client, want.GetNamespace())
	got := want.DeepCopy()
	// What the API server would not take as it would its own: strictly, so that a field that the CRD has lost is an error.
	strict := &client.CreateOptions{Raw: &metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}}
	check(t, c.Client.Create(ctx, got, strict))
	if status, ok := want.Object["status"]; ok {
		got.Object["status"] = status
		check(t, c.Client.Status().Update(ctx, got, &client.SubResourceUpdateOptions{UpdateOptions: client.UpdateOptions{Raw: &metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict}}}))
	}
	check(t, c.Client.Get(ctx, client.ObjectKeyFromObject(want), got))
	if d := cmp.Diff(content(want), content(got)); d != "" {
		t.Errorf("-stored +read back:\n%s", d)
	}
	raw, err := json.Marshal(content(got))
	check(t, err)
	typed, decoder := into(), json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	check(t, decoder.Decode(typed))
	revision, ok := typed.(*appsv1.ControllerRevision)
	if !ok {
		return
	}
	spec, _, err := compile.Content(revision.Data.Raw)
	check(t, err)
	if _, err := compile.Compile(spec, compile.Author{Namespace: revision.Namespace, Set: revision.Labels[hubv1.AddonSetLabel], Platform: true}); err != nil {
		t.Errorf("the revision does not compile any more: %v", err)
	}
}

// content is what an object says, without what the API server adds.
func content(u *unstructured.Unstructured) map[string]any {
	out := u.DeepCopy().Object
	metadata := map[string]any{}
	for _, field := range []string{"name", "namespace", "labels", "annotations", "finalizers"} {
		if v, ok, _ := unstructured.NestedFieldNoCopy(u.Object, "metadata", field); ok {
			metadata[field] = v
		}
	}
	out["metadata"] = metadata
	return out
}

// keepStored runs a hub with a fleet, and writes down what it has stored.
func keepStored(t *testing.T, dir string) {
	ctx := t.Context()
	g := startGeneration(t, "hub-stored")
	g.apply(t, layersSet)
	g.apply(t, `
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: more, namespace: flux-system}
spec:
  selectAll: true
  rollout: {strategy: AllAtOnce}
  priority: 7
  dependsOn: [{name: layers}]
  removalGuard: {mode: "Off"}
  addons:
    - name: gen-objects
      dependsOn: [{name: gen-layers, addonSet: layers}]
      overridable: [interval]
      manifests: {objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: gen-objects}}]}
    - name: gen-broken
      helmRelease: {chart: {spec: {chart: none, sourceRef: {kind: HelmRepository, name: none}}}}
`)
	g.patchRegistration(t, "one", `{"spec":{"variables":{"domain":"example.net","deep":{"list":[1,"two",true]}},
		"overrides":[{"name":"gen-layers","helmRelease":{"values":{"color":"for a while"}},"until":"2100-01-01T00:00:00Z","reason":"a test"}]}}`)
	soon(t, "the fleet is as it is to be kept", func() error {
		return errors.Join(
			wantData(ctx, g.one, "gen-layers", "gen-layers", "color", "for a while"),
			g.addonOf(ctx, "two", "more", "gen-objects", hubv1.AddonReady, ""),
			condition(ctx, g.Client, registration("fleet", "one"), hubv1.ReachableCondition, metav1.ConditionTrue, ""))
	})
	check(t, os.MkdirAll(dir, 0o755))
	for gvk := range stored {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk)
		check(t, g.Client.List(ctx, list))
		var out bytes.Buffer
		out.WriteString("# SPDX-License-Identifier: Apache-2.0\n\n# As a release has stored it. Never edited: docs/development.md.\n")
		for i := range list.Items {
			raw, err := yaml.Marshal(content(&list.Items[i]))
			check(t, err)
			fmt.Fprintf(&out, "---\n%s", raw)
		}
		check(t, os.WriteFile(filepath.Join(dir, gvk.Kind+".yaml"), out.Bytes(), 0o644))
	}
}
