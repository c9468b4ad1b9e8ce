// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-hub/chandler/internal/diff"
	"github.com/chandler-hub/chandler/test/localfleet"
)

// insideSet brings a chart, and a folder of a repository.
const insideSet = `
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: inside, namespace: flux-system}
spec:
  selectAll: true
  rollout: {strategy: AllAtOnce}
  sources:
    - {name: charts, kind: HelmRepository, spec: {url: $CHARTS}}
    - {name: fleet, kind: GitRepository, spec: {url: $GIT, ref: {branch: inside-old}}}
  addons:
    - name: cmd-inside
      helmRelease:
        interval: 1h
        chart: {spec: {chart: inside, version: 1.0.0, sourceRef: {name: charts}}}
        values: {color: red}
    - name: cmd-folder
      kustomization: {interval: 1h, sourceRef: {kind: GitRepository, name: fleet}, path: ./inside, prune: true}
    #new
  overlays:
    - name: us
      clusterSelector: {matchLabels: {region: us}}
      addons: [{name: cmd-inside, helmRelease: {values: {size: "1"}}}]
`

var insideEdit = strings.NewReplacer("version: 1.0.0", "version: 1.1.0", "inside-old", "inside-new", `size: "1"`, `size: "2"`, "color: red", "color: blue",
	"#new", "- {name: cmd-inside-new, manifests: {objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: cmd-inside-new}, data: {a: new}}]}}")

// insideChart is a chart of two versions, without anything that needs nodes.
func insideChart(version string) fstest.MapFS {
	objects := `
apiVersion: v1
kind: ConfigMap
metadata: {name: inside-colors, labels: {helm.sh/chart: "inside-{{ .Chart.Version }}"}}
data: {color: {{ .Values.color }}, size: "{{ .Values.size | default 0 }}", kept: same}
---
apiVersion: v1
kind: Service
metadata: {name: inside, namespace: {{ .Release.Namespace }}}
spec: {ports: [{name: http, port: {{ if eq .Chart.Version "1.0.0" }}80{{ else }}8080{{ end }}}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: inside-same}
---
apiVersion: v1
kind: Secret
metadata: {name: inside-secret}
stringData: {password: hunter-{{ .Values.color }}}
`
	gone := `
---
apiVersion: v1
kind: ConfigMap
metadata: {name: inside-gone}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: inside-kept, annotations: {helm.sh/resource-policy: keep}}
`
	if version != "1.0.0" {
		gone = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: inside-comes}\ndata: {a: b}\n"
	}
	return fstest.MapFS{"inside/Chart.yaml": {Data: []byte("apiVersion: v2\nname: inside\nversion: " + version + "\n")},
		"inside/templates/all.yaml": {Data: []byte(objects + gone)}}
}

// diffsObjects: what diff --charts and --live say of the objects in clusters is what becomes of them, field by field, and of no other.
func (g *generation) diffsObjects(t *testing.T) {
	ctx := t.Context()
	for _, version := range []string{"1.0.0", "1.1.0"} {
		check(t, g.charts.Publish(insideChart(version), "inside"))
	}
	folder := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: inside-folder, namespace: default}\ndata: {a: OLD}\n"
	for branch, files := range map[string]map[string]string{
		"inside-old": {"inside/a.yaml": folder, "inside/b.yaml": strings.Replace(folder, "inside-folder", "inside-folder-gone", 1)},
		"inside-new": {"inside/a.yaml": strings.Replace(folder, "OLD", "NEW", 1), "inside/kustomization.yaml": "resources: [a.yaml]\ncommonAnnotations: {by: kustomize}\n"},
	} {
		_, err := g.git.CommitTo("fleet", branch, files)
		check(t, err)
	}
	g.apply(t, insideSet)
	there := func() error { return g.delivered(ctx, "inside", "one", "two") }
	soon(t, "all is delivered", there)
	file := filepath.Join(t.TempDir(), "new.yaml")
	edited := g.fill(insideEdit.Replace(insideSet))
	check(t, os.WriteFile(file, []byte(edited), 0o600))
	out, errs, code := chandler(t, "diff", "-f", file, "--kubeconfig", g.KubeconfigFile(), "--platform-namespaces=flux-system,platform", "--output", "json",
		"--charts", "--live", "--cluster", "one,two")
	if code != 1 || strings.Contains(out, "hunter-") {
		t.Fatalf("exit code %d, want 1: %s\n%s", code, errs, out)
	}
	said := &diff.Result{}
	check(t, json.Unmarshal([]byte(out), said))
	clusters := map[string]*localfleet.Cluster{"fleet/one": g.one, "fleet/two": g.two}
	before := map[string]map[string]*unstructured.Unstructured{}
	for name, c := range clusters {
		before[name] = insideObjects(t, c)
	}
	apply(t, g.Client, edited)
	soon(t, "the edit is on the clusters", func() error {
		return errors.Join(there(), wantData(ctx, g.one, "cmd-inside", "inside-colors", "color", "blue"), wantData(ctx, g.two, "cmd-inside", "inside-colors", "size", "2"),
			wantData(ctx, g.one, "default", "inside-folder", "a", "NEW"), wantData(ctx, g.two, "default", "inside-folder", "a", "NEW"),
			wantData(ctx, g.one, "default", "cmd-inside-new", "a", "new"), wantData(ctx, g.two, "default", "cmd-inside-new", "a", "new"))
	})
	for name, c := range clusters {
		happened := becameOf(before[name], insideObjects(t, c))
		// The chart does not write targetPort, which the API server fills in: only a dry run knows.
		written := maps.Clone(happened)
		written["Service inside"] = strings.Replace(written["Service inside"], " Changed spec.ports[name=http].targetPort 80->8080", "", 1)
		if written["Service inside"] == happened["Service inside"] {
			t.Errorf("%s: the API server has filled nothing in: %v", name, happened)
		}
		if d := cmp.Diff(written, insideSaid(said, name)); d != "" {
			t.Errorf("%s: -what became of the objects +what --charts said\n%s", name, d)
		}
		if d := cmp.Diff(happened, triedSaid(said, name)); d != "" {
			t.Errorf("%s: -what became of the objects +what --live said\n%s", name, d)
		}
		if t.Failed() {
			t.Fatalf("it printed\n%s", out)
		}
		if len(happened) != 8 {
			t.Errorf("%s: something became of %d objects: %v", name, len(happened), happened)
		}
	}
	g.remove(t, "flux-system", "inside")
}

