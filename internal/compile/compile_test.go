// SPDX-License-Identifier: Apache-2.0

package compile_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/fluxspec"
)

func spec(t *testing.T, text string) *hubv1.AddonSetSpec {
	t.Helper()
	s := &hubv1.AddonSetSpec{}
	if err := yaml.UnmarshalStrict([]byte(text), s); err != nil {
		t.Fatal(err)
	}
	return s
}

const (
	chart = "chart: {spec: {chart: c, sourceRef: {kind: HelmRepository, name: r}}}"
	ks    = "kustomization: {sourceRef: {kind: GitRepository, name: g}}"
)

func TestCompile(t *testing.T) {
	cases := map[string]struct {
		addons string
		want   []string // the errors; none if it compiles
	}{
		"Good":         {"[{name: a, helmRelease: {" + chart + "}}, {name: b, dependsOn: [{name: a}], helmRelease: {" + chart + "}}, {name: c, " + ks + "}]", nil},
		"NoKind":       {"[{name: a}]", []string{`add-on "a": write exactly one of helmRelease and kustomization`}},
		"TwoKinds":     {"[{name: a, helmRelease: {" + chart + "}, " + ks + "}]", []string{`add-on "a": write exactly one of helmRelease and kustomization`}},
		"SameName":     {"[{name: a, " + ks + "}, {name: a, " + ks + "}]", []string{`add-on "a": the name is used twice; an add-on's name is its identity on a cluster`}},
		"Typo":         {"[{name: a, helmRelease: {chart: {spec: {chart: c, versoin: 1.x, sourceRef: {kind: HelmRepository, name: r}}}}}]", []string{`add-on "a": helmRelease.chart.spec.versoin: is not a field of a Flux HelmRelease`}},
		"Unknown":      {"[{name: a, dependsOn: [{name: z}], " + ks + "}]", []string{`add-on "a": dependsOn: there is no add-on "z" in this set; it has a`}},
		"OtherKind":    {"[{name: a, " + ks + "}, {name: b, dependsOn: [{name: a}], helmRelease: {" + chart + "}}]", []string{`add-on "b": dependsOn: "a" is a Kustomization and this is a HelmRelease: Flux orders only objects of one kind`}},
		"Itself":       {"[{name: a, dependsOn: [{name: a}], " + ks + "}]", []string{`add-on "a": dependsOn: add-ons wait for each other: a -> a`}},
		"Cycle":        {"[{name: x, dependsOn: [{name: a}], " + ks + "}, {name: a, dependsOn: [{name: b}], " + ks + "}, {name: b, dependsOn: [{name: c}], " + ks + "}, {name: c, dependsOn: [{name: a}], " + ks + "}]", []string{`add-on "a": dependsOn: add-ons wait for each other: a -> b -> c -> a`}},
		"SameRelease":  {"[{name: a, helmRelease: {" + chart + ", targetNamespace: ns}}, {name: b, helmRelease: {" + chart + ", releaseName: a, storageNamespace: ns}}]", []string{`add-on "b": helmRelease.releaseName: release "a" in namespace "ns" is add-on "a"'s already`}},
		"EveryProblem": {"[{name: a, kustomization: {suspend: true}}, {name: b, kustomization: {pth: x}}]", []string{"add-on \"a\": kustomization.suspend: would stop every cluster; suspend the generated object of one cluster with `flux suspend` instead", `add-on "b": kustomization.pth: is not a field of a Flux Kustomization`}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, err := compile.Compile(spec(t, "{selectAll: true, addons: "+tc.addons+"}").Addons, fluxspec.Author{Namespace: "flux-system", Platform: true})
			if (p == nil) != (err != nil) {
				t.Fatalf("program %v with error %v", p, err)
			}
			want := strings.Join(tc.want, "; ")
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != want {
				t.Errorf("-want +got:\n%s", cmp.Diff(want, got))
			}
		})
	}
}

func TestSnapshot(t *testing.T) {
	hash := func(text string) string {
		t.Helper()
		raw, h, err := compile.Snapshot(spec(t, text))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := compile.Addons(raw); err != nil {
			t.Fatal(err)
		}
		return h
	}
	base := hash("{selectAll: true, addons: [{name: a, helmRelease: {" + chart + ", values: {x: 1, y: 2}}}]}")
	for what, text := range map[string]string{
		"the order of keys":   "{selectAll: true, addons: [{helmRelease: {values: {y: 2, x: 1}, " + chart + "}, name: a}]}",
		"the selector":        "{clusterSelector: {matchLabels: {a: b}}, addons: [{name: a, helmRelease: {" + chart + ", values: {x: 1, y: 2}}}]}",
		"priority and policy": "{selectAll: true, priority: 7, deletionPolicy: Orphan, addons: [{name: a, helmRelease: {" + chart + ", values: {x: 1, y: 2}}}]}",
	} {
		if hash(text) != base {
			t.Errorf("%s makes another revision", what)
		}
	}
	for what, text := range map[string]string{
		"a value":                 "{selectAll: true, addons: [{name: a, helmRelease: {" + chart + ", values: {x: 1, y: 3}}}]}",
		"a null":                  "{selectAll: true, addons: [{name: a, helmRelease: {" + chart + ", values: {x: 1, y: null}}}]}",
		"the policy of an add-on": "{selectAll: true, addons: [{name: a, deletionPolicy: Orphan, helmRelease: {" + chart + ", values: {x: 1, y: 2}}}]}",
	} {
		if hash(text) == base {
			t.Errorf("%s makes no other revision", what)
		}
	}
}
