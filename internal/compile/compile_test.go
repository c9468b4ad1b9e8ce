// SPDX-License-Identifier: Apache-2.0

package compile_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/must"
)

var platform = fluxspec.Author{Namespace: "flux-system", Platform: true}

// addons reads a list of add-ons. $CHART, $KS and their like stand for bodies that are complete.
func addons(t *testing.T, text string) []hubv1.Addon {
	t.Helper()
	text = strings.NewReplacer(
		"$CHART", "chart: {spec: {chart: podinfo, sourceRef: {kind: HelmRepository, name: podinfo}}}",
		"$KS", "sourceRef: {kind: GitRepository, name: fleet}",
	).Replace(text)
	var out []hubv1.Addon
	must.Do(t, yaml.UnmarshalStrict([]byte(text), &out))
	return out
}

func compileAddons(in []hubv1.Addon, author fluxspec.Author) (*compile.Program, error) {
	return compile.Compile(&hubv1.AddonSetSpec{Addons: in}, author)
}

// exported compares what others see of a program.
var exported = cmpopts.IgnoreUnexported(compile.Program{}, compile.Addon{})

func TestCompile(t *testing.T) {
	in := addons(t, `
- {name: base, kustomization: {$KS, path: ./base}}
- {name: crds, helmRelease: {$CHART}, deletionPolicy: Orphan}
- {name: web, helmRelease: {$CHART, values: {replicas: 2, none: null}}, dependsOn: [{name: crds}], deletionPolicy: Delete}
`)
	got := must.Get(compileAddons(in, platform)).Or(t)
	chart := func() map[string]any {
		return map[string]any{"spec": map[string]any{"chart": "podinfo", "sourceRef": map[string]any{"kind": "HelmRepository", "name": "podinfo"}}}
	}
	want := &compile.Program{Platform: true, Sources: map[string]compile.Source{}, Addons: []compile.Addon{
		{Name: "base", Kind: "Kustomization", Body: map[string]any{"sourceRef": map[string]any{"kind": "GitRepository", "name": "fleet"}, "path": "./base"}},
		{Name: "crds", Kind: "HelmRelease", Orphan: true, Body: map[string]any{"chart": chart()}},
		{Name: "web", Kind: "HelmRelease", DependsOn: []hubv1.AddonReference{{Name: "crds"}}, Body: map[string]any{"chart": chart(), "values": map[string]any{"replicas": int64(2), "none": nil}}},
	}}
	must.Equal(t, want, got, exported)
}

