// SPDX-License-Identifier: Apache-2.0

package fluxspec_test

import (
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/must"
)

func body(t *testing.T, text string) map[string]any {
	t.Helper()
	m := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestCheck(t *testing.T) {
	const chart = "chart: {spec: {chart: podinfo, version: 6.x, sourceRef: {kind: HelmRepository, name: podinfo}}}\n"
	platform := fluxspec.Author{Namespace: "flux-system", Platform: true}
	cases := map[string]struct {
		kind   string
		body   string
		author fluxspec.Author
		want   []fluxspec.Problem
	}{
		"Good":              {kind: "HelmRelease", body: chart + "values: {a: {b: [1, null]}}", author: platform},
		"GoodKustomization": {kind: "Kustomization", body: "{sourceRef: {kind: GitRepository, name: fleet}, path: ./a}", author: platform},
		"MisspeltField": {kind: "HelmRelease", author: platform, body: "chart: {spec: {chart: podinfo, versoin: 6.x, sourceRef: {kind: HelmRepository, name: podinfo}}}",
			want: []fluxspec.Problem{{Path: "chart.spec.versoin", Message: "is not a field of a Flux HelmRelease; did you mean version?"}}},
		"DurationWithoutUnit": {kind: "HelmRelease", author: platform, body: chart + "interval: '10'\ntimeout: 5m",
			want: []fluxspec.Problem{{Path: "interval", Message: `missing unit in duration "10"; write a duration such as 10m`}}},
		"WrongTypes": {kind: "Kustomization", author: platform, body: "{sourceRef: {kind: GitRepository, name: fleet}, prune: 'yes', path: 3, patches: {}}",
			want: []fluxspec.Problem{
				{Path: "patches", Message: "is an object, and must be a list"},
				{Path: "path", Message: "is 3, which YAML reads as no text; put it in quotes"},
				{Path: "prune", Message: "is a text, and must be true or false"},
			}},
		"Substitutes": {kind: "Kustomization", author: platform, body: "{sourceRef: {kind: GitRepository, name: fleet}, postBuild: {substitute: {text: a, size: 3}}}",
			want: []fluxspec.Problem{{Path: "postBuild.substitute.size", Message: "is 3, which YAML reads as no text; put it in quotes"}}},
		"Refused": {kind: "HelmRelease", author: platform, body: chart + "kubeConfig: {secretRef: {name: x}}\nsuspend: true",
			want: []fluxspec.Problem{
				{Path: "kubeConfig", Message: "is set by the hub for each cluster; remove it"},
				{Path: "suspend", Message: "would stop every cluster; suspend the generated object of one cluster with `flux suspend` instead"},
			}},
		"NullName": {kind: "HelmRelease", author: platform, body: chart + "targetNamespace: null",
			want: []fluxspec.Problem{{Path: "targetNamespace", Message: "must not be null: leave it out for the default, which is the add-on's name"}}},
		"NoChart": {kind: "HelmRelease", author: platform, body: "values: {}",
			want: []fluxspec.Problem{{Path: "chart", Message: "write exactly one of chart and chartRef"}}},
		"IncompleteChart": {kind: "HelmRelease", author: platform, body: "chart: {spec: {sourceRef: {name: x}}}",
			want: []fluxspec.Problem{
				{Path: "chart.spec.chart", Message: "is required: the name of the chart, or its path in the source"},
				{Path: "chart.spec.sourceRef.kind", Message: "is required: HelmRepository, GitRepository or Bucket. It may be left out for a source of this set's spec.sources"},
			}},
		"ForeignSource": {kind: "Kustomization", author: fluxspec.Author{Namespace: "team-a"}, body: "{sourceRef: {kind: GitRepository, name: fleet, namespace: flux-system}}",
			want: []fluxspec.Problem{{Path: "sourceRef.namespace", Message: `is "flux-system": a set outside the platform namespaces may refer only to sources in its own namespace, "team-a"`}}},
		"ForeignSourceOfThePlatform": {kind: "Kustomization", author: platform, body: "{sourceRef: {kind: GitRepository, name: fleet, namespace: other}}"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := fluxspec.Check(tc.kind, body(t, tc.body), tc.author)
			must.Equal(t, tc.want, got)
		})
	}
}

func TestDefault(t *testing.T) {
	cases := map[string]struct{ kind, body, want string }{
		"HelmRelease": {
			kind: "HelmRelease",
			body: "chart: {}",
			want: `{chart: {}, interval: 10m, releaseName: web, targetNamespace: web, storageNamespace: web, driftDetection: {mode: enabled},
			  install: {createNamespace: true, strategy: {name: RetryOnFailure}}, upgrade: {strategy: {name: RetryOnFailure}, chartNameChangeStrategy: InPlaceUpdate}}`,
		},
		"HelmReleaseOfAKnownChart": {
			kind: "HelmRelease",
			body: "chart: {spec: {chart: web, sourceRef: {kind: HelmRepository, name: charts}}}",
			want: `{chart: {spec: {chart: web, sourceRef: {kind: HelmRepository, name: charts}}}, interval: 10m, releaseName: web, targetNamespace: web, storageNamespace: web,
			  driftDetection: {mode: enabled}, install: {createNamespace: true, strategy: {name: RetryOnFailure}}, upgrade: {strategy: {name: RetryOnFailure}}}`,
		},
		"HelmReleaseOwnChoices": {
			kind: "HelmRelease",
			body: `{interval: 1m, releaseName: r, targetNamespace: t, driftDetection: {mode: warn}, install: {createNamespace: false, remediation: {retries: 3}}, upgrade: {strategy: {name: RemediateOnFailure}}}`,
			want: `{interval: 1m, releaseName: r, targetNamespace: t, storageNamespace: t, driftDetection: {mode: warn}, install: {createNamespace: false, remediation: {retries: 3}}, upgrade: {strategy: {name: RemediateOnFailure}, chartNameChangeStrategy: InPlaceUpdate}}`,
		},
		"Kustomization":       {kind: "Kustomization", body: "path: ./a", want: "{path: ./a, interval: 10m, retryInterval: 2m, prune: true, deletionPolicy: WaitForTermination}"},
		"KustomizationKeeper": {kind: "Kustomization", body: "prune: false", want: "{interval: 10m, retryInterval: 2m, prune: false}"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := body(t, tc.body)
			fluxspec.Default(tc.kind, got, "web", nil)
			must.Equal(t, body(t, tc.want), got)
		})
	}
}
