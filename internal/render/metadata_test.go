// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/expression"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/metakey"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/render/floating"
	"github.com/chandler-hub/chandler/internal/render/flux"
	"github.com/chandler-hub/chandler/internal/render/variables"
)

const dressed = `
selectAll: true
variables: {team: payments}
sources: [{name: git, kind: GitRepository, spec: {url: https://git.example.org/fleet, ref: {branch: main}}}]
addons:
  - {name: x, kustomization: {sourceRef: {name: git}}}
  - {name: m, manifests: {objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}]}}
`

// own returns the labels and annotations of an object that people may write.
func own(labels, annotations map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range labels {
		if metakey.Refusal(k, true) == "" {
			out[k] = v
		}
	}
	for k, v := range annotations {
		if metakey.Refusal(k, false) == "" {
			out["@"+k] = v
		}
	}
	return out
}

func TestMetadata(t *testing.T) {
	type texts = map[string]string
	for name, tc := range map[string]struct {
		metadata, vars string
		team           bool
		// x is what the Kustomization has, and source its source; omitted what is left out, and refused of the cluster's owner.
		x, source        texts
		omitted, refused []string
	}{
		"None": {x: texts{}, source: texts{}},
		"TheAddonWins": {
			metadata: "set: {labels: {team: a, cost: '1'}, annotations: {event.toolkit.fluxcd.io/team: a}}\naddons: {x: {labels: {team: b}}}",
			x:        texts{"team": "b", "cost": "1", "@event.toolkit.fluxcd.io/team": "a"}, source: texts{"team": "a", "cost": "1", "@event.toolkit.fluxcd.io/team": "a"},
		},
		"ExpressionsAreNotForSources": {
			metadata: "set: {labels: {team: << vars.team >>, plain: a}, annotations: {example.org/c: 'c << cluster.name >>'}}",
			x:        texts{"team": "payments", "plain": "a", "@example.org/c": "c t1"}, source: texts{"plain": "a"},
		},
		"Absent": {metadata: "set: {labels: {team: '<< cluster.labels[?\"team\"] >>'}}", x: texts{}, source: texts{}},
		"AVariableOfTheNextRevision": {
			metadata: "set: {labels: {team: << vars.later >>, plain: a}}", x: texts{"plain": "a"}, source: texts{"plain": "a"},
			omitted: []string{"metadata.labels[team]: "},
		},
		"OfTheClustersOwner": {metadata: "set: {labels: {team: << vars.team >>}}", vars: "team: shop", x: texts{"team": "shop"}, source: texts{}},
		"WrongByTheClustersOwner": {
			metadata: "set: {labels: {team: << vars.team >>}}", vars: "team: a team", x: texts{"team": "payments"}, source: texts{},
			refused: []string{`the cluster's variable "team" is ignored here`},
		},
		"WhatDoesNotCompile": {
			metadata: "set: {labels: {sharding.fluxcd.io/key: a, chandler.dev/cluster-key: b, team: a b, number: << 1 >>, plain: a}}",
			x:        texts{"plain": "a"}, source: texts{"plain": "a"},
			omitted: []string{"metadata.labels[chandler.dev/cluster-key]: is a key of the hub", "metadata.labels[number]: gives a number",
				"metadata.labels[sharding.fluxcd.io/key]: is a key of Flux", "metadata.labels[team]: is \"a b\""},
		},
		"ATeamReadsNoOrigin": {
			metadata: "set: {annotations: {example.org/o: << origin.metadata.name >>}}", team: true, x: texts{}, source: texts{},
			omitted: []string{"metadata.annotations[example.org/o]: reads the origin"},
		},
		"NotKnownYet": {metadata: "set: {annotations: {example.org/n: '<< string(cluster.nodes) >>'}}", x: texts{}, source: texts{},
			omitted: []string{"metadata.annotations[example.org/n]: "}},
		"OfAnotherAddon": {metadata: "addons: {other: {labels: {team: a b}}}", x: texts{}, source: texts{}},
	} {
		t.Run(name, func(t *testing.T) {
			text := dressed
			if tc.team {
				text = dressed[:strings.Index(dressed, "  - {name: m")] // which namespace it goes to is the Team's to say
			}
			p := programOfSpec(t, text)
			before := render1(t, p, &render.Input{})
			in := &render.Input{Metadata: &compile.Metadata{}}
			vars := map[string]any{}
			for text, into := range map[string]any{tc.metadata: in.Metadata, tc.vars: &vars} {
				if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
					t.Fatal(err)
				}
			}
			in.Variables = []variables.Layer{{Name: "own", Values: vars}}
			if tc.team {
				p.Team = &fluxspec.TeamRules{Name: "shop"}
			}
			after := render1(t, p, in)
			x := find(t, after, "x")
			if d := cmp.Diff(tc.x, own(x.Object.GetLabels(), x.Object.GetAnnotations())); d != "" {
				t.Errorf("the Kustomization, -want +got:\n%s", d)
			}
			source := x.Shared[0]
			if d := cmp.Diff(tc.source, own(source.Object.GetLabels(), source.Object.GetAnnotations())); d != "" {
				t.Errorf("its source, -want +got:\n%s", d)
			}
			was := find(t, before, "x")
			if source.Object.GetName() != was.Shared[0].Object.GetName() {
				t.Error("the source has another name, so what runs changes")
			}
			if same := source.Hash == was.Shared[0].Hash; same != (len(tc.source) == 0) {
				t.Errorf("the source's hash is the same: %t", same)
			}
			if a, b := hash(x), hash(was); !tc.team && (a == b) != (len(tc.x) == 0) {
				t.Errorf("hash %s, and was %s", a, b)
			}
			if d := cmp.Diff(was.Object.Object["spec"], x.Object.Object["spec"]); d != "" && !tc.team {
				t.Errorf("its spec has changed: %s", d)
			}
			has(t, "omitted", slices.Collect(eachText(after.Omitted)), tc.omitted)
			var refused []string
			for _, r := range after.Refused {
				refused = append(refused, r.String())
			}
			has(t, "refused", refused, tc.refused)
		})
	}
}

