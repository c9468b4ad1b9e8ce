// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/chartutil"
	"helm.sh/helm/v4/pkg/chart/common"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/render/document"
)

func besideSpec(t *testing.T, text string) *hubv1.AddonSetSpec {
	spec := &hubv1.AddonSetSpec{}
	must.Do(t, yaml.UnmarshalStrict([]byte(text), spec))
	return spec
}

// A change of the set's own Secret and one of that of the same name beside the cluster both change what Flux is given.
func TestBesideSameNameInBothNamespaces(t *testing.T) {
	hash := func(own, beside string) string {
		p := compiled(t, besideSpec(t, `addons: [{name: a, manifests: {manifestsFrom: [{kind: Secret, name: x}, {kind: Secret, name: x, from: Cluster}]}}]`))
		to := target("tenant1")
		to.Chart = render.ManifestChart{URL: "http://chart", Name: "c", Digest: "sha256:0"}
		result, err := render.Complete(p, to, besideInput(), func(ref document.Ref) (document.Document, error) {
			doc := document.Secret(nil, map[string]string{hubv1.ShareAnnotation: "flux-system"}, "", map[string][]byte{"k": []byte("a: 1")})
			if doc.Version = own; ref.Namespace != "" {
				doc.Version = beside
			}
			return doc, nil
		})
		if err != nil || len(result.Failed) > 0 {
			t.Fatal(err, result.Failed)
		}
		raw, _ := json.Marshal(result.Objects[0].Object.Object)
		return string(raw)
	}
	if hash("1", "1") == hash("2", "1") {
		t.Error("a change of the set's own Secret changes nothing of the release")
	}
	if hash("1", "1") == hash("1", "2") {
		t.Error("a change of the one beside the cluster changes nothing of the release")
	}
}

// More ways in which a Team could say it.
func TestBesideTeams(t *testing.T) {
	for name, text := range map[string]string{
		"ListByExpression":    `addons: [{name: a, helmRelease: {chart: {spec: {chart: c, sourceRef: {kind: HelmRepository, name: r}}}, valuesFrom: "<< [{'kind':'Secret','name':'x','from':'Cluster'}] >>"}}]`,
		"EntryByExpression":   `addons: [{name: a, helmRelease: {chart: {spec: {chart: c, sourceRef: {kind: HelmRepository, name: r}}}, valuesFrom: ["<< {'kind':'Secret','name':'x','from':'Cluster'} >>"]}}]`,
		"FromNull":            `addons: [{name: a, helmRelease: {chart: {spec: {chart: c, sourceRef: {kind: HelmRepository, name: r}}}, valuesFrom: [{kind: Secret, name: x, from: null}]}}]`,
		"FromEmpty":           `addons: [{name: a, helmRelease: {chart: {spec: {chart: c, sourceRef: {kind: HelmRepository, name: r}}}, valuesFrom: [{kind: Secret, name: x, from: ""}]}}]`,
		"SubstituteByVars":    `{variables: {f: {substituteFrom: [{kind: Secret, name: x, from: Cluster}]}}, addons: [{name: a, kustomization: {sourceRef: {kind: GitRepository, name: r}, postBuild: "<< vars.f >>"}}]}`,
		"ManifestsExpression": `addons: [{name: a, manifests: {manifestsFrom: "<< [{'kind':'Secret','name':'x','from':'Cluster'}] >>"}}]`,
		"PatchWhole":          `{addons: [{name: a, manifests: {manifestsFrom: [{kind: Secret, name: x}]}}], overlays: [{name: o, when: "<< true >>", addons: [{name: a, patches: [{op: add, path: /manifestsFrom/-, value: {kind: Secret, name: y, from: Cluster}}]}]}]}`,
		"ManifestsFromNull":   `addons: [{name: a, manifests: {manifestsFrom: [{kind: Secret, name: x, from: null}]}}]`,
		"CaseFold":            `addons: [{name: a, manifests: {manifestsFrom: [{kind: Secret, name: x, From: Cluster}]}}]`,
		"CaseFold2":           `addons: [{name: a, manifests: {manifestsFrom: "<< [{'kind':'Secret','name':'x','FROM':'Cluster'}] >>"}}]`,
		"CaseFoldList":        `addons: [{name: a, manifests: {ManifestsFrom: [{kind: Secret, name: x, from: Cluster}]}}]`,
	} {
		t.Run(name, func(t *testing.T) {
			doc := document.Secret(nil, map[string]string{hubv1.ShareAnnotation: "team"}, "", map[string][]byte{"values.yaml": []byte("a: 1")})
			result, err := besides(besideSpec(t, text), fluxspec.Author{Namespace: "team", Team: &fluxspec.TeamRules{}}, doc)
			if err == nil && len(result.Objects) > 0 && len(result.Objects[0].Copies) > 0 {
				t.Errorf("copies %v", result.Objects[0].Copies)
			}
			t.Log(err)
			_, err = besides(besideSpec(t, text), fluxspec.Author{Namespace: "flux-system", Platform: true}, doc)
			t.Log("platform:", err)
		})
	}
}

