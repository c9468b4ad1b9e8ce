// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/crdschema"
	"github.com/chandler-hub/chandler/internal/expression"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/render/document"
	"github.com/chandler-hub/chandler/internal/render/variables"
)

const besideChart = `helmRelease: {chart: {spec: {chart: c, sourceRef: {kind: HelmRepository, name: r}}}, valuesFrom: [%s]}`

// TestBesideTheCluster: what a set reads from beside a cluster is copied with no more than the keys that are used, and only what its owner
// shares with the set's namespace. What is not there and what is not shared look the same.
func TestBesideTheCluster(t *testing.T) {
	shared := document.Secret(nil, map[string]string{hubv1.ShareAnnotation: "other, flux-system"}, "",
		map[string][]byte{"values.yaml": []byte("a: 1"), "more": []byte("b: 2"), "third": []byte("c: 3")})
	theirs := shared
	theirs.SharedWith = []string{"other"}
	cases := map[string]struct {
		addon   string
		doc     document.Document
		copies  string // kind, name and keys
		refused string
	}{
		"Values":             {addon: fmt.Sprintf(besideChart, `{kind: Secret, name: "<< cluster.name >>-values", from: Cluster}`), doc: shared, copies: "Secret tenant1-values [values.yaml]"},
		"ValuesKey":          {addon: fmt.Sprintf(besideChart, `{kind: Secret, name: x, valuesKey: more, from: Cluster}, {kind: Secret, name: x, valuesKey: third, targetPath: a, from: Cluster}`), doc: shared, copies: "Secret x [more third]"},
		"ValuesMissingKey":   {addon: fmt.Sprintf(besideChart, `{kind: Secret, name: x, valuesKey: moer, optional: true, from: Cluster}`), doc: shared, refused: `helmRelease.valuesFrom[0]: Secret "x" beside the cluster has no key "moer"; it has more, third, values.yaml; did you mean more?`},
		"NotThere":           {addon: fmt.Sprintf(besideChart, `{kind: Secret, name: x, from: Cluster}`), refused: `helmRelease.valuesFrom[0]: no Secret "x" in namespace "tenants", where the cluster is registered, is shared with namespace "flux-system"; if there is one, its owner shares it by annotation chandler.dev/share-with: flux-system`},
		"NotShared":          {addon: fmt.Sprintf(besideChart, `{kind: Secret, name: x, from: Cluster}`), doc: theirs, refused: `no Secret "x" in namespace "tenants", where the cluster is registered, is shared with namespace "flux-system"`},
		"OptionalNotThere":   {addon: fmt.Sprintf(besideChart, `{kind: Secret, name: x, optional: true, from: Cluster}`)},
		"OptionalNotShared":  {addon: fmt.Sprintf(besideChart, `{kind: Secret, name: x, optional: true, from: Cluster}`), doc: theirs},
		"NoName":             {addon: fmt.Sprintf(besideChart, `{kind: Secret, name: "<< cluster.name >>/x", from: Cluster}`), refused: `the name is "tenant1/x", which no object can be called`},
		"Substitutes":        {addon: `kustomization: {sourceRef: {kind: GitRepository, name: r}, postBuild: {substitute: {a: b}, substituteFrom: [{kind: Secret, name: x, from: Cluster}]}}`, doc: shared, copies: "Secret x [more third values.yaml]"},
		"Manifests":          {addon: `manifests: {manifestsFrom: [{kind: Secret, name: x, key: more, from: Cluster}]}`, doc: shared, copies: "Secret x [more]"},
		"ManifestsCopied":    {addon: `manifests: {manifestsFrom: [{kind: Secret, name: x, copyAs: {}, from: Cluster}]}`, doc: shared, copies: "Secret x [more third values.yaml]"},
		"ManifestsNotShared": {addon: `manifests: {manifestsFrom: [{kind: Secret, name: x, from: Cluster}]}`, doc: theirs, refused: `no Secret "x" in namespace "tenants"`},
		"NeitherCluster":     {addon: fmt.Sprintf(besideChart, `{kind: Secret, name: x, from: cluster}`), refused: "helmRelease.valuesFrom[0].from: must be Cluster"},
		"Expression":         {addon: fmt.Sprintf(besideChart, `{kind: Secret, name: x, from: "<< 'Cluster' >>"}`), refused: "helmRelease.valuesFrom[0].from: must be Cluster"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := &hubv1.AddonSetSpec{}
			must.Do(t, yaml.UnmarshalStrict([]byte("addons: [{name: a, "+tc.addon+"}]"), spec))
			result, err := besides(spec, fluxspec.Author{Namespace: "flux-system", Platform: true}, tc.doc)
			switch {
			case tc.refused != "" && (err == nil || !strings.Contains(err.Error(), tc.refused)):
				t.Fatalf("got %v, want %q", err, tc.refused)
			case tc.refused != "":
				return
			case err != nil:
				t.Fatal(err)
			}
			manifest := must.Get(yaml.Marshal(result.Objects[0].Manifest().Object)).Or(t)
			keys := map[string][]string{}
			for _, c := range result.Objects[0].Copies {
				keys[c.Kind+" "+c.Name] = append(keys[c.Kind+" "+c.Name], c.Keys...)
				if c.Namespace != "tenants" || !strings.Contains(string(manifest), "name: "+c.As+"\n") {
					t.Errorf("copy %+v is not the one that is read:\n%s", c, manifest)
				}
			}
			var got []string
			for name, keys := range keys {
				got = append(got, fmt.Sprintf("%s %v", name, keys))
			}
			if strings.Join(got, ", ") != tc.copies {
				t.Errorf("copies %q, want %q", got, tc.copies)
			}
			if strings.Contains(string(manifest), "from: Cluster") || strings.Contains(string(manifest), "name: x\n") != strings.Contains(tc.addon, "copyAs") {
				t.Errorf("Flux does not know that:\n%s", manifest)
			}
		})
	}
}

