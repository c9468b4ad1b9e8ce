// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/expression"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/render/flux"
)

const chartBody = "{chart: {spec: {chart: podinfo, version: 6.x, sourceRef: {kind: HelmRepository, name: podinfo}}}}"

// addonsOf compiles a platform set of some add-ons.
func addonsOf(t *testing.T, text string) *compile.Program {
	t.Helper()
	var addons []hubv1.Addon
	must.Do(t, yaml.UnmarshalStrict([]byte(text), &addons))
	return compiled(t, &hubv1.AddonSetSpec{Addons: addons})
}

func rendered(t *testing.T, p *compile.Program, to render.Target) *render.Result {
	t.Helper()
	r, err := render.Render(p, to, &render.Input{Cluster: &expression.Cluster{Name: to.Registration.Name}})
	if err != nil || len(r.Failed) > 0 || len(r.Missing) > 0 {
		t.Fatal(err, r.Failed, r.Missing)
	}
	// As assembly would, with the add-ons of one set alone.
	for i := range r.Objects {
		var before []flux.Dependency
		for _, ref := range r.Objects[i].DependsOn {
			for _, other := range r.Objects {
				if other.Addon == ref.Name {
					before = append(before, flux.Dependency{Addon: ref.Name, Namespace: other.Namespace, Name: other.Name})
				}
			}
		}
		r.Objects[i].Link(before, nil)
	}
	return r
}

func chartOf(t *testing.T, body string, to render.Target) flux.Shared {
	t.Helper()
	shared := rendered(t, addonsOf(t, "[{name: web, helmRelease: "+body+"}]"), to).Objects[0].Shared
	if len(shared) != 1 {
		t.Fatal("there is no chart")
	}
	return shared[0]
}

// programs are the programs of the golden cases, by name.
func programs(t *testing.T) map[string]*compile.Program {
	t.Helper()
	dirs, err := filepath.Glob("testdata/*")
	if err != nil || len(dirs) == 0 {
		t.Fatal("there are no cases", err)
	}
	out := map[string]*compile.Program{}
	for _, dir := range dirs {
		out[filepath.Base(dir)] = program(t, dir)
	}
	return out
}

// A program is rendered for thousands of clusters, and the controllers write into what they get.
func TestProgramsAreNotShared(t *testing.T) {
	for name, p := range programs(t) {
		t.Run(name, func(t *testing.T) {
			before := must.Get(json.Marshal(p)).Or(t)
			text := print(t, p, target("tenant1"))
			first := rendered(t, p, target("tenant1"))
			for _, o := range first.Objects {
				scribble(o.Object.Object)
				for _, s := range o.Shared {
					scribble(s.Object.Object)
				}
			}
			if after, err := json.Marshal(p); err != nil || !bytes.Equal(before, after) {
				t.Errorf("writing into a result changed the program (%v):\n%s\n%s", err, before, after)
			}
			if d := cmp.Diff(text, print(t, p, target("tenant1"))); d != "" {
				t.Errorf("rendered again: -first +second:\n%s", d)
			}
			for i, o := range rendered(t, p, target("tenant1")).Objects {
				if o.Hash != first.Objects[i].Hash {
					t.Errorf("add-on %s: hash %s and then %s", o.Addon, first.Objects[i].Hash, o.Hash)
				}
			}
		})
	}
}

// scribble empties every map of v, innermost first.
func scribble(v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, x := range v {
			scribble(x)
		}
		clear(v)
	case []any:
		for i := range v {
			scribble(v[i])
			v[i] = "scribble"
		}
	}
}

func TestObjectsCarryTheirHash(t *testing.T) {
	for name, p := range programs(t) {
		for _, o := range rendered(t, p, target("tenant1")).Objects {
			if got := o.Manifest().GetAnnotations()[hubv1.HashAnnotation]; got != o.Hash || got == "" {
				t.Errorf("%s, add-on %s: annotation %q, hash %q", name, o.Addon, got, o.Hash)
			}
			for _, s := range o.Shared {
				if got := s.Object.GetAnnotations()[hubv1.HashAnnotation]; got != s.Hash || got == "" {
					t.Errorf("%s, chart of add-on %s: annotation %q, hash %q", name, o.Addon, got, s.Hash)
				}
			}
		}
	}
}

// TestObjectsUseTheIdentity: with a workload identity the kubeconfig copy is a ConfigMap, and what tells the cluster from others stands for
// the UID.
func TestObjectsUseTheIdentity(t *testing.T) {
	to := target("tenant1")
	want := map[string]any{"configMapRef": map[string]any{"name": identity.KubeconfigCopy(to.HubID, to.Registration)}}
	for name, p := range programs(t) {
		result := renders(t, p, to, &render.Input{Cluster: &expression.Cluster{Name: "tenant1", UID: "a-uid"}, Identity: "some-cluster"})
		for _, o := range result.Objects {
			got, _, _ := unstructured.NestedMap(o.Object.Object, "spec", "kubeConfig")
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s, add-on %s: -want +got:\n%s", name, o.Addon, d)
			}
			if got := o.Object.GetAnnotations()[hubv1.ClusterUIDAnnotation]; got != "some-cluster" {
				t.Errorf("%s, add-on %s is for cluster %q", name, o.Addon, got)
			}
		}
	}
}

