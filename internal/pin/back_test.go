// SPDX-License-Identifier: Apache-2.0

package pin_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/pin"
)

func TestDowngrades(t *testing.T) {
	content := func(text string, pins *compile.Pins) []byte {
		t.Helper()
		spec := &hubv1.AddonSetSpec{}
		if err := yaml.UnmarshalStrict([]byte(text), spec); err != nil {
			t.Fatal(err)
		}
		raw, _, err := compile.Snapshot(spec, pins)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	const set = `{addons: [{name: a, helmRelease: {chart: {spec: {chart: x, version: %A}}}}, {name: m, manifests: {objects: []}}],
		overlays: [{name: o, addons: [{name: a, helmRelease: {chart: {spec: {version: %O}}}}]}]}`
	of := func(addon, overlay, pinned string) []byte {
		return content(strings.NewReplacer("%A", addon, "%O", overlay).Replace(set), &compile.Pins{Sources: map[string]string{
			"HelmChart/ns/x": pinned, "GitRepository/ns/g": commit}})
	}
	got, err := pin.Downgrades(of("v1.10.0", "2.0.0", "0.2.0"), of("v1.9.0", "1.x", "0.1.0"))
	want := []string{"HelmChart ns/x from 0.2.0 to 0.1.0", `the chart of add-on "a" from v1.10.0 to v1.9.0`}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
	if got, err := pin.Downgrades(of("1.9.0", "1.x", "0.1.0"), of("1.10.0", "2.0.0", "0.1.0")); len(got) > 0 || err != nil {
		t.Errorf("upgrades: %v, %v", got, err)
	}
	if _, err := pin.Downgrades([]byte("{"), of("1.0.0", "1.0.0", "1.0.0")); err == nil {
		t.Error("no error for a revision that cannot be read")
	}
}
