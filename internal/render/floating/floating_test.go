// SPDX-License-Identifier: Apache-2.0

package floating_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/expression"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/render/floating"
)

const someCommit = "8a0a69e0f0910bb3e11b0a4789781ee4f11f8990"

func floatingProgram(t *testing.T, text string) (*compile.Program, render.Target) {
	t.Helper()
	spec := &hubv1.AddonSetSpec{}
	must.Do(t, yaml.UnmarshalStrict([]byte(text), spec))
	p := must.Get(compile.Compile(spec, compile.Author{Namespace: "flux-system", Set: "base", Platform: true})).Or(t)
	return p, render.Target{HubID: "chandler", Namespace: "flux-system", Set: "base"}
}

func TestFloating(t *testing.T) {
	const chart = `{addons: [{name: a, helmRelease: {chart: {spec: {chart: x, %s sourceRef: {kind: HelmRepository, name: charts}}}%s}}]%s}`
	of := func(version, more, rest string) string {
		return strings.Replace(strings.Replace(strings.Replace(chart, "%s", version, 1), "%s", more, 1), "%s", rest, 1)
	}
	eu := labels.Set{"region": "eu"}
	for name, tc := range map[string]struct {
		spec     string
		clusters []labels.Set
		maps     map[string]map[string]string
		// what floats; + marks what a cluster gets, and * what no revision is made without.
		floats, loose []string
	}{
		"ExactChart":      {spec: of("version: 1.2.3,", "", "")},
		"ExactChartWithV": {spec: of("version: v1.2.3,", "", "")},
		"Range":           {spec: of("version: 1.x,", "", ""), floats: []string{"chart x 1.x of HelmRepository charts"}},
		"NoVersion": {spec: of("", "", ""), clusters: []labels.Set{nil},
			floats: []string{"+*chart x * of HelmRepository charts"}},
		"OverlayWithARange": {spec: of("version: 1.2.3,", "", `, overlays: [{name: o, clusterSelector: {matchLabels: {region: eu}},
			addons: [{name: a, helmRelease: {chart: {spec: {version: ">1"}}}}]}]`), clusters: []labels.Set{nil},
			floats: []string{"chart x >1 of HelmRepository charts"}},
		"OverlayOfACluster": {spec: of("version: 1.2.3,", "", `, overlays: [{name: o, clusterSelector: {matchLabels: {region: eu}},
			addons: [{name: a, helmRelease: {chart: {spec: {version: ">1"}}}}]}]`), clusters: []labels.Set{nil, eu},
			floats: []string{"+*chart x >1 of HelmRepository charts"}},
		"TwoOverlaysTogether": {spec: of("version: 1.x,", "", `, overlays: [
			{name: o, clusterSelector: {matchLabels: {region: eu}}, addons: [{name: a, helmRelease: {chart: {spec: {version: 2.x}}}}]},
			{name: p, clusterSelector: {matchLabels: {region: eu}}, addons: [{name: a, helmRelease: {chart: {spec: {chart: z}}}}]}]`),
			clusters: []labels.Set{eu}, floats: []string{"+chart z 2.x of HelmRepository charts", "chart x 1.x of HelmRepository charts",
				"chart x 2.x of HelmRepository charts", "chart z 1.x of HelmRepository charts"}},
		"OverlayWithACondition": {spec: of("version: 1.x,", "", `, overlays: [{name: o, when: "<< cluster.nodes > 3 >>",
			addons: [{name: a, helmRelease: {chart: {spec: {version: 2.x}}}}]}]`), clusters: []labels.Set{eu},
			floats: []string{"chart x 1.x of HelmRepository charts", "chart x 2.x of HelmRepository charts"}},
		"LeftOut": {spec: of("version: 1.x,", "", `, overlays: [{name: o, clusterSelector: {matchLabels: {region: eu}}, addons: [{name: a, exclude: true}]}]`), clusters: []labels.Set{eu},
			floats: []string{"chart x 1.x of HelmRepository charts"}},
		"ExpressionOfTheSet":   {spec: of(`version: "<< vars.v >>",`, "", `, variables: {v: 1.2.3}`), clusters: []labels.Set{eu}},
		"ExpressionWithARange": {spec: of(`version: "<< vars.v >>",`, "", `, variables: {v: 1.x}`), floats: []string{"chart x 1.x of HelmRepository charts"}},
		"ExpressionOfAMap": {spec: of(`version: "<< vars.v >>",`, "", `, variablesFrom: [{configMap: m}]`), maps: map[string]map[string]string{"m": {"v": "1.x"}},
			floats: []string{"chart x 1.x of HelmRepository charts"}},
		"ExpressionOfTheCluster": {spec: of(`version: "<< cluster.labels.v >>",`, "", ""),
			loose: []string{"addons[a].helmRelease.chart.spec.version: an expression that differs from cluster to cluster, or fails"}},
		"ExpressionOfTheOrigin": {spec: of(`version: "<< vars.v >>",`, "", `, variables: {v: '<< has(origin.spec) ? "1.2.3" : "1.2.4" >>'}`),
			loose: []string{"addons[a].helmRelease: an expression beside others that read the cluster's origin"}},
		"ExpressionElsewhere": {spec: of("version: 1.x,", `, values: {name: "<< cluster.name >>"}`, ""), floats: []string{"chart x 1.x of HelmRepository charts"}},
		"OverlayThatNamesIt": {spec: of("version: 1.x,", "", `, overlays: [{name: o, clusterSelector: {matchLabels: {region: eu}},
			addons: [{name: a, helmRelease: {values: {a: 1}}}]}]`), clusters: []labels.Set{eu}, floats: []string{"+*chart x 1.x of HelmRepository charts"}},
		"OverlayOfAnother": {spec: `{addons: [{name: a, helmRelease: {chart: {spec: {chart: x, version: 1.x, sourceRef: {kind: HelmRepository, name: charts}}}}}, {name: b, manifests: {manifestsFrom: [{kind: ConfigMap, name: m}]}}],
			overlays: [{name: o, clusterSelector: {matchLabels: {region: eu}}, addons: [{name: b, exclude: true}]}]}`, clusters: []labels.Set{eu},
			loose: []string{"addons[b].manifests.manifestsFrom: ConfigMap m"}, floats: []string{"+*chart x 1.x of HelmRepository charts"}},
		"NeverDelivered": {spec: strings.Replace(of("version: 1.x,", "", ""), "name: a,", `name: a, when: "<< false >>",`, 1), clusters: []labels.Set{eu}},
		"SometimesDelivered": {spec: strings.Replace(of("version: 1.x,", "", ""), "name: a,", `name: a, when: "<< cluster.nodes > 3 >>",`, 1), clusters: []labels.Set{eu},
			floats: []string{"chart x 1.x of HelmRepository charts"}},
		"Include": {spec: `{sources: [{name: g, kind: GitRepository, spec: {url: "https://x", ref: {commit: ` + someCommit + `}, include: [{repository: {name: h}}]}}],
			addons: [{name: a, kustomization: {sourceRef: {name: g}}}]}`, loose: []string{"addons[a].kustomization.sourceRef: GitRepository g, which includes others"}},
		"Commit": {spec: `{sources: [{name: g, kind: GitRepository, spec: {url: "https://x", ref: {commit: ` + someCommit + `}}}],
			addons: [{name: a, kustomization: {sourceRef: {name: g}}}]}`},
		"Branch": {spec: `{sources: [{name: g, kind: GitRepository, spec: {url: "https://x", ref: {branch: main}}}],
			addons: [{name: a, kustomization: {sourceRef: {name: g}, postBuild: {substituteFrom: [{kind: Secret, name: s}]}}}]}`,
			floats: []string{"branch main of GitRepository g"}, loose: []string{"addons[a].kustomization.postBuild.substituteFrom: Secret s"}},
		"VerifiedTag": {spec: `{sources: [{name: g, kind: GitRepository, spec: {url: "https://x", ref: {tag: v1}, verify: {mode: Tag, secretRef: {name: k}}}}],
			addons: [{name: a, kustomization: {sourceRef: {name: g}}}]}`,
			loose: []string{"addons[a].kustomization.sourceRef: GitRepository g, whose verified signature is that of a tag, and a commit has none"}},
		"PullRequest": {spec: `{sources: [{name: g, kind: GitRepository, spec: {url: "https://x", ref: {name: refs/pull/1/head}}}],
			addons: [{name: a, kustomization: {sourceRef: {name: g}}}]}`,
			loose: []string{"addons[a].kustomization.sourceRef: GitRepository g, whose ref.name is neither a branch nor a tag: Flux cannot fetch a commit from there"}},
		"SourceOfSomebodyElse": {spec: `{addons: [{name: a, kustomization: {sourceRef: {kind: GitRepository, name: fleet}}}]}`,
			loose: []string{"addons[a].kustomization.sourceRef: GitRepository fleet, which is not one of spec.sources"}},
		"Bucket": {spec: `{sources: [{name: b, kind: Bucket, spec: {endpoint: x, bucketName: z}}], addons: [{name: a, kustomization: {sourceRef: {name: b}}}]}`,
			loose: []string{"addons[a].kustomization.sourceRef: Bucket b, which has no revisions to go back to"}},
		"Digest": {spec: `{sources: [{name: o, kind: OCIRepository, spec: {url: "oci://x", ref: {digest: "sha256:` + someCommit + someCommit[:24] + `"}}}],
			addons: [{name: a, helmRelease: {chartRef: {kind: OCIRepository, name: o}}}]}`},
		"OCITag": {spec: `{sources: [{name: o, kind: OCIRepository, spec: {url: "oci://x", ref: {tag: v1}}}],
			addons: [{name: a, helmRelease: {chartRef: {kind: OCIRepository, name: o}, valuesFrom: [{kind: ConfigMap, name: v}]}}]}`,
			floats: []string{"tag v1 of OCIRepository o"}, loose: []string{"addons[a].helmRelease.valuesFrom: ConfigMap v"}},
		"ChartInGit": {spec: `{sources: [{name: g, kind: GitRepository, spec: {url: "https://x", ref: {tag: v1}}}],
			addons: [{name: a, helmRelease: {chart: {spec: {chart: ./x, sourceRef: {name: g}}}}}]}`,
			floats: []string{"tag v1 of GitRepository g"}},
		"ChartOfAnOwnRepository": {spec: `{sources: [{name: h, kind: HelmRepository, spec: {url: "https://x"}}],
			addons: [{name: a, helmRelease: {chart: {spec: {chart: x, sourceRef: {name: h}}}}}]}`, floats: []string{"chart x * of HelmRepository h"}},
		"Manifests": {spec: `{addons: [{name: a, manifests: {manifestsFrom: [{kind: ConfigMap, name: m, key: k}]}}]}`,
			loose: []string{"addons[a].manifests.manifestsFrom: ConfigMap m"}},
	} {
		t.Run(name, func(t *testing.T) {
			p, target := floatingProgram(t, tc.spec)
			got := floating.Find(p, target, floating.ChoicesOf(p, tc.clusters), tc.maps)
			var floats []string
			for _, f := range got.Objects {
				floats = append(floats, map[bool]string{true: "+"}[f.Got]+map[bool]string{true: "*"}[f.Needed]+f.What)
			}
			slices.Sort(floats)
			if diff := cmp.Diff(tc.floats, floats); diff != "" {
				t.Errorf("floats: -want +got:\n%s", diff)
			}
			var loose []string
			for _, l := range got.Loose {
				if path, _, _ := strings.Cut(l.Text, "."); path != "addons["+l.Addon+"]" {
					t.Errorf("%q is said of add-on %q", l.Text, l.Addon)
				}
				loose = append(loose, l.Text)
			}
			if diff := cmp.Diff(tc.loose, loose); diff != "" {
				t.Errorf("loose: -want +got:\n%s", diff)
			}
		})
	}
}