func TestObjectsUseTheCopy(t *testing.T) {
	to := target("tenant1")
	want := map[string]any{"secretRef": map[string]any{"name": identity.KubeconfigCopy(to.HubID, to.Registration), "key": "value"}}
	for name, p := range programs(t) {
		for _, o := range rendered(t, p, to).Objects {
			got, _, err := unstructured.NestedMap(o.Object.Object, "spec", "kubeConfig")
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s, add-on %s: -want +got:\n%s", name, o.Addon, d)
			}
		}
	}
}

func TestChartNames(t *testing.T) {
	here, otherHub := target("tenant1"), target("tenant1")
	otherHub.HubID = "other"
	cases := map[string]struct {
		body string
		to   render.Target
		same bool
	}{
		"OtherCluster":         {body: chartBody, to: target("tenant2"), same: true},
		"OtherValues":          {body: "{values: {a: 1}, " + chartBody[1:], to: here, same: true},
		"DefaultsWrittenOut":   {body: strings.Replace(chartBody, "chart: podinfo", "chart: podinfo, interval: 10m, reconcileStrategy: ChartVersion", 1), to: here, same: true},
		"OwnNamespaceWritten":  {body: strings.Replace(chartBody, "name: podinfo", "name: podinfo, namespace: flux-system", 1), to: here, same: true},
		"OtherVersion":         {body: strings.Replace(chartBody, "6.x", "7.x", 1), to: here},
		"OtherChart":           {body: strings.Replace(chartBody, "chart: podinfo", "chart: charts/podinfo", 1), to: here},
		"OtherSource":          {body: strings.Replace(chartBody, "name: podinfo", "name: mirror", 1), to: here},
		"OtherSourceNamespace": {body: strings.Replace(chartBody, "name: podinfo", "name: podinfo, namespace: other", 1), to: here},
		"OtherInterval":        {body: "{interval: 1h, " + chartBody[1:], to: here},
		"OtherLabels":          {body: strings.Replace(chartBody, "{chart: {", "{chart: {metadata: {labels: {a: b}}, ", 1), to: here},
		"OtherHub":             {body: chartBody, to: otherHub},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			base, got := chartOf(t, chartBody, here), chartOf(t, tc.body, tc.to)
			if same := base.Object.GetName() == got.Object.GetName(); same != tc.same || same != (base.Hash == got.Hash) {
				t.Errorf("charts %s (%s) and %s (%s), want the same: %v",
					base.Object.GetName(), base.Hash, got.Object.GetName(), got.Hash, tc.same)
			}
		})
	}
}

// The API server and Helm refuse names that are longer than 63 characters or no DNS-1123 labels.
func TestNames(t *testing.T) {
	addon := strings.Repeat("b", 53)
	bodies := map[string]string{
		"Kustomization": "kustomization: {sourceRef: {kind: GitRepository, name: fleet}}",
		"HelmRelease":   "helmRelease: " + chartBody,
		"ChartByPath":   "helmRelease: {chart: {spec: {chart: ./Charts/" + strings.Repeat("Very.Long_", 12) + "/, sourceRef: {kind: GitRepository, name: fleet}}}}",
	}
	clusters := map[string]string{
		"Short": "c", "Label": strings.Repeat("a", 63), "Dots": "a.cluster.with.dots", "Longest": strings.Repeat("long.name-", 25) + "end",
	}
	for kind, body := range bodies {
		for length, cluster := range clusters {
			t.Run(kind+length, func(t *testing.T) {
				second := strings.Replace(body, "helmRelease: {", "helmRelease: {targetNamespace: other, ", 1)
				p := addonsOf(t, fmt.Sprintf("[{name: %s, %s, dependsOn: [{name: first}]}, {name: first, %s}]", addon, body, second))
				to := target(cluster)
				to.Set = strings.Repeat("s", 200)
				r := rendered(t, p, to)
				for _, o := range r.Objects {
					checkNames(t, o.Manifest())
				}
				refs, _, err := unstructured.NestedSlice(r.Objects[0].Manifest().Object, "spec", "dependsOn")
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff([]any{map[string]any{"name": r.Objects[1].Object.GetName()}}, refs); d != "" {
					t.Errorf("dependsOn does not name the object of the other add-on: -want +got:\n%s", d)
				}
			})
		}
	}
}

func checkNames(t *testing.T, u *unstructured.Unstructured) {
	t.Helper()
	names := []string{u.GetName()}
	for _, path := range [][]string{{"spec", "kubeConfig", "secretRef", "name"}, {"spec", "chartRef", "name"}} {
		s, found, err := unstructured.NestedString(u.Object, path...)
		if err != nil {
			t.Fatal(err)
		}
		if found {
			names = append(names, s)
		}
	}
	for _, n := range names {
		if errs := validation.IsDNS1123Label(n); len(errs) > 0 {
			t.Errorf("name %q: %v", n, errs)
		}
	}
	for k, v := range u.GetLabels() {
		if errs := validation.IsValidLabelValue(v); len(errs) > 0 {
			t.Errorf("label %s=%q: %v", k, v, errs)
		}
	}
}
