// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chandler-hub/chandler/internal/render"
)

// TestOverlayNamesTheNamespace: an object without a namespace is in the target namespace, also where nobody has written that one down. An overlay that
// names it changes that object, and adds no second one.
func TestOverlayNamesTheNamespace(t *testing.T) {
	const plain, named = "metadata: {name: info}", "metadata: {name: info, namespace: default}"
	object := func(metadata, color string) string {
		return fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, %s, data: {color: %s}}", metadata, color)
	}
	for name, tc := range map[string]struct{ set, overlay string }{
		"TheOverlayNamesIt": {plain, named},
		"TheSetNamesIt":     {named, plain},
	} {
		t.Run(name, func(t *testing.T) {
			p := programOfSpec(t, "selectAll: true\naddons: [{name: base, manifests: {objects: ["+object(tc.set, "blue")+"]}}]\n"+
				"overlays: [{name: o, when: << true >>, addons: [{name: base, manifests: {objects: ["+object(tc.overlay, "green")+"]}}]}]")
			to, in := fleetInput(1)
			to.Chart = render.ManifestChart{URL: "http://chandler", Name: "manifests", Digest: "sha256:0"}
			r, err := render.Render(p, to, in)
			if err != nil || len(r.Failed) > 0 || len(r.Objects) != 1 {
				t.Fatalf("%v, %v", err, r.Failed)
			}
			if values := fmt.Sprint(r.Objects[0].Manifest().Object["spec"]); strings.Count(values, "kind: ConfigMap") != 1 || !strings.Contains(values, "green") {
				t.Errorf("it has %s", values)
			}
		})
	}
}
