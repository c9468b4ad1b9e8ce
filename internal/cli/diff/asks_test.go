// SPDX-License-Identifier: Apache-2.0

package diff_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/chandler-hub/chandler/internal/cli/clitest"
)

const asksFleet = `
{apiVersion: chandler.dev/v1alpha1, kind: ClusterRegistration, metadata: {name: c1, namespace: fleet}, spec: {kubeConfig: {secretRef: {name: a}}}, status: {kubernetesVersion: v1.34.2}}
---
{apiVersion: source.toolkit.fluxcd.io/v1, kind: HelmRepository, metadata: {name: charts, namespace: flux-system}, spec: {interval: 1h, url: "https://charts.example.org"}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: sizes, namespace: flux-system}, data: {values.yaml: "a: 1"}}
---
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: base, namespace: flux-system}
spec:
  selectAll: true
  addons:
    - name: web
      helmRelease:
        chart: {spec: {chart: web, version: 1.0.0, sourceRef: {kind: HelmRepository, name: charts}}}
        valuesFrom: [{kind: ConfigMap, name: sizes}]
        values: {text: $TEXT}
`

// TestDiffAsks: a chart that asks its cluster may come out otherwise there, also where it comes out the same without it. So its objects are
// not known to be the same, unless the chart and its values are.
func TestDiffAsks(t *testing.T) {
	const same = "are not as before, and its objects are the same as far as they can be made without the cluster"
	const plain = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n"
	asking := func(size string) string {
		return plain + `data: {a: {{ if lookup "v1" "Secret" "a" "b" }}"` + size + `"{{ else }}"0"{{ end }}}` + "\n"
	}
	for name, tc := range map[string]struct {
		old, next       string // templates
		files, newFiles string
		text, newValues string
		code            int
		want            string
	}{
		"another template that looks":             {old: asking("1"), next: asking("2"), code: 2, want: same},
		"another template that asks for APIs":     {old: plain, next: plain + "{{ if .Capabilities.APIVersions.Has \"a/v1\" }}data: {}{{ end }}\n", code: 2, want: same},
		"the same chart in another folder":        {old: asking("1"), next: asking("1"), code: 0, want: "No changes"},
		"another template that asks nothing":      {old: plain, next: plain + "# {{ .Release.Name }}\n", code: 0, want: "No changes"},
		"other values of a template that looks":   {old: asking("1"), next: asking("1"), newValues: "a: 2", code: 2, want: same},
		"other values of one that asks nothing":   {old: plain, next: plain, newValues: "a: 2", code: 0, want: "No changes"},
		"values that look":                        {old: plain + "{{ tpl .Values.text . }}\n", next: plain + "{{ tpl .Values.text . }}\n", text: `'# {{ lookup "v1" "Secret" "a" "b" }}'`, newValues: "a: 2", code: 2, want: same},
		"a file that looks":                       {old: plain + `{{ tpl (.Files.Get "more/a.txt") . }}`, next: plain + `{{ tpl (.Files.Get "more/a.txt") . }}`, files: `# {{ lookup "v1" "Secret" "a" "b" }}`, newFiles: `# {{ lookup "v1" "Secret" "a" "c" }}`, code: 2, want: same},
		"another template that looks and changes": {old: asking("1"), next: strings.Replace(asking("2"), `"0"`, `"3"`, 1), code: 1, want: "the chart looks what its cluster has (lookup)"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			side := func(at, template, file, values string) (fleet, charts string) {
				if tc.text == "" {
					tc.text = `""`
				}
				text := strings.Replace(asksFleet, "$TEXT", tc.text, 1)
				if values != "" {
					text = strings.Replace(text, "a: 1", values, 1)
				}
				fleet, charts = filepath.Join(dir, at, "fleet.yaml"), filepath.Join(dir, at, "charts")
				clitest.Write(t, fleet, text)
				clitest.Write(t, filepath.Join(charts, "web", "Chart.yaml"), "apiVersion: v2\nname: web\nversion: 1.0.0\n")
				clitest.Write(t, filepath.Join(charts, "web", "templates", "a.yaml"), template)
				clitest.Write(t, filepath.Join(charts, "web", "more", "a.txt"), file)
				return fleet, charts
			}
			old, oldCharts := side("old", tc.old, tc.files, "")
			next, newCharts := side("new", tc.next, tc.newFiles, tc.newValues)
			out, errs, code := diffed(t, "-f", next, "--against", old, "--charts", "--local-sources", "HelmRepository/flux-system/charts="+newCharts,
				"--against-local-sources", "HelmRepository/flux-system/charts="+oldCharts)
			if code != tc.code || !strings.Contains(out+errs, tc.want) {
				t.Errorf("ends with %d, want %d and %q:\n%s\n%s", code, tc.code, tc.want, out, errs)
			}
		})
	}
}
