// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/render"
)

// devTeam is a Team with a namespace that is called the same on all clusters, and one that is not.
func devTeam() *fluxspec.TeamRules {
	return &fluxspec.TeamRules{Name: "dev-team", Namespaces: []string{"apps", "<< cluster.name >>-db"}}
}

// ofTeam renders the set of a team, of one add-on a, for cluster tenant1.
func ofTeam(t *testing.T, r *fluxspec.TeamRules, addon, more string, change func(*render.Input)) (*render.Result, error) {
	t.Helper()
	spec := &hubv1.AddonSetSpec{}
	must.Do(t, yaml.UnmarshalStrict([]byte("selectAll: true\naddons: [{name: a, "+addon+"}]\n"+more+"\n"), spec))
	p, err := compile.Compile(spec, compile.Author{Namespace: "dev-team", Set: "s", Team: r})
	if err != nil {
		return nil, err
	}
	to, in := fleetInput(1)
	to.Namespace, to.Set = "dev-team", "s"
	to.Chart = render.ManifestChart{URL: "http://charts", Name: "c", Digest: "sha256:0"}
	if change != nil {
		change(in)
	}
	out, err := render.Render(p, to, in)
	if err == nil && len(out.Failed) > 0 {
		err = errors.New(out.Failed["a"].Error())
	}
	return out, err
}

const (
	git   = `kustomization: {sourceRef: {kind: GitRepository, name: r}$R}`
	chart = `helmRelease: {chartRef: {kind: OCIRepository, name: r}$R}`
	plain = `manifests: {objects: [{apiVersion: v1, kind: Secret, metadata: {name: x$R}}]}`
)

func with(form, rest string) string { return strings.Replace(form, "$R", rest, 1) }

func overlaid(addon string) string {
	return `overlays: [{name: o, when: "<< true >>", addons: [{name: a, ` + addon + `}]}]`
}