// What is not there and what is not shared look the same in all that is rendered.
func TestBesideExistence(t *testing.T) {
	theirs := document.Secret(nil, map[string]string{hubv1.ShareAnnotation: "other"}, "", map[string][]byte{"values.yaml": []byte("kind: CustomResourceDefinition\nmetadata: {name: x}")})
	for name, addon := range map[string]string{
		"Values":     fmt.Sprintf(besideChart, `{kind: Secret, name: x, optional: true, from: Cluster}`),
		"Substitute": `kustomization: {sourceRef: {kind: GitRepository, name: r}, postBuild: {substituteFrom: [{kind: Secret, name: x, optional: true, from: Cluster}]}}`,
		"Manifests":  `manifests: {manifestsFrom: [{kind: Secret, name: x, optional: true, key: values.yaml, from: Cluster}, {kind: Secret, name: x, optional: true, from: Cluster}, {kind: Secret, name: x, optional: true, copyAs: {}, from: Cluster}]}`,
		"Required":   `manifests: {manifestsFrom: [{kind: Secret, name: x, key: nope, from: Cluster}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			var out []string
			for _, doc := range []document.Document{{}, theirs} {
				result, err := besides(besideSpec(t, "addons: [{name: a, "+addon+"}]"), fluxspec.Author{Namespace: "flux-system", Platform: true}, doc)
				text := fmt.Sprint(err)
				if err == nil {
					for _, o := range result.Objects {
						raw, _ := json.Marshal(o.Manifest().Object)
						text += string(raw)
					}
				}
				out = append(out, text)
			}
			if out[0] != out[1] {
				t.Errorf("not there:\n%s\nnot shared:\n%s", out[0], out[1])
			}
			t.Log(strings.Contains(out[0], "optional"))
		})
	}
}

// With a targetPath the owner of an object decides the value there, and no other (docs/addonsets.md): Flux takes a comma for the next assignment.
func TestBesideTargetPathInjects(t *testing.T) {
	doc := document.Secret(nil, map[string]string{hubv1.ShareAnnotation: "flux-system"}, "", map[string][]byte{"password": nil})
	result, err := besides(besideSpec(t, "addons: [{name: a, "+fmt.Sprintf(besideChart, `{kind: Secret, name: x, valuesKey: password, targetPath: database.password, from: Cluster}`)+"}]"),
		fluxspec.Author{Namespace: "flux-system", Platform: true}, doc)
	if err != nil {
		t.Fatal(err)
	}
	from := result.Objects[0].Object.Object["spec"].(map[string]any)["valuesFrom"].([]any)[0].(map[string]any)
	values, replace := common.Values{"image": map[string]any{"repository": "good"}}, chartutil.ReplacePathValue
	if from["literal"] == true {
		replace = chartutil.ReplacePathLiteralValue
	}
	must.Do(t, replace(values, from["targetPath"].(string), "x,image.repository=evil,securityContext.privileged=true"))
	if got := values["image"].(map[string]any)["repository"]; got != "good" {
		t.Errorf("the owner of the Secret decides the image: %v", values)
	}
}
