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

// TestObjectOverExpression: an object of a layer would replace all that an expression gives, since layers are merged before. It is refused,
// and anything else replaces an expression as RFC 7386 says.
func TestObjectOverExpression(t *testing.T) {
	const why = "is one expression in the set, << vars.web >>, and an object cannot be merged with what it gives. Write the object in the set, with an " +
		"expression for each value, or change in an overlay what the expression reads"
	helm := func(values string) string {
		return `{name: a, helmRelease: {chart: {spec: {chart: c, sourceRef: {kind: HelmRepository, name: r}}}, values: ` + values + `}}`
	}
	over := func(body string) string {
		return `{name: o, when: "<< true >>", addons: [{name: a, ` + body + `}]}`
	}
	const object = `{name: a, manifests: {objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: << vars.web >>}]}}`
	for name, tc := range map[string]struct{ addon, overlays, override, compiles, renders, refused string }{
		"Values":      {addon: helm("<< vars.web >>"), overlays: over("helmRelease: {values: {host: b}}"), compiles: `overlay "o", add-on "a": helmRelease.values: ` + why},
		"Below":       {addon: helm("{web: << vars.web >>}"), overlays: over("helmRelease: {values: {web: {host: b}}}"), compiles: `overlay "o", add-on "a": helmRelease.values.web: ` + why},
		"OfAnOverlay": {addon: helm("{}"), overlays: over("helmRelease: {values: << vars.web >>}") + "," + strings.Replace(over("helmRelease: {values: {host: b}}"), "name: o", "name: p", 1), renders: `overlay "p", add-on "a": helmRelease.values: ` + why},
		"InAnObject":  {addon: object, overlays: over(`manifests: {objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {host: b}}]}`), renders: `overlay "o", add-on "a": manifests.objects[0].data: ` + why},
		"Override":    {addon: helm("<< vars.web >>"), override: `{"values": {"host": "b"}}`, refused: `add-on "a": override helmRelease.values: ` + why},
		"AText":       {addon: helm("{web: x-<< vars.web.host >>}"), overlays: over("helmRelease: {values: {web: {host: b}}}")},
		"ANull":       {addon: helm("{web: << vars.web >>}"), overlays: over("helmRelease: {values: {web: null}}")},
		"AList":       {addon: helm("{web: << vars.web >>}"), overlays: over("helmRelease: {values: {web: [b]}}")},
		"AVariable":   {addon: helm("<< vars.web >>"), overlays: `{name: o, when: "<< true >>", variables: {web: {host: b}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			spec := &hubv1.AddonSetSpec{}
			text := "{variables: {web: {replicas: 2, host: a}}, addons: [" + tc.addon + "], overlays: [" + tc.overlays + "]}"
			if err := yaml.UnmarshalStrict([]byte(text), spec); err != nil {
				t.Fatal(err)
			}
			p, err := compile.Compile(spec, fluxspec.Author{Namespace: "flux-system", Platform: true})
			if tc.compiles != "" || err != nil {
				if err == nil || err.Error() != tc.compiles {
					t.Fatalf("got %v, want %q", err, tc.compiles)
				}
				return
			}
			in := &render.Input{Cluster: &expression.Cluster{Name: "tenant1"}}
			if tc.override != "" {
				in.Overrides = []hubv1.Override{{AddonBody: hubv1.AddonBody{HelmRelease: &apiextensionsv1.JSON{Raw: []byte(tc.override)}}, Name: "a"}}
			}
			to := target("tenant1")
			to.Chart = render.ManifestChart{URL: "http://hub.example.org", Name: "chandler-manifests", Digest: "sha256:0"}
			got := renders(t, p, to, in)
			if failed := got.Failed["a"].Error(); failed != tc.renders {
				t.Errorf("got %q, want %q", failed, tc.renders)
			}
			if tc.refused != "" && (len(got.Refused) != 1 || !strings.HasPrefix(got.Refused[0].String(), tc.refused)) {
				t.Errorf("got %v, want %q", got.Refused, tc.refused)
			}
		})
	}
}