func TestCompileRefuses(t *testing.T) {
	cases := map[string]struct {
		addons string
		author fluxspec.Author
		want   []string
	}{
		"TwoKinds": {
			addons: `[{name: x, helmRelease: {$CHART}, kustomization: {$KS}}]`,
			want:   []string{`add-on "x": write exactly one of helmRelease, kustomization and manifests`},
		},
		"NoKind": {
			addons: `[{name: x}]`,
			want:   []string{`add-on "x": write exactly one of helmRelease, kustomization and manifests`},
		},
		"NoObject": {
			addons: `[{name: x, helmRelease: [1]}, {name: w, kustomization: text}]`,
			want:   []string{`add-on "x": helmRelease: must be an object`, `add-on "w": kustomization: must be an object`},
		},
		"DuplicateNames": {
			addons: `[{name: x, kustomization: {$KS}}, {name: x, kustomization: {$KS}}]`,
			want:   []string{`add-on "x": the name is used twice; an add-on's name is its identity on a cluster`},
		},
		"DuplicateNamesOfTwoKinds": {
			addons: `[{name: x, helmRelease: {$CHART}}, {name: x, kustomization: {$KS}}]`,
			want:   []string{`add-on "x": the name is used twice; an add-on's name is its identity on a cluster`},
		},
		"UnknownDependency": {
			addons: `[{name: x, kustomization: {$KS}, dependsOn: [{name: z}]}, {name: w, kustomization: {$KS}}]`,
			want:   []string{`add-on "x": dependsOn: there is no add-on "z" in this set; it has x, w. For one of another set, write its addonSet`},
		},
		"CycleOfOne": {
			addons: `[{name: x, kustomization: {$KS}, dependsOn: [{name: x}]}]`,
			want:   []string{`add-on "x": dependsOn: add-ons wait for each other: x -> x`},
		},
		"CycleOfTwo": {
			addons: `[{name: x, kustomization: {$KS}, dependsOn: [{name: w}]}, {name: w, kustomization: {$KS}, dependsOn: [{name: x}]}]`,
			want:   []string{`add-on "x": dependsOn: add-ons wait for each other: x -> w -> x`},
		},
		"CycleOfThreeBehindOthers": {
			addons: `
- {name: leaf, kustomization: {$KS}}
- {name: entry, kustomization: {$KS}, dependsOn: [{name: leaf}, {name: a}]}
- {name: a, kustomization: {$KS}, dependsOn: [{name: leaf}, {name: b}]}
- {name: b, kustomization: {$KS}, dependsOn: [{name: c}]}
- {name: c, kustomization: {$KS}, dependsOn: [{name: a}]}
`,
			want: []string{`add-on "a": dependsOn: add-ons wait for each other: a -> b -> c -> a`},
		},
		"OneReleaseTwice": {
			addons: `[{name: x, helmRelease: {$CHART}}, {name: w, helmRelease: {$CHART, releaseName: x, targetNamespace: x}}]`,
			want:   []string{`add-on "w": helmRelease.releaseName: release "x" in namespace "x" is add-on "x"'s already`},
		},
		"OneReleaseTwiceByStorageNamespace": {
			addons: `
- {name: x, helmRelease: {$CHART, releaseName: r, targetNamespace: a, storageNamespace: s}}
- {name: w, helmRelease: {$CHART, releaseName: r, targetNamespace: b, storageNamespace: s}}
`,
			want: []string{`add-on "w": helmRelease.releaseName: release "r" in namespace "s" is add-on "x"'s already`},
		},
		"MisspeltField": {
			addons: `[{name: x, helmRelease: {chart: {spec: {chart: podinfo, versoin: 6.x, sourceRef: {kind: HelmRepository, name: podinfo}}}}}]`,
			want:   []string{`add-on "x": helmRelease.chart.spec.versoin: is not a field of a Flux HelmRelease; did you mean version?`},
		},
		"MisspeltFieldOfAKustomization": {
			addons: `[{name: x, kustomization: {$KS, pahts: ./a}}]`,
			want:   []string{`add-on "x": kustomization.pahts: is not a field of a Flux Kustomization`},
		},
		"ForeignSource": {
			addons: `[{name: x, kustomization: {sourceRef: {kind: GitRepository, name: fleet, namespace: other}}}]`,
			author: fluxspec.Author{Namespace: "team-a"},
			want: []string{`add-on "x": kustomization.sourceRef.namespace: is "other": ` +
				`a set outside the platform namespaces may refer only to sources in its own namespace, "team-a"`},
		},
		"EverythingAtOnce": {
			addons: `
- {name: x, helmRelease: {$CHART, suspend: true}, dependsOn: [{name: z}]}
- {name: w}
`,
			want: []string{
				"add-on \"x\": helmRelease.suspend: would stop every cluster; suspend the generated object of one cluster with `flux suspend` instead",
				`add-on "w": write exactly one of helmRelease, kustomization and manifests`,
				`add-on "x": dependsOn: there is no add-on "z" in this set; it has x, w. For one of another set, write its addonSet`,
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			author := tc.author
			if author.Namespace == "" {
				author = platform
			}
			got, err := compileAddons(addons(t, tc.addons), author)
			if got != nil {
				t.Errorf("a set that is refused must have no program, got %v", got)
			}
			var errs compile.Errors
			if !errors.As(err, &errs) {
				t.Fatalf("want compile.Errors, got %T: %v", err, err)
			}
			lines := make([]string, len(errs))
			for i := range errs {
				lines[i] = errs[i].Error()
			}
			must.Equal(t, tc.want, lines)
			if d := cmp.Diff(strings.Join(tc.want, "; "), err.Error()); d != "" {
				t.Errorf("all of them: -want +got:\n%s", d)
			}
		})
	}
}

func TestCompileAccepts(t *testing.T) {
	cases := map[string]string{
		"OneReleaseNameInTwoNamespaces": `[{name: x, helmRelease: {$CHART}}, {name: w, helmRelease: {$CHART, releaseName: x}}]`,
		"TwoReleasesInOneNamespace":     `[{name: x, helmRelease: {$CHART}}, {name: w, helmRelease: {$CHART, targetNamespace: x}}]`,
		"DependencyOfAnotherKind":       `[{name: x, kustomization: {$KS}, dependsOn: [{name: w}]}, {name: w, helmRelease: {$CHART}}]`,
		"ADiamond": `
- {name: d, kustomization: {$KS}, dependsOn: [{name: b}, {name: c}]}
- {name: c, kustomization: {$KS}, dependsOn: [{name: a}]}
- {name: b, kustomization: {$KS}, dependsOn: [{name: a}]}
- {name: a, kustomization: {$KS}}
`,
	}
	for name, text := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := compileAddons(addons(t, text), platform); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestReleaseOf(t *testing.T) {
	cases := map[string]struct {
		body map[string]any
		want compile.Release
	}{
		"Defaults":         {nil, compile.Release{Namespace: "web", Name: "web"}},
		"ReleaseName":      {map[string]any{"releaseName": "r"}, compile.Release{Namespace: "web", Name: "r"}},
		"TargetNamespace":  {map[string]any{"targetNamespace": "t"}, compile.Release{Namespace: "t", Name: "web"}},
		"StorageNamespace": {map[string]any{"targetNamespace": "t", "storageNamespace": "s"}, compile.Release{Namespace: "s", Name: "web"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, known := compile.ReleaseOf("web", fluxspec.HelmReleaseKind, tc.body, nil)
			if got != tc.want || !known {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}
