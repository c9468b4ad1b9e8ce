// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/render/variables"
)

// TestVariablesOfAClusterAreTraced: what a cluster's owner sets, changes or takes away is a say, wherever an expression reads it: directly, through another
// variable, by asking whether it is there, or all at once. Where it may not be, the add-on is delivered as the set wants it.
func TestVariablesOfAClusterAreTraced(t *testing.T) {
	cases := map[string]struct {
		addon     string // the add-on's body and more, with $E for the expression
		variables map[string]any
		want      string // part of the refusal; empty for none
	}{
		"Set":               {"path: << vars.x >>", map[string]any{"x": "theirs"}, `depends on the cluster's variable "x"`},
		"ThroughAnother":    {"path: << vars.viaX >>", map[string]any{"x": "theirs"}, `depends on the cluster's variable "x"`},
		"TakenAway":         {`path: "<< has(vars.x) ? 'safe' : 'unsafe' >>"`, map[string]any{"x": nil}, `depends on the cluster's variable "x"`},
		"TakenAwayOptional": {`path: "<< vars.?x.orValue('unsafe') >>"`, map[string]any{"x": nil}, `depends on the cluster's variable "x"`},
		"PartOfAMap":        {"path: << vars.m.a >>", map[string]any{"m": map[string]any{"a": "theirs"}}, `depends on the cluster's variable "m"`},
		"AllAtOnce":         {"path: << string(size(vars)) >>", map[string]any{"other": int64(1)}, `depends on the cluster's variable "other"`},
		"ByAName":           {"path: << vars['x' + ''] >>", map[string]any{"x": "theirs"}, `depends on the cluster's variable`},
		"NotRead":           {"path: << vars.own >>", map[string]any{"x": "theirs"}, ""},
		"WhereItMay":        {"path: ./a, postBuild: {substitute: {a: << vars.x >>}}", map[string]any{"x": "theirs"}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			text := "selectAll: true\nvariables: {x: safe, own: own, viaX: \"<< vars.x >>\", m: {a: safe}}\naddons:\n- {name: a, kustomization: {sourceRef: {kind: GitRepository, name: r}, " + quote(tc.addon) + "}}\n"
			p := programOfSpec(t, text)
			to, in := fleetInput(1)
			in.Variables = []variables.Layer{{Name: "the cluster", Values: tc.variables}}
			r := renders(t, p, to, in)
			if len(r.Failed) > 0 || len(r.Objects) != 1 {
				t.Fatalf("the add-on does not come out: %v", r.Failed)
			}
			var got string
			for _, refused := range r.Refused {
				got += refused.String()
			}
			if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			path, _, _ := unstructured.NestedString(r.Objects[0].Object.Object, "spec", "path")
			if strings.Contains(path, "theirs") || path == "unsafe" {
				t.Errorf("the cluster's owner has chosen path %q", path)
			}
		})
	}
}

// quote puts bare expressions into quotes, as YAML wants them.
func quote(s string) string {
	if strings.Contains(s, `"`) {
		return s
	}
	return strings.NewReplacer("<<", `"<<`, ">>", `>>"`).Replace(s)
}

// Objects cannot be merged into an expression: the base would be lost without a word.
func TestObjectsAreNotMergedIntoAnExpression(t *testing.T) {
	text := `{selectAll: true, variables: {objs: []}, addons: [{name: a, manifests: {objects: "<< vars.objs >>"}}],
		overlays: [{name: o, clusterSelector: {matchLabels: {region: eu}}, addons: [{name: a, manifests: {objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}]}}]}]}`
	p := programOfSpec(t, text)
	to, in := fleetInput(1)
	to.Chart = render.ManifestChart{URL: "http://charts", Name: "c", Digest: "sha256:0"}
	r := renders(t, p, to, in)
	if got := r.Failed["a"].Error(); !strings.Contains(got, "objects cannot be merged into what is not known yet") {
		t.Errorf("got %q", got)
	}
}
