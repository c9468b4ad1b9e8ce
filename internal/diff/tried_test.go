// SPDX-License-Identifier: Apache-2.0

package diff_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-hub/chandler/internal/diff"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/origin"
	"github.com/chandler-hub/chandler/internal/preview"
)

// sampled is a fleet with three groups: those of region eu, those of us, and those that have a value of their own.
func sampled(t *testing.T) *diff.Result {
	t.Helper()
	side := func(version string) *preview.Fleet {
		text := `
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: base, namespace: flux-system}
spec:
  selectAll: true
  addons:
    - {name: web, helmRelease: {chartRef: {kind: OCIRepository, name: web}, values: {v: "VERSION << has(cluster.labels.own) ? cluster.name : cluster.labels.region >>"}}}
  overlays:
    - {name: eu, clusterSelector: {matchLabels: {region: eu}}, addons: [{name: web, helmRelease: {values: {eu: VERSION}}}]}
    - {name: us, clusterSelector: {matchLabels: {region: us}}, addons: [{name: web, helmRelease: {values: {us: VERSION}}}]}
`
		text = strings.ReplaceAll(text, "VERSION", version)
		for i, labels := range []string{"region: eu", "region: eu", "region: eu", "region: us", "region: us", "own: a", "own: a", "own: a", "own: a"} {
			state := ""
			switch i {
			case 0:
				state = `, status: {conditions: [{type: Reachable, status: "False", reason: a, message: a, lastTransitionTime: "2026-01-01T00:00:00Z"}]}`
			case 2, 8:
				state = `, status: {conditions: [{type: Reachable, status: "True", reason: a, message: a, lastTransitionTime: "2026-01-01T00:00:00Z"}, {type: Ready, status: "True", reason: a, message: a, lastTransitionTime: "2026-01-01T00:00:00Z"}]}`
			}
			text += fmt.Sprintf("---\n{apiVersion: chandler.dev/v1alpha1, kind: ClusterRegistration, metadata: {name: c%d, namespace: fleet, labels: {%s}}, spec: {kubeConfig: {secretRef: {name: a}}}%s}\n", i, labels, state)
		}
		text += "---\n{apiVersion: chandler.dev/v1alpha1, kind: ClusterRegistration, metadata: {name: c1, namespace: other, labels: {region: VERSION}}, spec: {kubeConfig: {secretRef: {name: a}}}}\n"
		found, _, err := preview.Parse("a", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return must.Get(preview.NewFleet(found, origin.Policy{})).Or(t)
	}
	return diff.Compute(&diff.Input{Before: side("one"), After: side("two"), Options: options(), From: "a", To: "b"})
}

// TestSample: one cluster of each group, which answers if one does, and one of all groups that differ in values alone.
func TestSample(t *testing.T) {
	r := sampled(t)
	for name, tc := range map[string]struct {
		names []string
		most  int
		want  string
		left  string
		err   string
	}{
		"one of each":   {most: 10, want: "fleet/c2 3 region=eu, fleet/c3 2 region=us, fleet/c8 5 5 groups that differ in values"},
		"too many":      {most: 1, want: "fleet/c2 3 region=eu", left: "only the first 1 clusters of the sample are tried, and 2 others, which stand for 7 clusters, are not: name clusters by --cluster"},
		"by name":       {names: []string{"c3", "fleet/c3", "fleet/c1"}, most: 10, want: "fleet/c3 2 region=us, fleet/c1 3 region=eu"},
		"no such":       {names: []string{"c33"}, most: 10, err: `there is no cluster "c33" on either side`},
		"two of a name": {names: []string{"c1"}, most: 10, err: `there are 2 clusters called "c1": write one of fleet/c1, other/c1`},
	} {
		picks, left, err := r.Sample(tc.names, tc.most)
		var got []string
		for _, p := range picks {
			got = append(got, strings.TrimSpace(fmt.Sprintf("%s %d %s", p.Cluster, p.Clusters, p.Where)))
			if len(p.Changes) == 0 {
				t.Errorf("%s: %s has no changes", name, p.Cluster)
			}
			if pair := r.Pair(p.Cluster); pair == nil || pair.Name.String() != p.Cluster || len(pair.New.Items) != 1 {
				t.Errorf("%s: the pair of %s is %+v", name, p.Cluster, pair)
			}
		}
		if strings.Join(got, ", ") != tc.want || left != tc.left || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: %s; %s; %v", name, strings.Join(got, ", "), left, err)
		}
	}
	if r.Pair("fleet/c99") != nil {
		t.Error("a cluster that nobody knows has a pair")
	}
}

