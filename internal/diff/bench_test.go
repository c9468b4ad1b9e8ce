// SPDX-License-Identifier: Apache-2.0

package diff_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/chandler-hub/chandler/internal/diff"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/origin"
	"github.com/chandler-hub/chandler/internal/preview"
)

// large returns a fleet with overlays, variables and expressions, in which every add-on has another version than in the other one.
func large(t testing.TB, clusters, addons int, version string) *preview.Fleet {
	t.Helper()
	var out strings.Builder
	for i := range clusters {
		fmt.Fprintf(&out, "apiVersion: chandler.dev/v1alpha1\nkind: ClusterRegistration\nmetadata: {name: c%04d, namespace: fleet, "+
			"labels: {region: r%d, tier: t%d}}\nspec: {variables: {size: %d}}\n---\n", i, i%7, i%3, i%2)
	}
	out.WriteString("apiVersion: chandler.dev/v1alpha1\nkind: AddonSet\nmetadata: {name: base, namespace: flux-system}\nspec:\n  selectAll: true\n  addons:\n")
	for i := range addons {
		fmt.Fprintf(&out, `    - name: addon-%02d
      helmRelease:
        chart: {spec: {chart: chart-%d, version: %s, sourceRef: {kind: HelmRepository, name: charts}}}
        targetNamespace: apps
        values:
          replicas: << int(vars.size) + 1 >>
          resources: {requests: {cpu: 100m, memory: 128Mi}, limits: {cpu: "1", memory: 256Mi}}
          ingress: {host: "<< cluster.name >>.example.com", class: nginx, tls: true}
          image: {repository: registry.example.com/app, tag: %s}
`, i, i, version, version)
	}
	out.WriteString("  overlays:\n")
	for i := range 7 {
		fmt.Fprintf(&out, "    - name: r%d\n      clusterSelector: {matchLabels: {region: r%d}}\n      addons: [{name: addon-00, helmRelease: {values: "+
			"{zone: z%d-%s}}}]\n", i, i, i, version)
	}
	objects, _, err := preview.Parse("large.yaml", []byte(out.String()))
	if err != nil {
		t.Fatal(err)
	}
	return must.Get(preview.NewFleet(objects, origin.Policy{})).Or(t)
}

// BenchmarkFleet compares 5,000 clusters with ten add-ons each, all of which change. It reports the memory that is in use at the end, with
// both fleets.
func BenchmarkFleet(b *testing.B) {
	before, after := large(b, 5000, 10, "1.0.0"), large(b, 5000, 10, "1.1.0")
	for b.Loop() {
		r := diff.Compute(&diff.Input{Before: before, After: after, Options: options(), From: "old", To: "new"})
		if r.Summary.Changed != 5000 || len(r.Groups) != 7 {
			b.Fatalf("%d clusters change, in %d groups", r.Summary.Changed, len(r.Groups))
		}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		b.ReportMetric(float64(m.HeapAlloc)/(1<<20), "MiB-kept")
		b.ReportMetric(float64(m.Sys)/(1<<20), "MiB-from-system")
		runtime.KeepAlive(r)
	}
}
