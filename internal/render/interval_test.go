// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/render/floating"
	"github.com/chandler-hub/chandler/internal/render/variables"
)

// TestOwnersIntervalIsNoChart: how often Flux looks at an add-on may be the cluster's owner's to say. The chart is not: it stays the one that the set's
// clusters share, and that a revision holds at a version.
func TestOwnersIntervalIsNoChart(t *testing.T) {
	const chart = "chart: {spec: {chart: podinfo, version: 6.x, sourceRef: {kind: HelmRepository, name: podinfo}}}"
	override := hubv1.Override{Name: "web", AddonBody: hubv1.AddonBody{HelmRelease: &apiextensionsv1.JSON{Raw: []byte(`{"interval": "5m"}`)}}}
	for name, tc := range map[string]struct {
		body      string
		overrides []hubv1.Override
		variables map[string]any
	}{
		"Override":          {body: chart, overrides: []hubv1.Override{override}},
		"OverrideOfTheSets": {body: "interval: 7m, " + chart, overrides: []hubv1.Override{override}},
		"Variable":          {body: "interval: << vars.often >>, " + chart, variables: map[string]any{"often": "5m"}},
		"TheSets":           {body: "interval: 7m, " + chart},
	} {
		t.Run(name, func(t *testing.T) {
			p := programOfSpec(t, "selectAll: true\nvariables: {often: 9m}\naddons: [{name: web, overridable: [interval], helmRelease: {"+tc.body+"}}]\n"+
				"overlays: [{name: o, when: << true >>, addons: [{name: web, helmRelease: {values: {a: 1}}}]}]")
			to, in := fleetInput(1)
			found := floating.Find(p, to, floating.Choices{}, nil)
			if len(found.Objects) != 1 || len(found.Loose) > 0 {
				t.Fatalf("it follows %+v", found)
			}
			p.Pins = &compile.Pins{Sources: map[string]string{found.Objects[0].Key(): "6.9.0"}}
			in.Overrides = tc.overrides
			if tc.variables != nil {
				in.Variables = []variables.Layer{{Name: "the cluster", Values: tc.variables}}
			}
			r, err := render.Render(p, to, in)
			if err != nil || len(r.Objects) != 1 || len(r.Refused) > 0 {
				t.Fatalf("%v, %+v", err, r)
			}
			version, _, _ := unstructured.NestedString(r.Objects[0].Shared[0].Object.Object, "spec", "version")
			if version != "6.9.0" {
				t.Errorf("the cluster gets version %s of the chart, and the revision holds 6.9.0", version)
			}
			interval, _, _ := unstructured.NestedString(r.Objects[0].Manifest().Object, "spec", "interval")
			if owners := tc.overrides != nil || tc.variables != nil; (interval == "5m") != owners {
				t.Errorf("Flux looks at it every %s", interval)
			}
		})
	}
}