// insideObjects returns the objects of a cluster that this test is about.
func insideObjects(t *testing.T, c *localfleet.Cluster) map[string]*unstructured.Unstructured {
	t.Helper()
	out := map[string]*unstructured.Unstructured{}
	for _, kind := range []string{"ConfigMap", "Service", "Secret"} {
		list := unstructuredList("v1", kind)
		check(t, c.Client.List(t.Context(), list))
		for i := range list.Items {
			if u := &list.Items[i]; strings.Contains(u.GetName(), "inside") && !strings.HasPrefix(u.GetName(), "sh.helm.") {
				out[kind+" "+u.GetName()] = u
			}
		}
	}
	return out
}

// becameOf says what became of each object that is not as before.
func becameOf(before, after map[string]*unstructured.Unstructured) map[string]string {
	out := map[string]string{}
	for name, u := range before {
		if after[name] == nil {
			out[name] = "Removed"
			continue
		}
		fields, _ := diff.ObjectFields(u.Object, after[name].Object, 100)
		if after[name].GetUID() != u.GetUID() {
			out[name] = "made again"
		} else if len(fields) > 0 {
			out[name] = "Changed" + fieldsSaid(fields)
		}
	}
	for name := range after {
		if before[name] == nil {
			out[name] = "Created"
		}
	}
	return out
}

// fieldsSaid tells fields in one line. What a Secret holds is stored otherwise than charts write it.
func fieldsSaid(fields []diff.Field) string {
	lines := map[string]bool{}
	for i := range fields {
		f := &fields[i]
		lines[fmt.Sprintf(" %s %s %v->%v", f.Op, strings.Replace(f.Path, "stringData.", "data.", 1), value(f.Old), value(f.New))] = true
	}
	return strings.Join(slices.Sorted(maps.Keys(lines)), "")
}

func insideSaid(r *diff.Result, cluster string) map[string]string {
	out := map[string]string{}
	for i := range r.Groups {
		if !slices.Contains(r.Groups[i].Clusters, cluster) {
			continue
		}
		for _, c := range r.Groups[i].Changes {
			if c.Inside == nil {
				continue
			}
			for _, o := range c.Inside.Objects {
				if o.Kind != diff.ObjectKept {
					out[o.Object+" "+o.Name] = string(o.Kind) + fieldsSaid(o.Fields)
				}
			}
		}
	}
	return out
}

func triedSaid(r *diff.Result, cluster string) map[string]string {
	out := map[string]string{}
	for i := range r.Tried {
		if r.Tried[i].Cluster != cluster {
			continue
		}
		for _, o := range r.Tried[i].Objects {
			outcome := string(o.Outcome)
			if o.Outcome == diff.TriedLater { // its namespace comes with the change
				outcome = "Created"
			}
			if o.Outcome != diff.TriedKept {
				out[o.Kind+" "+o.Name] = outcome + fieldsSaid(o.Fields)
			}
		}
	}
	return out
}
