// SPDX-License-Identifier: Apache-2.0

package compile_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/must"
)

const setForSnapshot = `
- {name: web, helmRelease: {$CHART, values: {a: 1, b: {c: [1, 2], d: null}}}, dependsOn: [{name: crds}]}
- {name: crds, helmRelease: {$CHART}}
`

func snapshot(t *testing.T, spec *hubv1.AddonSetSpec) (raw []byte, hash string) {
	t.Helper()
	raw, hash, err := compile.Snapshot(spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	return raw, hash
}

func TestSnapshotHash(t *testing.T) {
	cases := map[string]struct {
		addons string
		change func(*hubv1.AddonSetSpec)
		same   bool
	}{
		"Nothing": {same: true},
		"KeyOrder": {same: true, change: func(s *hubv1.AddonSetSpec) {
			s.Addons[0].HelmRelease.Raw = []byte(`{"values": {"b": {"d": null, "c": [1, 2]}, "a": 1},
				"chart": {"spec": {"sourceRef": {"name": "podinfo", "kind": "HelmRepository"}, "chart": "podinfo"}}}`)
		}},
		"Selector": {same: true, change: func(s *hubv1.AddonSetSpec) {
			s.ClusterSelector = metav1.AddLabelToSelector(&metav1.LabelSelector{}, "env", "prod")
		}},
		"SelectAll":           {same: true, change: func(s *hubv1.AddonSetSpec) { s.SelectAll = true }},
		"Priority":            {same: true, change: func(s *hubv1.AddonSetSpec) { s.Priority = 7 }},
		"DeletionPolicy":      {same: true, change: func(s *hubv1.AddonSetSpec) { s.DeletionPolicy = hubv1.DeletionPolicyOrphan }},
		"AddonDeletionPolicy": {change: func(s *hubv1.AddonSetSpec) { s.Addons[0].DeletionPolicy = hubv1.DeletionPolicyOrphan }},
		"Value":               {addons: strings.Replace(setForSnapshot, "a: 1", "a: 2", 1)},
		"OrderInAList":        {addons: strings.Replace(setForSnapshot, "[1, 2]", "[2, 1]", 1)},
		"NullIsNotAbsent":     {addons: strings.Replace(setForSnapshot, ", d: null", "", 1)},
		"DependsOn":           {change: func(s *hubv1.AddonSetSpec) { s.Addons[0].DependsOn = nil }},
		"Sources":             {change: func(s *hubv1.AddonSetSpec) { s.Sources = []hubv1.Source{{Name: "x"}} }},
		"Variables":           {change: func(s *hubv1.AddonSetSpec) { s.Variables = map[string]apiextensionsv1.JSON{"x": {Raw: []byte("1")}} }},
		"VariablesFrom":       {change: func(s *hubv1.AddonSetSpec) { s.VariablesFrom = []hubv1.VariablesSource{{ConfigMap: "x"}} }},
		"Overlays":            {change: func(s *hubv1.AddonSetSpec) { s.Overlays = []hubv1.Overlay{{Name: "x"}} }},
		"DependsOnASet":       {change: func(s *hubv1.AddonSetSpec) { s.DependsOn = []hubv1.AddonSetReference{{Name: "x"}} }},
		"AddonLess":           {change: func(s *hubv1.AddonSetSpec) { s.Addons = s.Addons[:1] }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, before := snapshot(t, &hubv1.AddonSetSpec{Addons: addons(t, setForSnapshot)})
			text := tc.addons
			if text == "" {
				text = setForSnapshot
			}
			spec := &hubv1.AddonSetSpec{Addons: addons(t, text)}
			if tc.change != nil {
				tc.change(spec)
			}
			if _, after := snapshot(t, spec); (before == after) != tc.same {
				t.Errorf("hash before %s, after %s, want the same: %v", before, after, tc.same)
			}
		})
	}
}

func TestSnapshotRoundTrip(t *testing.T) {
	want := addons(t, setForSnapshot)
	raw, hash := snapshot(t, &hubv1.AddonSetSpec{Addons: want})
	revision, _, err := compile.Content(raw)
	if err != nil {
		t.Fatal(err)
	}
	got := revision.Addons
	plain := func(in []hubv1.Addon) (out any) {
		text := must.Get(yaml.Marshal(in)).Or(t)
		must.Do(t, yaml.Unmarshal(text, &out))
		return out
	}
	must.Equal(t, plain(want), plain(got))
	a := must.Get(compileAddons(want, platform)).Or(t)
	b := must.Get(compileAddons(got, platform)).Or(t)
	if d := cmp.Diff(a, b, exported); d != "" {
		t.Errorf("a revision compiles to another program than its set: -set +revision:\n%s", d)
	}
	if _, again := snapshot(t, &hubv1.AddonSetSpec{Addons: got}); again != hash {
		t.Errorf("the snapshot of a snapshot has hash %s, want %s", again, hash)
	}
}

// A number too large for a float64 must reach the cluster as it was written: the hub renders from revisions.
func TestSnapshotKeepsNumbers(t *testing.T) {
	in := addons(t, `[{name: x, helmRelease: {$CHART}}]`)
	in[0].HelmRelease.Raw = []byte(`{"chart": {"spec": {"chart": "podinfo", "sourceRef": {"kind": "HelmRepository", "name": "podinfo"}}},
		"values": {"big": 9007199254740993, "ratio": 0.5, "small": -7}}`)
	raw, _ := snapshot(t, &hubv1.AddonSetSpec{Addons: in})
	revision, _, err := compile.Content(raw)
	if err != nil {
		t.Fatal(err)
	}
	got := revision.Addons
	want := must.Get(compileAddons(in, platform)).Or(t)
	p := must.Get(compileAddons(got, platform)).Or(t)
	if d := cmp.Diff(want, p, exported); d != "" {
		t.Errorf("a revision compiles to other numbers than its set: -set +revision:\n%s", d)
	}
}

func TestSpecOfARevisionThatIsNone(t *testing.T) {
	_, _, err := compile.Content([]byte("{"))
	if err == nil || err.Error() != "read the revision: unexpected end of JSON input" {
		t.Errorf("got %v", err)
	}
}
