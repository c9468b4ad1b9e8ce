// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/chandler-hub/chandler/internal/cli/clitest"
	"github.com/chandler-hub/chandler/internal/cli/exit"
	"github.com/chandler-hub/chandler/internal/kubeconfig"
)

// mistaken are files in which the body of the add-on, $, may be a mistake.
const mistaken = `apiVersion: chandler.dev/v1alpha1
kind: ClusterRegistration
metadata: {name: edge1, namespace: flux-system, labels: {a-b: x}}
spec: {kubeConfig: {secretRef: {name: a}}}
status: {nodes: 3, kubernetesVersion: v1.33.2}
---
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: base, namespace: flux-system}
spec:
  selectAll: true
  addons:
  - name: web
    $
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: charts, namespace: flux-system}
spec: {url: https://charts.example.org}
`

// TestMistakes: each mistake that many people make is told with its cause and its remedy, in the words that a user sees.
func TestMistakes(t *testing.T) {
	const (
		ref      = "sourceRef: {name: charts, kind: HelmRepository}"
		chart    = "helmRelease: {chart: {spec: {chart: web, " + ref + "}}, "
		literal  = "write <<< for a literal <<"
		manifest = "manifests: {objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {b: c}}, data: {a: b}}]}"
		document = "apiVersion: v1\n      kind: ConfigMap\n      metadata: {name: "
	)
	values := func(v string) string { return chart + "values: {a: " + v + "}}" }
	for name, tc := range map[string]struct {
		// body is the add-on's, and replace are texts of the files and what is there in place of them.
		body    string
		replace []string
		want    []string
	}{
		"a template":                          {body: values(`'sum(<<.Series>>{<<.LabelMatchers>>})'`), want: []string{"helmRelease.values.a", literal}},
		"a heredoc":                           {body: values(`"cat << EOF\nhello\nEOF\n"`), want: []string{"helmRelease.values.a", literal}},
		"a shift":                             {body: values(`'x = 1 << 3 >> 1'`), want: []string{"helmRelease.values.a", "the number 3 and nothing else", literal}},
		"a label with a dash":                 {body: values(`'<< cluster.labels.a-b >>'`), want: []string{"helmRelease.values.a", "labels['a-b']"}},
		"a label with dots":                   {body: values(`'<< cluster.labels.example.org/zone >>'`), want: []string{"labels['example.org/zone']"}},
		"a whole number and one with a point": {body: values(`'<< cluster.nodes * 1.5 >>'`), want: []string{"helmRelease.values.a", "no matching overload", "double("}},
		"a version with a v before its range": {body: "helmRelease: {chart: {spec: {chart: web, version: v^4.0, " + ref + "}}}",
			want: []string{`chart.spec.version: is "v^4.0"`, "neither a version nor a range of versions; write one such as 4.0.1, 4.x or ^4.0"}},
		"a slash in the name of an annotation": {body: chart + "values: {annotations: {a: b}}}",
			replace: []string{"  selectAll: true\n", "  selectAll: true\n  overlays: [{name: o, clusterSelector: {matchLabels: {a-b: x}}, addons: [{name: web, patches: [{op: add, path: /values/annotations/example.org/a, value: x}]}]}]\n"},
			want:    []string{"patches[0]", "a / within a name is written ~1: /values/annotations/example.org~1a"}},
		"a registry without its type": {body: values("b"), replace: []string{"https://charts.example.org", "oci://charts.example.org"},
			want: []string{"error: ", "HelmRepository flux-system/charts: spec.type: is required: write type: oci, as the address is one of a registry (oci://)"}},
		"a registry of the set without its type": {body: values("b"), replace: []string{"  selectAll: true\n", "  selectAll: true\n  sources: [{name: own, kind: HelmRepository, spec: {url: oci://x.example.org}}]\n"},
			want: []string{"error: ", "own", "type: is required: write type: oci"}},
		"a word that YAML takes for true": {body: values("y"), want: []string{"warning: ", "fleet.yaml, line 14: AddonSet flux-system/base: spec.addons[0].helmRelease.values.a: y without quotes is true", `write "y" if it is text`}},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "fleet.yaml")
			write(t, file, strings.NewReplacer(append([]string{"$", tc.body}, tc.replace...)...).Replace(mistaken))
			_, said, code := runSmall(t, "render -f "+file)
			for _, want := range tc.want {
				if !strings.Contains(said, want) {
					t.Errorf("%q is missing", want)
				}
			}
			if t.Failed() || (code == 0) != strings.Contains(said, "warning: ") {
				t.Errorf("it ends with %d, and says\n%s", code, said)
			}
		})
	}
	t.Run("a Secret of Argo CD", func(t *testing.T) {
		_, err := kubeconfig.Parse([]byte(`{"bearerToken": "hunter2", "tlsClientConfig": {"caData": "x"}}`), kubeconfig.Rules{})
		if err == nil || !strings.Contains(err.Error(), "is of an Argo CD cluster Secret, and no kubeconfig; write a kubeconfig") {
			t.Errorf("it is told as %v", err)
		}
	})
	t.Run("a document that is no object", func(t *testing.T) {
		old, file := filepath.Join(t.TempDir(), "fleet.yaml"), filepath.Join(t.TempDir(), "fleet.yaml")
		write(t, old, strings.Replace(mistaken, "$", manifest, 1))
		write(t, file, strings.Replace(mistaken, "$", "manifests: {manifestsFrom: [{kind: ConfigMap, name: calico}]}", 1)+
			"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: calico, namespace: flux-system}\ndata:\n  a.yaml: |\n      "+
			document+"a}\n      ---\n      "+document+"b}\n      ---\n      "+document+"c}\n      ---\n      password: hunter2\n")
		out, errs, code := clitest.Ends(newCommand(made), "diff", "--charts", "--full", "-f", file, "--against", old)
		if want := `key "a.yaml" of ConfigMap "calico": document 4: no apiVersion`; code != exit.Uncertain || !strings.Contains(out+errs, want) || strings.Contains(out+errs, "hunter2") {
			t.Errorf("it ends with %d, and %q is missing:\n%s\n%s", code, want, out, errs)
		}
	})
}
