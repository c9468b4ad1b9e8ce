// SPDX-License-Identifier: Apache-2.0

package compile_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
)

func TestFloating(t *testing.T) {
	const commit = "8a0a69e0f0910bb3e11b0a4789781ee4f11f8990"
	for name, tc := range map[string]struct {
		spec string
		want []string
	}{
		"ExactChart": {spec: `{addons: [{name: a, helmRelease: {chart: {spec: {chart: x, version: 1.2.3, sourceRef: {kind: HelmRepository, name: charts}}}}}]}`},
		"Range": {`{addons: [{name: a, helmRelease: {chart: {spec: {chart: x, version: 1.x, sourceRef: {kind: HelmRepository, name: charts}}}}}]}`,
			[]string{"addons[a].helmRelease.chart.spec.version: 1.x"}},
		"NoVersion": {`{addons: [{name: a, helmRelease: {chart: {spec: {chart: x, sourceRef: {name: charts}}}}}]}`,
			[]string{"addons[a].helmRelease.chart.spec.version: the latest"}},
		"OverlayWithoutVersion": {spec: `{addons: [{name: a, helmRelease: {chart: {spec: {chart: x, version: 1.2.3}}}}],
			overlays: [{name: o, addons: [{name: a, helmRelease: {values: {a: 1}}}]}]}`},
		"OverlayWithARange": {`{addons: [{name: a, helmRelease: {chart: {spec: {chart: x, version: 1.2.3}}}}],
			overlays: [{name: o, addons: [{name: a, helmRelease: {chart: {spec: {version: ">1"}}}}]}]}`,
			[]string{"overlays[o].addons[a].helmRelease.chart.spec.version: >1"}},
		"Expression": {`{addons: [{name: a, helmRelease: {chart: {spec: {chart: x, version: "<< vars.v >>"}}}}]}`,
			[]string{"addons[a].helmRelease.chart.spec.version: << vars.v >>"}},
		"Commit": {spec: `{sources: [{name: g, kind: GitRepository, spec: {url: u, ref: {commit: ` + commit + `}}}],
			addons: [{name: a, kustomization: {sourceRef: {name: g}}}]}`},
		"Branch": {`{sources: [{name: g, kind: GitRepository, spec: {url: u, ref: {branch: main}}}],
			addons: [{name: a, kustomization: {sourceRef: {name: g}, postBuild: {substituteFrom: [{kind: Secret, name: s}]}}}]}`,
			[]string{"addons[a].kustomization.sourceRef: GitRepository g, which follows its branch, tag or range",
				"addons[a].kustomization.postBuild.substituteFrom: Secret s"}},
		"SourceOfSomebodyElse": {`{addons: [{name: a, kustomization: {sourceRef: {kind: GitRepository, name: fleet}}}]}`,
			[]string{"addons[a].kustomization.sourceRef: GitRepository fleet, which is not one of spec.sources"}},
		"Digest": {spec: `{sources: [{name: o, kind: OCIRepository, spec: {url: u, ref: {digest: "sha256:` + commit + commit[:24] + `"}}}],
			addons: [{name: a, helmRelease: {chartRef: {kind: OCIRepository, name: o}}}]}`},
		"OCITag": {`{sources: [{name: o, kind: OCIRepository, spec: {url: u, ref: {tag: v1}}}],
			addons: [{name: a, helmRelease: {chartRef: {kind: OCIRepository, name: o}, valuesFrom: [{kind: ConfigMap, name: v}]}}]}`,
			[]string{"addons[a].helmRelease.chartRef: OCIRepository o, which follows its branch, tag or range",
				"addons[a].helmRelease.valuesFrom: ConfigMap v"}},
		"ChartInGit": {`{sources: [{name: g, kind: GitRepository, spec: {url: u, ref: {tag: v1}}}],
			addons: [{name: a, helmRelease: {chart: {spec: {chart: ./x, version: 1.2.3, sourceRef: {name: g}}}}}]}`,
			[]string{"addons[a].helmRelease.chart.spec.sourceRef: GitRepository g, which follows its branch, tag or range"}},
		"Variables": {`{variablesFrom: [{configMap: "v-<< cluster.name >>"}], addons: [{name: a, manifests: {objects: []}}]}`,
			[]string{"variablesFrom: ConfigMap v-<< cluster.name >>"}},
		"Manifests": {`{addons: [{name: a, manifests: {manifestsFrom: [{kind: ConfigMap, name: m, key: k}]}}]}`,
			[]string{"addons[a].manifests.manifestsFrom: ConfigMap m"}},
	} {
		t.Run(name, func(t *testing.T) {
			spec := &hubv1.AddonSetSpec{}
			if err := yaml.UnmarshalStrict([]byte(tc.spec), spec); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, compile.Floating(spec)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
