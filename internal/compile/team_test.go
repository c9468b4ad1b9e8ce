// SPDX-License-Identifier: Apache-2.0

package compile_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/expression"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/must"
)

func ofDevTeam(change func(*fluxspec.TeamRules)) compile.Author {
	r := &fluxspec.TeamRules{Name: "dev-team", Namespaces: []string{"apps", "<< cluster.name >>-db"}}
	if change != nil {
		change(r)
	}
	return compile.Author{Namespace: "dev-team", Set: "s", Team: r}
}

// TestTeamRefuses: what the set of a team may not, it may not in the add-on itself, in an overlay, or by way of its sources.
func TestTeamRefuses(t *testing.T) {
	allow := func(r *fluxspec.TeamRules) { r.Allow = []string{"https://git.example.org/dev-team/*"} }
	kinds := func(r *fluxspec.TeamRules) { r.Kinds = []string{"GitRepository"} }
	signed := func(r *fluxspec.TeamRules) { r.RequireVerification = true }
	const (
		own    = "sources: [{name: fleet, kind: GitRepository, spec: {url: https://git.example.org/dev-team/app}}]\n"
		ks     = "addons: [{name: a, kustomization: {sourceRef: {kind: GitRepository, name: fleet}}}]\n"
		charts = "sources: [{name: charts, kind: HelmRepository, spec: {url: oci://x.example/y, type: oci}}]\n"
	)
	overlay := func(body string) string {
		return "overlays: [{name: o, when: << true >>, addons: [{name: a, " + body + "}]}]\n"
	}
	cases := map[string]struct {
		rules func(*fluxspec.TeamRules)
		set   string
		want  []string // parts of the errors, in order; none if it compiles
	}{
		"Plain":             {nil, ks, nil},
		"Impersonation":     {nil, "addons: [{name: a, kustomization: {sourceRef: {kind: GitRepository, name: fleet}, serviceAccountName: admin}}]", []string{`add-on "a": kustomization.serviceAccountName: Team dev-team: `}},
		"InAnOverlay":       {nil, ks + overlay("kustomization: {targetNamespace: kube-system}"), []string{`overlay "o", add-on "a": kustomization.targetNamespace: Team dev-team: "kube-system"`}},
		"ObjectInAnOverlay": {nil, "addons: [{name: a, manifests: {objects: [{apiVersion: v1, kind: Secret, metadata: {name: a}}]}}]\n" + overlay("manifests: {objects: [{apiVersion: v1, kind: Namespace, metadata: {name: x}}]}"), []string{`overlay "o", add-on "a": manifests.objects[0].kind: Team dev-team: a Namespace`}},
		"NotYetKnown":       {nil, `addons: [{name: a, kustomization: {sourceRef: {kind: GitRepository, name: fleet}, targetNamespace: "<< 'kube-' + 'system' >>"}}]`, nil}, // the clusters tell
		"ItsOwnText":        {nil, `addons: [{name: a, kustomization: {sourceRef: {kind: GitRepository, name: fleet}, targetNamespace: "<< cluster.name >>-db"}}]`, nil},
		"AdoptOwn":          {nil, "addons: [{name: a, adopt: {name: x}, kustomization: {sourceRef: {kind: GitRepository, name: fleet}}}]", nil},
		"AdoptOthers":       {nil, "addons: [{name: a, adopt: {name: x, namespace: flux-system}, kustomization: {sourceRef: {kind: GitRepository, name: fleet}}}]", []string{"adopt.namespace: "}},
		"MovedFromOthers":   {nil, "addons: [{name: a, movedFrom: [{namespace: other}], kustomization: {sourceRef: {kind: GitRepository, name: fleet}}}]", []string{"movedFrom[0].namespace: "}},

		"Origin":          {nil, "variables: {x: << origin.spec.y >>}\n" + ks, []string{"variables.x: Team dev-team: the origin of a cluster may be in a namespace that is not the Team's"}},
		"OriginInABody":   {nil, "addons: [{name: a, kustomization: {sourceRef: {kind: GitRepository, name: fleet}, path: << origin.spec.y >>}}]", []string{`add-on "a": kustomization.path: Team dev-team: the origin`}},
		"OriginInAWhen":   {nil, ks + "overlays: [{name: o, when: << has(origin.spec) >>, addons: [{name: a}]}]", []string{`overlay "o": when: Team dev-team: the origin`}},
		"OriginAsAWhole":  {nil, "variables: {x: << origin >>}\n" + ks, []string{"variables.x: Team dev-team: the origin"}},
		"OriginInAPatch":  {nil, ks + overlay("patches: [{op: add, path: /path, value: << origin.spec.y >>}]"), []string{"patches[0].value: Team dev-team: the origin"}},
		"OriginInASource": {nil, "sources: [{name: fleet, kind: GitRepository, spec: {url: << origin.spec.y >>}}]\n" + ks, []string{"sources[fleet].spec.url: Team dev-team: the origin"}},
		"OriginInAName":   {nil, "variablesFrom: [{configMap: << origin.metadata.name >>}]\n" + ks, []string{"variablesFrom[0].configMap: Team dev-team: the origin"}},
		"ALabel":          {nil, "variables: {x: << cluster.labels.y >>}\n" + ks, nil},

		"OwnSource":             {allow, own + ks, nil},
		"OwnSourceByNameAlone":  {allow, own + "addons: [{name: a, kustomization: {sourceRef: {name: fleet}}}]", nil},
		"OwnSourceElsewhere":    {allow, strings.Replace(own, "dev-team", "other", 1) + ks, []string{`sources[fleet].spec.url: Team dev-team: allows sources at`}},
		"SourceNotKnownYet":     {allow, strings.Replace(own, "dev-team/app", "<< vars.x >>", 1) + ks, nil},
		"NoOwnSource":           {allow, ks, []string{`add-on "a": kustomization.sourceRef: Team dev-team: says which sources its sets may use, so an add-on refers to a source of its set's spec.sources by its name, and GitRepository "fleet" is none of these`}},
		"OfAnotherKind":         {allow, own + "addons: [{name: a, kustomization: {sourceRef: {kind: Bucket, name: fleet}}}]", []string{`Bucket "fleet" is none of these`}},
		"InItsNamespaceByName":  {allow, own + "addons: [{name: a, kustomization: {sourceRef: {kind: GitRepository, name: fleet, namespace: dev-team}}}]", []string{`GitRepository "fleet" in namespace "dev-team" is none of these`}},
		"ExternalArtifact":      {kinds, own + "addons: [{name: a, kustomization: {sourceRef: {kind: ExternalArtifact, name: fleet}}}]", []string{`ExternalArtifact "fleet" is none of these`}},
		"HelmChart":             {kinds, own + "addons: [{name: a, helmRelease: {chartRef: {kind: HelmChart, name: fleet}}}]", []string{`HelmChart "fleet" is none of these`}},
		"ChartOfAnotherSource":  {signed, "addons: [{name: a, helmRelease: {chart: {spec: {chart: c, verify: {provider: cosign}, sourceRef: {kind: HelmRepository, name: x}}}}}]", []string{`HelmRepository "x" is none of these`}},
		"InAnOverlayByName":     {allow, own + ks + overlay("kustomization: {sourceRef: {name: other}}"), []string{`overlay "o", add-on "a": kustomization.sourceRef: Team dev-team: says`}},
		"InAnOverlayOwn":        {allow, own + ks + overlay("kustomization: {sourceRef: {name: fleet}}"), nil},
		"InAnOverlayByNothing":  {allow, own + ks + overlay("kustomization: {sourceRef: {kind: GitRepository}}"), nil},
		"InAnOverlayElsewhere":  {allow, own + ks + overlay("kustomization: {sourceRef: {namespace: dev-team}}"), []string{`in namespace "dev-team" is none of these`}},
		"NameNotKnownYet":       {allow, own + "addons: [{name: a, kustomization: {sourceRef: {name: << vars.x >>}}}]", nil},
		"Kind":                  {kinds, charts + "addons: [{name: a, helmRelease: {chart: {spec: {chart: c, sourceRef: {name: charts}}}}}]", []string{"sources[charts].spec: Team dev-team: allows sources of the kinds GitRepository"}},
		"ChartUnsigned":         {signed, charts + "addons: [{name: a, helmRelease: {chart: {spec: {chart: c, sourceRef: {name: charts}}}}}]", []string{`helmRelease.chart.spec.verify: Team dev-team: wants every source to verify a signature`}},
		"ChartSigned":           {signed, charts + "addons: [{name: a, helmRelease: {chart: {spec: {chart: c, verify: {provider: cosign}, sourceRef: {name: charts}}}}}]", nil},
		"ChartOfSignedGit":      {signed, "sources: [{name: r, kind: GitRepository, spec: {url: https://x.example/y, verify: {secretRef: {name: k}}}}]\naddons: [{name: a, helmRelease: {chart: {spec: {chart: c, sourceRef: {name: r}}}}}]", nil},
		"OwnThatDoesNotFit":     {allow, own + "addons: [{name: a, helmRelease: {chartRef: {name: fleet}}}]", []string{`source "fleet" of this set is of kind GitRepository, and this takes OCIRepository`}},
		"ChartOfAnyName":        {signed, charts + "addons: [{name: a, helmRelease: {chart: {spec: {chart: c, sourceRef: {name: << vars.x >>}}}}}]", nil}, // the clusters tell
		"ManifestsNeedNoSource": {allow, "addons: [{name: a, manifests: {objects: [{apiVersion: v1, kind: Secret, metadata: {name: a}}]}}]", nil},
		"SameReleaseAtHome":     {nil, "addons: [{name: a, helmRelease: {chartRef: {kind: OCIRepository, name: x}}}, {name: b, helmRelease: {releaseName: a, chartRef: {kind: OCIRepository, name: x}}}]", []string{`release "a" in namespace "apps" is add-on "a"'s already`}},
		"SameReleaseUnknown":    {func(r *fluxspec.TeamRules) { r.Namespaces = r.Namespaces[1:] }, "addons: [{name: a, helmRelease: {chartRef: {kind: OCIRepository, name: x}}}, {name: b, helmRelease: {releaseName: a, chartRef: {kind: OCIRepository, name: x}}}]", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, err := compile.Compile(teamSpec(t, tc.set), ofDevTeam(tc.rules))
			if len(tc.want) == 0 {
				if err != nil {
					t.Fatal(err)
				}
				if p.Team == nil {
					t.Error("the program does not know its Team")
				}
				return
			}
			var errs compile.Errors
			if !errors.As(err, &errs) || len(errs) != len(tc.want) {
				t.Fatalf("got %v, want %d errors", err, len(tc.want))
			}
			for i, want := range tc.want {
				if !strings.Contains(errs[i].Error(), want) {
					t.Errorf("got %q, want %q", errs[i], want)
				}
			}
		})
	}
}