// TestFixed: what an author has written down to the version, commit or digest is found as such, and each float says whose it is.
func TestFixed(t *testing.T) {
	p, target := floatingProgram(t, `{sources: [{name: g, kind: GitRepository, spec: {url: "https://x", ref: {branch: main, commit: `+someCommit+`}}},
			{name: h, kind: HelmRepository, spec: {url: "https://x"}}],
		addons: [{name: a, helmRelease: {chart: {spec: {chart: x, version: 1.2.3, sourceRef: {name: h}}}}}, {name: b, kustomization: {sourceRef: {name: g}}},
			{name: d, helmRelease: {chart: {spec: {chart: w, sourceRef: {name: h}}}}}, {name: c, helmRelease: {chart: {spec: {chart: w, sourceRef: {name: h}}}}},
			{name: e, helmRelease: {chart: {spec: {chart: ./z, sourceRef: {name: g}}}}}]}`)
	found := floating.Find(p, target, floating.Choices{}, nil)
	want := []floating.Fixed{{Addon: "a", What: "chart x 1.2.3 of HelmRepository h"}, {Addon: "b", What: "commit " + someCommit + " of GitRepository g"},
		{Addon: "e", What: "commit " + someCommit + " of GitRepository g"}}
	must.Equal(t, want, found.Fixed)
	if len(found.Objects) != 1 || strings.Join(found.Objects[0].Addons, " ") != "c d" {
		t.Errorf("it floats: %+v", found.Objects)
	}
}