// TestTried: what an API server says is told in all three forms, and nothing that a Secret holds.
func TestTried(t *testing.T) {
	r := sampled(t)
	object := func(kind, data string) map[string]any {
		return map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": "a", "resourceVersion": data, "annotations": map[string]any{"copy": data}},
			"data": map[string]any{"a": data}, "status": map[string]any{"a": data}}
	}
	one := &diff.Tried{Cluster: "fleet/c2", Clusters: 3, Where: "region=eu", Unchanged: 4}
	for _, kind := range []string{"Secret", "ConfigMap"} {
		o := diff.TriedObject{Outcome: diff.TriedChanged, APIVersion: "v1", Kind: kind, Namespace: "shop", Name: "a", Set: "flux-system/base", Addon: "web"}
		o.Fields, o.More = diff.ObjectFields(object(kind, "hunter2"), object(kind, "hunter3"), 1)
		one.Objects = append(one.Objects, o)
		refused := o
		refused.Outcome, refused.Fields, refused.More = diff.TriedRefused, nil, 0
		refused.Reason = diff.Sayable(object(kind, "hunter2"), "Invalid", "data.a: Invalid value: hunter2\x1b[2K", 100)
		one.Objects = append(one.Objects, refused)
	}
	r.Try(one)
	var text, md, raw bytes.Buffer
	must.Do(t, diff.Text(&text, r, diff.TextOptions{}))
	must.Do(t, diff.Markdown(&md, r, 0))
	must.Do(t, diff.JSON(&raw, r))
	_, said, _ := strings.Cut(text.String(), "\nTried on")
	want := ` cluster fleet/c2, for 3 clusters (region=eu): 2 REFUSED, 2 changed, 4 unchanged
  ! REFUSED Secret shop/a (web, flux-system/base): Invalid (the words of the API server are not shown: they may have what a Secret holds)
  ! REFUSED ConfigMap shop/a (web, flux-system/base): data.a: Invalid value: hunter2 [2K
  ~ changed Secret shop/a (web, flux-system/base)
      data.a: changed (not shown)
      … and 1 more fields, which are not kept
  ~ changed ConfigMap shop/a (web, flux-system/base)
      data.a: hunter2 → hunter3
      … and 1 more fields, which are not kept
`
	if said, _, _ = strings.Cut(said, "\n\n"); cmp.Diff(want, said+"\n") != "" && cmp.Diff(want, said) != "" {
		t.Errorf("-want +got\n%s", cmp.Diff(want, said))
	}
	if !strings.Contains(text.String(), "error: cluster fleet/c2: its API server refuses 2 objects\n") {
		t.Errorf("the refusal is no error:\n%s", text.String())
	}
	if !strings.Contains(md.String(), "Tried on cluster fleet/c2, for 3 clusters (region=eu): 2 REFUSED") || !strings.Contains(md.String(), "-     data.a: hunter2\n+     data.a: hunter3") {
		t.Errorf("the Markdown is\n%s", md.String())
	}
	if n := strings.Count(raw.String(), "hunter2"); n != 2 {
		t.Errorf("the JSON has it %d times:\n%s", n, raw.String())
	}
	var v any
	must.Do(t, json.Unmarshal(raw.Bytes(), &v))
	if err := schema(t)(raw.String()); err != nil {
		t.Error(err)
	}
}