// teamSpec reads the spec of a set. Bare expressions are put into quotes.
func teamSpec(t *testing.T, text string) *hubv1.AddonSetSpec {
	t.Helper()
	if !strings.Contains(text, `"`) {
		text = strings.NewReplacer("https://git.example.org/<<", `"https://git.example.org/<<`, "<<", `"<<`, ">>", `>>"`).Replace(text)
	}
	spec := &hubv1.AddonSetSpec{}
	if err := yaml.UnmarshalStrict([]byte(text), spec); err != nil {
		t.Fatal(err)
	}
	return spec
}

func TestTeamLimits(t *testing.T) {
	set := func(n int) *hubv1.AddonSetSpec {
		spec := &hubv1.AddonSetSpec{Priority: 5}
		for i := range n {
			spec.Addons = append(spec.Addons, hubv1.Addon{Name: fmt.Sprint("a", i), AddonBody: hubv1.AddonBody{Manifests: raw(`{"manifestsFrom": [{"kind": "Secret", "name": "x"}]}`)}})
		}
		return spec
	}
	cases := map[string]struct {
		max, n int
		want   string
	}{
		"AtTheDefault":    {0, 50, ""},
		"AboveTheDefault": {0, 51, "addons: Team dev-team: allows 50 add-ons in a set, and this has 51; ask who keeps the Team about its spec.addons.max"},
		"AtTheMost":       {2, 2, ""},
		"TooMany":         {2, 3, "addons: Team dev-team: allows 2 add-ons in a set, and this has 3; ask who keeps the Team about its spec.addons.max"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := compile.Compile(set(tc.n), ofDevTeam(func(r *fluxspec.TeamRules) { r.MaxAddons = tc.max }))
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || err.Error() != tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
	for limit, want := range map[int32]string{
		4: "priority: Team dev-team: allows a priority of at most 4, and this is 5; ask who keeps the Team about its spec.maxPriority",
		5: "",
	} {
		author := ofDevTeam(func(r *fluxspec.TeamRules) { r.MaxPriority = limit })
		err := compile.CheckPriority(set(1), author)
		if want == "" && err != nil || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("limit %d: got %v, want %q", limit, err, want)
		}
		// What counts is within the limit also while nobody has looked at the set.
		if got := author.Team.Priority(5); got != min(5, limit) {
			t.Errorf("limit %d: priority %d counts", limit, got)
		}
	}
	if err := compile.CheckPriority(set(1), compile.Author{Namespace: "team"}); err != nil || (*fluxspec.TeamRules)(nil).Priority(5) != 5 {
		t.Errorf("without a Team: %v", err)
	}
}

// TestTeamOn: the names of a Team's namespaces are known for each cluster, as far as they read the cluster alone.
func TestTeamOn(t *testing.T) {
	author := ofDevTeam(func(r *fluxspec.TeamRules) {
		r.Namespaces = []string{"apps", "<< cluster.name >>-db", "<< cluster.labels.env >>", "<< vars.x >>-x", "<< origin.metadata.name >>", "<< cluster.annotations.a >>"}
	})
	p, err := compile.Compile(teamSpec(t, "addons: [{name: a, kustomization: {sourceRef: {kind: GitRepository, name: fleet}}}]"), author)
	if err != nil {
		t.Fatal(err)
	}
	if p.UsesOrigin() {
		t.Error("the set reads the origin by the names of its Team's namespaces")
	}
	on := p.TeamOn(&expression.Cluster{Name: "prod1", Annotations: map[string]string{"a": "<< not a name >>"}})
	want := []string{"apps", "prod1-db", "", "<< vars.x >>-x", "<< origin.metadata.name >>", ""}
	must.Equal(t, want, on.Namespaces)
	if on.Name != "dev-team" || author.Team.Namespaces[1] != "<< cluster.name >>-db" {
		t.Error("the Team's own rules have changed")
	}
	p, err = compile.Compile(teamSpec(t, "addons: [{name: a, kustomization: {sourceRef: {kind: GitRepository, name: fleet}}}]"), ofDevTeam(func(r *fluxspec.TeamRules) { r.Namespaces = []string{"apps"} }))
	if err != nil {
		t.Fatal(err)
	}
	if on := p.TeamOn(&expression.Cluster{Name: "prod1"}); on != p.Team {
		t.Error("rules that are the same everywhere are copied for each cluster")
	}
}