// TestMetadataOfManifests: an add-on of manifests with CustomResourceDefinitions has two objects.
func TestMetadataOfManifests(t *testing.T) {
	p := programOfSpec(t, "selectAll: true\naddons:\n- name: m\n  metadata: {labels: {team: a}}\n  manifests: {objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}, "+
		"{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: b}}]}")
	got := map[string]string{}
	for _, o := range render1(t, p, &render.Input{}).Objects {
		got[o.Addon] = o.Manifest().GetLabels()["team"]
	}
	if want := map[string]string{"m": "a", "m-crds": "a"}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func render1(t *testing.T, p *compile.Program, in *render.Input) *render.Result {
	t.Helper()
	in.Cluster = &expression.Cluster{Name: "t1", Unknown: map[string]expression.Lack{"nodes": {Why: "it does not say"}}}
	to := target("t1")
	to.Chart = render.ManifestChart{URL: "http://hub/chart", Name: "c", Digest: "sha256:1"}
	result, err := render.Render(p, to, in)
	if err != nil || len(result.Failed) > 0 {
		t.Fatal(err, result.Failed)
	}
	return result
}

func find(t *testing.T, r *render.Result, addon string) *flux.Object {
	t.Helper()
	i := slices.IndexFunc(r.Objects, func(o flux.Object) bool { return o.Addon == addon })
	if i < 0 {
		t.Fatalf("there is no %s", addon)
	}
	return &r.Objects[i]
}

func hash(o *flux.Object) string {
	o.Link(nil, nil)
	return o.Manifest().GetAnnotations()[hubv1.HashAnnotation]
}

func eachText(errs render.Errors) func(func(string) bool) {
	return func(yield func(string) bool) {
		for _, e := range errs {
			if !yield(e.Error()) {
				return
			}
		}
	}
}

func has(t *testing.T, what string, got, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: got %q, want %q", what, got, want)
	}
	for i := range want {
		if !strings.Contains(got[i], want[i]) {
			t.Errorf("%s: got %q, want %q", what, got[i], want[i])
		}
	}
}

// TestMetadataOfWhatFloats: who pins sources keeps the very objects that clusters without a pin have, or the two would write over each other.
func TestMetadataOfWhatFloats(t *testing.T) {
	p := programOfSpec(t, dressed+"metadata: {labels: {team: a}}")
	to := target("t1")
	floats := floating.Find(p, to, floating.Choices{}, nil).Objects
	if len(floats) != 1 {
		t.Fatalf("%d float", len(floats))
	}
	source := find(t, render1(t, p, &render.Input{}), "x").Shared[0]
	if f := floats[0].Shared; f.Object.GetName() != source.Object.GetName() || f.Hash != source.Hash || f.Object.GetLabels()["team"] != "a" {
		t.Errorf("%s has hash %s and labels %v, want %s, %s", f.Object.GetName(), f.Hash, f.Object.GetLabels(), source.Object.GetName(), source.Hash)
	}
}