// TestTeamAttacks: what a developer of a team may try in the files of a set, as far as files tell, with the message that he
// gets. What files do not tell, the cluster refuses, or Flux: hooks and objects in a chart, remote bases, tokens of others.
func TestTeamAttacks(t *testing.T) {
	sources := func(spec string) string {
		return "sources: [{name: own, kind: GitRepository, spec: {" + spec + "}}]"
	}
	cases := map[string]struct {
		addon, more string
		rules       func(*fluxspec.TeamRules)
		want        string
	}{
		"ClusterScopedObject":          {addon: `manifests: {objects: [{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: x}}]}`, want: "a ClusterRoleBinding is the whole cluster's"},
		"ClusterScopedByExpression":    {addon: `manifests: {objects: [{apiVersion: rbac.authorization.k8s.io/v1, kind: "<< 'Cluster' + 'Role' >>", metadata: {name: x}}]}`, want: "objects[0].kind: Team dev-team: a ClusterRole is the whole"},
		"ClusterScopedByGroup":         {addon: `manifests: {objects: [{apiVersion: "<< 'rbac.authorization.k8s.io' + '/v1' >>", kind: ClusterRole, metadata: {name: x}}]}`, want: "a ClusterRole is the whole"},
		"ClusterScopedAsAnExpression":  {addon: `manifests: {objects: "<< [{'apiVersion': 'v1', 'kind': 'Namespace', 'metadata': {'name': 'x'}}] >>"}`, want: "a Namespace is the whole"},
		"ClusterScopedByAVariable":     {addon: `manifests: {objects: "<< vars.all >>"}`, more: "variables: {all: [{apiVersion: v1, kind: Namespace, metadata: {name: x}}]}", want: "a Namespace is the whole"},
		"ClusterScopedByAPatch":        {addon: with(plain, ""), more: overlaid(`patches: [{op: replace, path: /objects/0/kind, value: Node}]`), want: "a Node is the whole"},
		"ClusterScopedInAnOverlay":     {addon: with(plain, ""), more: overlaid(`manifests: {objects: [{apiVersion: v1, kind: "<< 'Node' >>", metadata: {name: y}}]}`), want: "a Node is the whole"},
		"OtherNamespace":               {addon: with(plain, ", namespace: other"), want: `objects[0].metadata.namespace: Team dev-team: "other" is not one of the Team's namespaces, apps`},
		"OtherNamespaceByExpression":   {addon: with(plain, `, namespace: "<< 'ot' + 'her' >>"`), want: `"other" is not one of the Team's namespaces, apps, tenant1-db`},
		"NamespaceOfAnotherCluster":    {addon: with(plain, ", namespace: tenant2-db"), want: `"tenant2-db" is not one of the Team's namespaces, apps, tenant1-db`},
		"KubeSystem":                   {addon: with(chart, ", targetNamespace: kube-system"), want: `helmRelease.targetNamespace: Team dev-team: "kube-system" is not`},
		"KubeSystemByExpression":       {addon: with(chart, `, targetNamespace: "<< 'kube-system' >>"`), want: `"kube-system" is not`},
		"KubeSystemByALabel":           {addon: with(chart, `, targetNamespace: "<< cluster.labels.region >>"`), want: `"eu" is not`},
		"KubeSystemByAPatch":           {addon: with(chart, ""), more: overlaid("patches: [{op: add, path: /targetNamespace, value: kube-system}]"), want: `"kube-system" is not`},
		"HubsNamespaceByAPatch":        {addon: with(chart, ""), more: overlaid("patches: [{op: add, path: /targetNamespace, value: ''}]"), want: "targetNamespace: is empty"},
		"NoNamespaceByACopy":           {addon: with(chart, ", values: {x: null}"), more: overlaid("patches: [{op: copy, from: /values/x, path: /targetNamespace}]"), want: "targetNamespace: must not be null"},
		"NoNamespaceByExpression":      {addon: with(chart, `, targetNamespace: "<< null >>"`), want: "targetNamespace: must not be null"},
		"RecordsElsewhere":             {addon: with(chart, ", storageNamespace: kube-system"), want: `storageNamespace: Team dev-team: "kube-system"`},
		"KustomizeElsewhere":           {addon: with(git, `, targetNamespace: "<< 'kube-system' >>"`), want: `kustomization.targetNamespace: Team dev-team: "kube-system"`},
		"CRD":                          {addon: `manifests: {objects: [{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: x}}]}`, want: "a CustomResourceDefinition is the whole"},
		"CRDsOfAChart":                 {addon: with(chart, ", install: {crds: CreateReplace}"), want: "install.crds: Team dev-team: CustomResourceDefinitions are the whole"},
		"CRDsOfAChartByExpression":     {addon: with(chart, `, upgrade: {crds: "<< 'Create' >>"}`), want: "upgrade.crds: Team dev-team"},
		"CRDsOfAChartByACopy":          {addon: with(chart, ", install: {crds: Skip}, values: {x: null}"), more: overlaid("patches: [{op: copy, from: /values/x, path: /install/crds}]"), want: "install.crds: Team dev-team"},
		"CRDsOfAChartByNothing":        {addon: with(chart, `, install: "<< null >>"`), want: "install: Team dev-team"},
		"CreateNamespace":              {addon: with(chart, ", install: {createNamespace: true}"), want: "install.createNamespace: Team dev-team: its namespaces are made by the hub"},
		"CreateNamespaceByExpression":  {addon: with(chart, `, install: {createNamespace: "<< true >>"}`), want: "install.createNamespace"},
		"OthersSource":                 {addon: `kustomization: {sourceRef: {kind: GitRepository, name: r, namespace: flux-system}}`, want: "may refer only to sources in its own namespace"},
		"OthersSourceByExpression":     {addon: `kustomization: {sourceRef: {kind: GitRepository, name: r, namespace: "<< 'flux-system' >>"}}`, want: "may refer only to sources in its own namespace"},
		"OtherURL":                     {addon: `kustomization: {sourceRef: {name: own}}`, more: sources("url: https://evil.example/x"), rules: only, want: `sources[own].spec.url: Team dev-team: allows sources at https://git.example.org/dev-team/*, and this is "https://evil.example/x"`},
		"OtherURLByExpression":         {addon: `kustomization: {sourceRef: {name: own}}`, more: sources(`url: "https://git.example.org/<< 'dev-team/../other' >>"`), rules: only, want: `sources[own].spec.url: Team dev-team: allows`},
		"OtherURLByALabel":             {addon: `kustomization: {sourceRef: {name: own}}`, more: sources(`url: "https://<< cluster.labels.region >>.example/dev-team/x"`), rules: only, want: `and this is "https://eu.example/dev-team/x"`},
		"SubmodulesByExpression":       {addon: `kustomization: {sourceRef: {name: own}}`, more: sources(`url: https://git.example.org/dev-team/x, recurseSubmodules: "<< true >>"`), rules: only, want: "spec.recurseSubmodules: Team dev-team"},
		"IncludeByExpression":          {addon: `kustomization: {sourceRef: {name: own}}`, more: sources(`url: https://git.example.org/dev-team/x, include: "<< [{'repository': {'name': 'x'}}] >>"`), rules: only, want: "spec.include: Team dev-team"},
		"UnsignedByExpression":         {addon: `kustomization: {sourceRef: {name: own}}`, more: sources(`url: https://git.example.org/dev-team/x, verify: "<< vars.?none >>"`), rules: signed, want: "spec.verify: Team dev-team"},
		"AnotherSourceByExpression":    {addon: `kustomization: {sourceRef: {kind: GitRepository, name: "<< 'handmade' >>"}}`, rules: only, want: `GitRepository "handmade" is none of these`},
		"AnotherSourceByAPatch":        {addon: `kustomization: {sourceRef: {name: own}}`, more: sources("url: https://git.example.org/dev-team/x") + "\n" + overlaid("patches: [{op: add, path: /sourceRef/name, value: handmade}, {op: add, path: /sourceRef/kind, value: GitRepository}]"), rules: only, want: `GitRepository "handmade" is none of these`},
		"AnotherNamespaceByAPatch":     {addon: `kustomization: {sourceRef: {name: own}}`, more: sources("url: https://git.example.org/dev-team/x") + "\n" + overlaid("patches: [{op: add, path: /sourceRef/namespace, value: dev-team}]"), rules: only, want: `in namespace "dev-team" is none of these`},
		"AnotherKindByAPatch":          {addon: `kustomization: {sourceRef: {name: own}}`, more: sources("url: https://git.example.org/dev-team/x") + "\n" + overlaid("patches: [{op: add, path: /sourceRef/kind, value: ExternalArtifact}]"), rules: only, want: `ExternalArtifact "own" is none of these`},
		"OwnThatDoesNotFit":            {addon: `kustomization: {sourceRef: {kind: GitRepository, name: "<< 'x' >>"}}`, more: "sources: [{name: own, kind: HelmRepository, spec: {url: https://git.example.org/dev-team/charts}}]\n" + overlaid("patches: [{op: add, path: /sourceRef, value: {kind: HelmRepository, name: own}}]"), rules: only, want: `HelmRepository "own" is none of these`},
		"UnsignedChartByAPatch":        {addon: `helmRelease: {chart: {spec: {chart: c, verify: {provider: cosign}, sourceRef: {name: own}}}}`, more: "sources: [{name: own, kind: HelmRepository, spec: {type: oci, url: oci://x.example/y}}]\n" + overlaid("patches: [{op: remove, path: /chart/spec/verify}]"), rules: signed, want: "chart.spec.verify: Team dev-team"},
		"UnsignedChartByName":          {addon: `helmRelease: {chart: {spec: {chart: c, sourceRef: {name: "<< 'own' >>"}}}}`, more: "sources: [{name: own, kind: HelmRepository, spec: {type: oci, url: oci://x.example/y}}]", rules: signed, want: "chart.spec.verify: Team dev-team"},
		"Impersonation":                {addon: with(git, ", serviceAccountName: admin"), want: "serviceAccountName: Team dev-team: its add-ons come to the cluster as"},
		"ImpersonationByExpression":    {addon: with(git, `, serviceAccountName: "<< 'admin' >>"`), want: "serviceAccountName: Team dev-team"},
		"ImpersonationByAPatch":        {addon: with(chart, ""), more: overlaid("patches: [{op: add, path: /serviceAccountName, value: admin}]"), want: "serviceAccountName: Team dev-team"},
		"OtherKubeConfig":              {addon: with(git, ", kubeConfig: {secretRef: {name: admin}}"), want: "kubeConfig: is set by the hub"},
		"EscalationByARoleBinding":     {addon: `manifests: {objects: [{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: x, namespace: kube-system}}]}`, want: `"kube-system" is not`},
		"EscalationInItsAccountsPlace": {addon: `manifests: {objects: [{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {name: x, namespace: chandler-dev-team}}]}`, want: `"chandler-dev-team" is not`},
		"EscalationInAList":            {addon: `manifests: {objects: "<< [{'apiVersion': 'v1', 'kind': 'List', 'metadata': {'name': 'x'}, 'items': [{'apiVersion': 'v1', 'kind': 'Namespace'}]}] >>"}`, want: "objects[0].items[0].kind: Team dev-team"},
		"OriginOfOthers":               {addon: with(git, `, path: "<< origin.spec.secret >>"`), want: "the origin of a cluster may be in a namespace that is not the Team's"},
		"SubstituteFromOthers":         {addon: with(git, ", postBuild: {substituteFrom: [{kind: Secret, name: x, namespace: flux-system}]}"), want: "substituteFrom[0].namespace"},
		"ValuesFromOthers":             {addon: with(chart, ", valuesFrom: [{kind: Secret, name: x, namespace: flux-system}]"), want: "valuesFrom[0].namespace"},
		"ManifestsFromOthers":          {addon: `manifests: {manifestsFrom: [{kind: Secret, name: x, namespace: flux-system}]}`, want: "manifestsFrom[0].namespace"},
		"AdoptFromOthers":              {addon: "adopt: {name: x, namespace: flux-system}, " + with(git, ""), want: "may take over only objects of its own namespace"},
		"MovedFromOthers":              {addon: "movedFrom: [{namespace: other, addonSet: s}], " + with(git, ""), want: "may take over only from sets in its own namespace"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := devTeam()
			if tc.rules != nil {
				tc.rules(r)
			}
			out, err := ofTeam(t, r, tc.addon, tc.more, nil)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if out != nil && len(out.Objects) > 0 {
				t.Errorf("it is delivered: %v", out.Objects[0].Manifest())
			}
		})
	}
}

