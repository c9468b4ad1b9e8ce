// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/expression"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/render"
)

// TestValuesAreAnObject: Flux ignores values that are none, and the chart runs with its defaults. No layer may give such values: not the
// set, an expression, an overlay or a patch. An override is ignored.
func TestValuesAreAnObject(t *testing.T) {
	const (
		of  = `helmRelease.values: is a `
		web = `chart: {spec: {chart: c, sourceRef: {kind: HelmRepository, name: r}}}`
	)
	overlay := func(change string) string {
		return `addons: [{name: a, helmRelease: {` + web + `, values: {b: 1}}}], overlays: [{name: o, when: "<< true >>", addons: [{name: a, ` + change + `}]}]`
	}
	for name, tc := range map[string]struct{ spec, override, compiles, renders, refused string }{
		"Text":           {spec: `addons: [{name: a, helmRelease: {` + web + `, values: "b: 1"}}]`, compiles: of + "text"},
		"TextAndMore":    {spec: `addons: [{name: a, helmRelease: {` + web + `, values: "b: << cluster.name >>"}}]`, compiles: of + "text, and must be an object: Flux ignores anything else"},
		"TypeIsKnown":    {spec: `addons: [{name: a, helmRelease: {` + web + `, values: "<< ['b'] >>"}}]`, compiles: of + "list"},
		"Expression":     {spec: `variables: {v: "b: 1"}, addons: [{name: a, helmRelease: {` + web + `, values: << vars.v >>}}]`, renders: of + "text"},
		"Object":         {spec: `variables: {v: {b: 1}}, addons: [{name: a, helmRelease: {` + web + `, values: << vars.v >>}}]`},
		"Overlay":        {spec: overlay(`helmRelease: {values: [b]}`), compiles: `overlay "o", add-on "a": ` + of + "list"},
		"OverlayOfAText": {spec: "variables: {v: x}, " + overlay(`helmRelease: {values: << vars.v >>}`), renders: of + "text"},
		"Patch":          {spec: overlay(`patches: [{op: replace, path: /values, value: "b: 2"}]`), renders: of + "text"},
		"Override":       {spec: `addons: [{name: a, helmRelease: {` + web + `}}]`, override: `"b: 2"`, refused: of + "text"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := &hubv1.AddonSetSpec{}
			if err := yaml.UnmarshalStrict([]byte("{"+tc.spec+"}"), spec); err != nil {
				t.Fatal(err)
			}
			p, err := compile.Compile(spec, fluxspec.Author{Namespace: "flux-system", Platform: true})
			if tc.compiles != "" || err != nil {
				if err == nil || tc.compiles == "" || !strings.Contains(err.Error(), tc.compiles) {
					t.Fatalf("got %v, want %q", err, tc.compiles)
				}
				return
			}
			in := &render.Input{Cluster: &expression.Cluster{Name: "tenant1"}}
			if tc.override != "" {
				in.Overrides = []hubv1.Override{{AddonBody: hubv1.AddonBody{HelmRelease: &apiextensionsv1.JSON{Raw: []byte(`{"values": ` + tc.override + `}`)}}, Name: "a"}}
			}
			got := renders(t, p, target("tenant1"), in)
			if failed := got.Failed["a"].Error(); (tc.renders == "") != (failed == "") || !strings.Contains(failed, tc.renders) {
				t.Errorf("got %q, want %q", failed, tc.renders)
			}
			if tc.refused != "" && (len(got.Refused) != 1 || !strings.Contains(got.Refused[0].String(), tc.refused)) {
				t.Errorf("got %v, want %q", got.Refused, tc.refused)
			}
		})
	}
}