// TestFloatingOfATenant: what expressions and patches write is held to what the set may do, as when it is rendered.
func TestFloatingOfATenant(t *testing.T) {
	const chart = `{addons: [{name: a, helmRelease: {chart: {spec: {chart: x, version: 1.x, sourceRef: {kind: HelmRepository, %s}}}}}]%s}`
	for name, text := range map[string]string{
		"Expression": fmt.Sprintf(chart, `name: charts, namespace: "<< 'flux-system' >>"`, ""),
		"Patch": fmt.Sprintf(chart, "name: charts", `, overlays: [{name: o, clusterSelector: {matchLabels: {a: b}}, addons: [{name: a,
			patches: [{op: add, path: /chart/spec/sourceRef/namespace, value: flux-system}]}]}]`),
	} {
		spec := &hubv1.AddonSetSpec{}
		must.Do(t, yaml.UnmarshalStrict([]byte(text), spec))
		p, err := compile.Compile(spec, compile.Author{Namespace: "tenant", Set: "base"})
		if err != nil {
			t.Fatal(name, err)
		}
		target := render.Target{HubID: "chandler", Namespace: "tenant", Set: "base"}
		for _, f := range floating.Find(p, target, floating.ChoicesOf(p, []labels.Set{{"a": "b"}}), nil).Objects {
			if f.Object.GetNamespace() != "tenant" {
				t.Errorf("%s: it follows %s", name, f.Key())
			}
		}
	}
	spec := &hubv1.AddonSetSpec{}
	must.Do(t, yaml.UnmarshalStrict([]byte(fmt.Sprintf(chart, `name: "<< 'handmade' >>"`, "")), spec))
	team := &fluxspec.TeamRules{Name: "dev", Namespaces: []string{"apps"}, Allow: []string{"https://git.example.org/*"}}
	p := must.Get(compile.Compile(spec, compile.Author{Namespace: "tenant", Set: "base", Team: team})).Or(t)
	if f := floating.Find(p, render.Target{HubID: "chandler", Namespace: "tenant", Set: "base"}, floating.Choices{}, nil); len(f.Objects) > 0 {
		t.Errorf("a team's set follows what is not its own: %s", f.Objects[0].What)
	}
}