func only(r *fluxspec.TeamRules)   { r.Allow = []string{"https://git.example.org/dev-team/*"} }
func signed(r *fluxspec.TeamRules) { r.RequireVerification = true }

// TestTeamDelivers: what a team may do comes out, with the defaults for teams.
func TestTeamDelivers(t *testing.T) {
	cases := map[string]struct {
		addon, more string
		rules       func(*fluxspec.TeamRules)
		change      func(*render.Input)
		want        map[string]string // fields of the spec
	}{
		"Chart":               {addon: with(chart, ""), want: map[string]string{"targetNamespace": "apps", "storageNamespace": "apps", "install.crds": "Skip", "upgrade.crds": "Skip", "serviceAccountName": ""}},
		"OtherOfItsOwn":       {addon: with(chart, ", targetNamespace: tenant1-db"), want: map[string]string{"targetNamespace": "tenant1-db", "storageNamespace": "tenant1-db"}},
		"ByExpression":        {addon: with(chart, `, targetNamespace: "<< cluster.name + '-' + 'db' >>"`), want: map[string]string{"targetNamespace": "tenant1-db"}},
		"ByTheTeamsOwnText":   {addon: with(chart, `, targetNamespace: "<< cluster.name >>-db"`), want: map[string]string{"targetNamespace": "tenant1-db"}},
		"FirstIsAnExpression": {addon: with(chart, ""), rules: reversed, want: map[string]string{"targetNamespace": "tenant1-db", "storageNamespace": "tenant1-db"}},
		"TakenAway":           {addon: with(chart, ", targetNamespace: tenant1-db"), more: overlaid("helmRelease: {targetNamespace: null}"), want: map[string]string{"targetNamespace": "apps"}},
		"Manifests":           {addon: with(plain, ""), want: map[string]string{"targetNamespace": "apps", "storageNamespace": "apps"}},
		"Kustomization":       {addon: with(git, ""), want: map[string]string{"targetNamespace": "", "serviceAccountName": ""}},
		"ClustersAccount":     {addon: with(git, ""), change: func(in *render.Input) { in.ServiceAccount = "admin" }, want: map[string]string{"serviceAccountName": ""}},
		"AllowedByExpression": {addon: "kustomization: {sourceRef: {name: own}}", more: `sources: [{name: own, kind: GitRepository, spec: {url: "https://git.example.org/dev-team/<< cluster.name >>"}}]`, rules: only, want: map[string]string{"sourceRef.kind": "GitRepository"}},
		"SourceByExpression":  {addon: "kustomization: {sourceRef: {name: \"<< 'own' >>\"}}", more: `sources: [{name: own, kind: GitRepository, spec: {url: "https://git.example.org/dev-team/x"}}]`, rules: only, want: map[string]string{"sourceRef.kind": "GitRepository"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := devTeam()
			if tc.rules != nil {
				tc.rules(r)
			}
			out, err := ofTeam(t, r, tc.addon, tc.more, tc.change)
			if err != nil || len(out.Objects) != 1 {
				t.Fatalf("it does not come out: %v", err)
			}
			spec := out.Objects[0].Manifest().Object["spec"].(map[string]any)
			for path, want := range tc.want {
				if got, _, _ := unstructured.NestedString(spec, strings.Split(path, ".")...); got != want {
					t.Errorf("%s is %q, want %q", path, got, want)
				}
			}
			if create, _, _ := unstructured.NestedBool(spec, "install", "createNamespace"); create {
				t.Error("Flux makes the namespace")
			}
		})
	}
}