func besideInput() *render.Input {
	return &render.Input{Cluster: &expression.Cluster{Name: "tenant1", Namespace: "tenants", UID: "u"}}
}

// besides renders a set with the same document for all that it reads.
func besides(spec *hubv1.AddonSetSpec, author fluxspec.Author, doc document.Document) (*render.Result, error) {
	p, err := compile.Compile(spec, author)
	if err != nil {
		return nil, err
	}
	to := target("tenant1")
	to.Namespace, to.Chart = author.Namespace, render.ManifestChart{URL: "http://chart", Name: "c", Digest: "sha256:0"}
	result, err := render.Complete(p, to, besideInput(), func(document.Ref) (document.Document, error) { return doc, nil })
	if err == nil && len(result.Failed) > 0 {
		err = result.Failed["a"]
	}
	return result, err
}

// TestBesideInTheSameNamespace: where the cluster is registered in the set's own namespace, Flux reads the object itself.
func TestBesideInTheSameNamespace(t *testing.T) {
	spec := &hubv1.AddonSetSpec{}
	must.Do(t, yaml.UnmarshalStrict([]byte("addons: [{name: a, "+fmt.Sprintf(besideChart, `{kind: ConfigMap, name: x, from: Cluster}`)+"}]"), spec))
	result, err := besides(spec, fluxspec.Author{Namespace: "tenants"}, document.ConfigMap(nil, map[string]string{"values.yaml": "a: 1"}))
	if err != nil {
		t.Fatal(err)
	}
	raw := must.Get(yaml.Marshal(result.Objects[0].Manifest().Object)).Or(t)
	if len(result.Objects[0].Copies) > 0 || !strings.Contains(string(raw), "name: x\n") {
		t.Errorf("copies %v of:\n%s", result.Objects[0].Copies, raw)
	}
}

// TestBesideForTeams: the sets of a Team read nothing from beside a cluster.
func TestBesideForTeams(t *testing.T) {
	for name, text := range map[string]string{
		"Values":    "addons: [{name: a, " + fmt.Sprintf(besideChart, `{kind: ConfigMap, name: x, from: Cluster}`) + "}]",
		"Manifests": `addons: [{name: a, manifests: {manifestsFrom: [{kind: Secret, name: x, from: Cluster}]}}]`,
		"Variables": `{variablesFrom: [{configMap: x, from: Cluster}], addons: [{name: a, manifests: {objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}]}}]}`,
		"Overlay":   `{addons: [{name: a, manifests: {manifestsFrom: [{kind: Secret, name: x}]}}], overlays: [{name: o, when: "<< true >>", addons: [{name: a, manifests: {manifestsFrom: [{kind: Secret, name: x, from: Cluster}]}}]}]}`,
		"Patch":     `{addons: [{name: a, manifests: {manifestsFrom: [{kind: Secret, name: x}]}}], overlays: [{name: o, when: "<< true >>", addons: [{name: a, patches: [{op: add, path: /manifestsFrom/0/from, value: Cluster}]}]}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			spec := &hubv1.AddonSetSpec{}
			must.Do(t, yaml.UnmarshalStrict([]byte(text), spec))
			doc := document.Secret(nil, map[string]string{hubv1.ShareAnnotation: "team"}, "", map[string][]byte{"values.yaml": []byte("a: 1")})
			_, err := besides(spec, fluxspec.Author{Namespace: "team", Team: &fluxspec.TeamRules{}}, doc)
			if err == nil || !strings.Contains(err.Error(), fluxspec.TeamFrom) {
				t.Errorf("got %v, want %q", err, fluxspec.TeamFrom)
			}
		})
	}
}

// TestVariablesBesideTheCluster: variables from beside a cluster are the cluster's. They are stronger than the set's and its overlays', weaker than
// those of the registration, and reach no further.
func TestVariablesBesideTheCluster(t *testing.T) {
	const set = `{variables: {size: set, zone: set, image: set}, variablesFrom: [{configMap: "<< cluster.name >>-facts", from: Cluster}],
		overlays: [{name: o, when: "<< true >>", variables: {size: overlay}}],
		addons: [{name: a, helmRelease: {chart: {spec: {chart: "<< vars.image >>", sourceRef: {kind: HelmRepository, name: r}}}, values: {size: "<< vars.size >>", zone: "<< vars.zone >>"}}}]}`
	spec := &hubv1.AddonSetSpec{}
	must.Do(t, yaml.UnmarshalStrict([]byte(set), spec))
	p := compiled(t, spec)
	in := besideInput()
	in.Variables = []variables.Layer{{Name: "registration", Values: map[string]any{"zone": "registration"}}}
	doc := document.ConfigMap(map[string]string{hubv1.ShareAnnotation: "flux-system"}, map[string]string{"size": "beside", "zone": "beside", "image": "beside"})
	result, err := render.Complete(p, target("tenant1"), in, func(ref document.Ref) (document.Document, error) {
		if ref != (document.Ref{Kind: "ConfigMap", Name: "tenant1-facts", Namespace: "tenants"}) {
			t.Errorf("read %v", ref)
		}
		return doc, nil
	})
	if err != nil || len(result.Objects) != 1 {
		t.Fatal(err, result.Failed)
	}
	raw, err := yaml.Marshal(result.Objects[0].Shared[0].Object.Object)
	if err != nil || !strings.Contains(string(raw), "chart: set\n") {
		t.Errorf("the cluster decided the chart: %v\n%s", err, raw)
	}
	if len(result.Refused) != 1 || !strings.Contains(result.Refused[0].String(), `the cluster's variable "image"`) {
		t.Errorf("refused %v", result.Refused)
	}
	values := result.Objects[0].Object.Object["spec"].(map[string]any)["values"]
	if got := fmt.Sprint(values); got != "map[size:beside zone:registration]" {
		t.Errorf("values %s", got)
	}
}