// TestPinned: what floats is found under the name that it is rendered with, and the revision's pins replace it there.
func TestPinned(t *testing.T) {
	const git = `{sources: [{name: g, kind: GitRepository, spec: {url: "https://x", interval: 5m, secretRef: {name: s}%s}}],
		addons: [{name: a, kustomization: {sourceRef: {name: g}}}]}`
	of := func(ref string) string { return strings.Replace(git, "%s", ref, 1) }
	for name, tc := range map[string]struct{ spec, to, want string }{
		"Chart": {`{addons: [{name: a, helmRelease: {interval: 7m, chart: {spec: {chart: x, version: 1.x, sourceRef: {kind: HelmRepository, name: charts}}}}}]}`, "1.4.2",
			`{chart: x, interval: 7m, reconcileStrategy: ChartVersion, sourceRef: {kind: HelmRepository, name: charts}, version: 1.4.2}`},
		"Branch": {of(", ref: {branch: main}"), someCommit,
			`{url: "https://x", interval: 1h, secretRef: {name: s}, ref: {branch: main, commit: ` + someCommit + `}}`},
		"DefaultBranch": {of(""), someCommit,
			`{url: "https://x", interval: 1h, secretRef: {name: s}, ref: {branch: master, commit: ` + someCommit + `}}`},
		"Tag": {of(", ref: {tag: v1}"), someCommit,
			`{url: "https://x", interval: 1h, secretRef: {name: s}, ref: {commit: ` + someCommit + `}}`},
		"NameOfABranch": {of(", ref: {name: refs/heads/main}"), someCommit,
			`{url: "https://x", interval: 1h, secretRef: {name: s}, ref: {branch: main, commit: ` + someCommit + `}}`},
		"OCI": {`{sources: [{name: o, kind: OCIRepository, spec: {url: "oci://x", ref: {semver: 1.x, semverFilter: z}, verify: {provider: cosign}}}],
			addons: [{name: a, helmRelease: {chartRef: {kind: OCIRepository, name: o}}}]}`, "sha256:" + someCommit + someCommit[:24],
			`{url: "oci://x", interval: 10m, ref: {digest: "sha256:` + someCommit + someCommit[:24] + `"}, verify: {provider: cosign}}`},
	} {
		t.Run(name, func(t *testing.T) {
			p, target := floatingProgram(t, tc.spec)
			found := floating.Find(p, target, floating.Choices{}, nil)
			if len(found.Objects) != 1 {
				t.Fatalf("what floats: %+v", found)
			}
			float := &found.Objects[0]
			target.Registration = types.NamespacedName{Namespace: "fleet", Name: "w1"}
			last := func() *unstructured.Unstructured {
				out, err := render.Render(p, target, &render.Input{Cluster: &expression.Cluster{Name: "w1"}})
				if err != nil || len(out.Failed) > 0 {
					t.Fatal(err, out.Failed)
				}
				shared := out.Objects[0].Shared
				return shared[len(shared)-1].Object
			}
			follows := last()
			if follows.GetName() != float.Object.GetName() {
				t.Fatalf("it is rendered as %s, and found as %s", follows.GetName(), float.Key())
			}
			p.Pins = &compile.Pins{Sources: map[string]string{float.Key(): tc.to}}
			pinned := last()
			if pinned.GetName() == follows.GetName() {
				t.Errorf("the copy has the name of what follows upstream: %s", pinned.GetName())
			}
			var want map[string]any
			must.Do(t, yaml.Unmarshal([]byte(tc.want), &want))
			must.Equal(t, want, pinned.Object["spec"])
		})
	}
}