func reversed(r *fluxspec.TeamRules) { r.Namespaces = []string{"<< cluster.name >>-db", "apps"} }

// TestTeamNamespaceUnknown: if the hub does not know what the Team's first namespace is called on a cluster, an add-on has
// to say where it goes; and what reads more than the cluster is no more than a pattern.
func TestTeamNamespaceUnknown(t *testing.T) {
	for _, first := range []string{"<< cluster.labels.none >>", "<< vars.x >>-apps"} {
		r := &fluxspec.TeamRules{Name: "dev-team", Namespaces: []string{first, "apps"}}
		_, err := ofTeam(t, r, with(chart, ""), "variables: {x: kube-system}", nil)
		if err == nil || !strings.Contains(err.Error(), "Team dev-team: which namespace is its first one is not known here; write targetNamespace") {
			t.Errorf("%s: got %v", first, err)
		}
		if _, err := ofTeam(t, r, with(chart, ", targetNamespace: apps"), "", nil); err != nil {
			t.Errorf("%s: %v", first, err)
		}
		if _, err := ofTeam(t, r, with(chart, ", targetNamespace: other"), "", nil); err == nil || !strings.Contains(err.Error(), `"other" is not`) {
			t.Errorf("%s: got %v", first, err)
		}
	}
}

// TestTeamKeepsNoRelease: an add-on that was in another namespace before the Team was there, or that adopts what somebody
// put elsewhere by hand, does not go on there.
func TestTeamKeepsNoRelease(t *testing.T) {
	keep := func(namespace, storage string) func(*render.Input) {
		return func(in *render.Input) {
			in.Releases = map[string]render.Kept{"a": {HelmReleaseIdentity: hubv1.HelmReleaseIdentity{Name: "a", Namespace: namespace, StorageNamespace: storage}}}
		}
	}
	for _, addon := range []string{with(chart, ""), "adopt: {name: x}, " + with(chart, "")} {
		for _, namespace := range []string{"apps", "tenant1-db"} {
			out, err := ofTeam(t, devTeam(), addon, "", keep(namespace, namespace))
			if err != nil || out.Objects[0].Release.Namespace != namespace || out.Objects[0].DefaultRelease != (namespace == "apps") {
				t.Errorf("%s, release in %s: %v", addon, namespace, err)
			}
		}
		for _, where := range [][2]string{{"kube-system", "kube-system"}, {"apps", "kube-system"}, {"kube-system", "apps"}} {
			out, err := ofTeam(t, devTeam(), addon, "", keep(where[0], where[1]))
			want := `Team dev-team: the release is in namespace "kube-system", and has to be in one of the Team's namespaces, apps, tenant1-db; ask`
			if err == nil || !strings.Contains(err.Error(), want) || len(out.Objects) > 0 {
				t.Errorf("%s, release in %v: got %v", addon, where, err)
			}
		}
	}
}

// TestOwnersOfClustersAndTeams: a cluster's owner decides what the team's set opens to him, and cannot lead the team's
// add-on out of the team's namespaces with that.
func TestOwnersOfClustersAndTeams(t *testing.T) {
	override := func(body string) func(*render.Input) {
		return func(in *render.Input) {
			o := hubv1.Override{Name: "a"}
			must.Do(t, yaml.Unmarshal([]byte(body), &o))
			in.Overrides = []hubv1.Override{o}
		}
	}
	out, err := ofTeam(t, devTeam(), "overridable: [install, values], "+with(chart, ""), "", override("{name: a, helmRelease: {values: {x: 1}}}"))
	if err != nil || len(out.Refused) > 0 {
		t.Fatal(err, out.Refused)
	}
	out, err = ofTeam(t, devTeam(), "overridable: [install, values], "+with(chart, ""), "", override("{name: a, helmRelease: {install: {createNamespace: true}}}"))
	if err != nil || len(out.Objects) != 1 || len(out.Refused) != 1 || !strings.Contains(out.Refused[0].String(), "install.createNamespace: Team dev-team") {
		t.Errorf("got %v, refused %v", err, out.Refused)
	}
}
