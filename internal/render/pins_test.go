// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/expression"
	"github.com/chandler-hub/chandler/internal/render"
)

// TestPinnedConfigMap: a cluster gets the variables that the revision holds, and Render does not ask for the ConfigMap.
func TestPinnedConfigMap(t *testing.T) {
	p := programOfSpec(t, `{variablesFrom: [{configMap: m}, {configMap: gone, optional: true}],
		addons: [{name: a, helmRelease: {chartRef: {kind: OCIRepository, name: x, namespace: z}, values: {color: "<< vars.color >>"}}}]}`)
	p.Pins = &compile.Pins{ConfigMaps: map[string]map[string]string{"m": {"color": "blue"}, "gone": nil}}
	out := renders(t, p, target("w1"), &render.Input{Cluster: &expression.Cluster{Name: "w1"}})
	if len(out.Failed)+len(out.Refs)+len(out.Missing) > 0 {
		t.Fatalf("%+v", out)
	}
	if color, _, _ := unstructured.NestedString(out.Objects[0].Object.Object, "spec", "values", "color"); color != "blue" {
		t.Errorf("the color is %q", color)
	}
}