// olderFlux has the CRD of a HelmRelease with the fields of these tests, and without those of Flux 2.9.
func olderFlux(t *testing.T) *crdschema.Library {
	t.Helper()
	older, err := crdschema.Parse([]byte(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: helmreleases.helm.toolkit.fluxcd.io},
		spec: {group: helm.toolkit.fluxcd.io, scope: Namespaced, names: {kind: HelmRelease, plural: helmreleases}, versions: [{name: v2, served: true, storage: true,
		schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {
		chart: {type: object, x-kubernetes-preserve-unknown-fields: true}, interval: {type: string},
		upgrade: {type: object, properties: {remediation: {type: object, x-kubernetes-preserve-unknown-fields: true}}},
		valuesFrom: {type: array, items: {type: object, properties: {kind: {type: string}, name: {type: string}, valuesKey: {type: string}, targetPath: {type: string}}}}}}}}}}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	return older
}

// TestBesideWithAnOlderFlux: a Flux that does not know literal would let a comma in a value set other values of the chart.
func TestBesideWithAnOlderFlux(t *testing.T) {
	doc := document.Secret(nil, map[string]string{hubv1.ShareAnnotation: "flux-system"}, "", map[string][]byte{"values.yaml": []byte("a: 1")})
	for addon, refused := range map[string]string{
		fmt.Sprintf(besideChart, `{kind: Secret, name: x, from: Cluster}`):                "",
		fmt.Sprintf(besideChart, `{kind: Secret, name: x, targetPath: a, from: Cluster}`): "helmRelease.valuesFrom[0].targetPath: this needs Flux 2.9 or newer",
		`manifests: {manifestsFrom: [{kind: Secret, name: x}]}`:                           "manifestsFrom: this needs Flux 2.9 or newer",
		`manifests: {objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}]}`:  "",
	} {
		_, err := besides(besideSpec(t, "addons: [{name: a, "+addon+"}]"), fluxspec.Author{Namespace: "flux-system", Platform: true, Schemas: olderFlux(t)}, doc)
		if (err != nil) != (refused != "") || err != nil && !strings.Contains(err.Error(), refused) {
			t.Errorf("%s: %v, want %q", addon, err, refused)
		}
	}
}

// TestFieldsThatAnOlderFluxLacks: the API server refuses an object with a field that the CRD does not have, also one that the hub adds.
func TestFieldsThatAnOlderFluxLacks(t *testing.T) {
	const manifests = `addons: [{name: a, manifests: {objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}]}}]`
	for schemas, want := range map[*crdschema.Library]bool{nil: true, olderFlux(t): false} {
		result, err := besides(besideSpec(t, manifests), fluxspec.Author{Namespace: "flux-system", Platform: true, Schemas: schemas}, document.Document{})
		if err != nil {
			t.Fatal(err)
		}
		_, there, _ := unstructured.NestedString(result.Objects[0].Manifest().Object, "spec", "upgrade", "chartNameChangeStrategy")
		if there != want {
			t.Errorf("chartNameChangeStrategy is there: %t, want %t", there, want)
		}
	}
}
