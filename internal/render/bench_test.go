// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/expression"
	"github.com/chandler-hub/chandler/internal/render"
)

// fleetSet is a set as platform teams have them: ten add-ons, five overlays of which three match, twenty expressions.
func fleetSet(tb testing.TB) *hubv1.AddonSetSpec {
	tb.Helper()
	var b strings.Builder
	b.WriteString("selectAll: true\nvariables: {domain: example.org, host: \"<< cluster.name + '.' + vars.domain >>\"}\n")
	b.WriteString("sources: [{name: charts, kind: HelmRepository, spec: {url: \"https://<< cluster.labels.region >>.example.org/charts\"}}]\naddons:\n")
	for i := range 10 {
		fmt.Fprintf(&b, `- name: addon-%d
  helmRelease:
    interval: 10m
    chart: {spec: {chart: chart-%d, version: 1.2.%d, sourceRef: {name: charts}}}
    values:
      replicaCount: "<< cluster.nodes > 3 ? 3 : 1 >>"
      image: {repository: registry.example.org/addon-%d, tag: v1.2.%d, pullPolicy: IfNotPresent}
      ingress: {enabled: true, className: nginx, hosts: ["addon-%d.<< vars.host >>"], tls: []}
      resources: {requests: {cpu: 100m, memory: 128Mi}, limits: {memory: 256Mi}}
      serviceAccount: {create: true, annotations: {}}
      tolerations: [{key: node-role.kubernetes.io/control-plane, operator: Exists, effect: NoSchedule}]
`, i, i, i, i, i, i)
	}
	b.WriteString("overlays:\n")
	for i := range 5 {
		region := []string{"eu", "us"}[i%2]
		fmt.Fprintf(&b, "- name: overlay-%d\n  clusterSelector: {matchLabels: {region: %s}}\n  variables: {layer: \"<< %d + 1 >>\"}\n  addons:\n", i, region, i)
		for a := range 10 {
			fmt.Fprintf(&b, "  - {name: addon-%d, helmRelease: {values: {resources: {limits: {memory: %dMi}}, region: %s}}}\n", a, 256+i, region)
		}
	}
	spec := &hubv1.AddonSetSpec{}
	if err := yaml.UnmarshalStrict([]byte(b.String()), spec); err != nil {
		tb.Fatal(err)
	}
	return spec
}

func fleetInput(n int) (render.Target, *render.Input) {
	to := target(fmt.Sprintf("tenant%d", n))
	return to, &render.Input{Cluster: &expression.Cluster{Name: to.Registration.Name, Namespace: "tenants", Labels: map[string]string{"region": "eu"}, Nodes: 5}}
}

// BenchmarkRender is one cluster's share of a set that changed: what a fan-out costs the hub for each cluster, before it
// writes. docs/performance.md has the numbers.
func BenchmarkRender(b *testing.B) {
	p, err := compile.Compile(fleetSet(b), compile.Author{Namespace: "flux-system", Platform: true})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		to, in := fleetInput(1)
		r, err := render.Render(p, to, in)
		if err != nil || len(r.Objects) != 10 || len(r.Failed) > 0 {
			b.Fatal(err, r.Failed)
		}
	}
}

// BenchmarkCompile is what a revision costs once.
func BenchmarkCompile(b *testing.B) {
	spec := fleetSet(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := compile.Compile(spec, compile.Author{Namespace: "flux-system", Platform: true}); err != nil {
			b.Fatal(err)
		}
	}
}
