// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/diff"
)

// diffSets are two sets; the words that become others are in diffEdit.
const diffSets = `
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: diffed, namespace: flux-system}
spec:
  selectAll: true
  sources: [{name: charts, kind: HelmRepository, spec: {url: $CHARTS}}]
  variables: {host: "<< cluster.name + '.' + vars.domain >>", domain: example.org}
  rollout: {strategy: AllAtOnce}
  addons:
    - name: cmd-diff-layers
      helmRelease:
        interval: 1h
        chart: {spec: {chart: settings, sourceRef: {name: charts}}}
        values: {color: "<< vars.host >>", kept: same}
    - {name: cmd-diff-kept, manifests: {objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: cmd-diff-kept}}]}}
    #new
  overlays:
    - name: us
      clusterSelector: {matchLabels: {region: us}}
      variables: {domain: example.com}
---
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: diffed-more, namespace: flux-system}
spec:
  selectAll: true
  rollout: {strategy: AllAtOnce}
  addons:
    - {name: cmd-diff-extra, when: "<< cluster.labels.region == 'eu' >>", manifests: {objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: cmd-diff-extra}}]}}
`

var diffEdit = strings.NewReplacer(
	"example.com", "example.dev",
	"kept: same", "kept: same, added: \"1\"",
	"#new", "- {name: cmd-diff-new, manifests: {objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: cmd-diff-new}}]}}",
	"region == 'eu'", "region == 'us'",
)

// diffs: what chandler diff says of an edit is what the hub then does, object by object, and nothing else.
func (g *generation) diffs(t *testing.T) {
	ctx := t.Context()
	g.apply(t, diffSets)
	soon(t, "all is delivered", func() error {
		return errors.Join(g.delivered(ctx, "diffed", "one", "two"), g.delivered(ctx, "diffed-more", "one", "two"))
	})
	file := filepath.Join(t.TempDir(), "new.yaml")
	edited := g.fill(diffEdit.Replace(diffSets))
	check(t, os.WriteFile(file, []byte(edited), 0o600))
	compare := func() (string, string, int) {
		return chandler(t, "diff", "-f", file, "--kubeconfig", g.KubeconfigFile(), "--platform-namespaces=flux-system,platform", "--output", "json")
	}
	out, errs, code := compare()
	if code != 1 {
		t.Fatalf("exit code %d, want 1: %s", code, errs)
	}
	said := &diff.Result{}
	check(t, json.Unmarshal([]byte(out), said))
	before := g.released(t)

	apply(t, g.Client, edited)
	soon(t, "the diff is empty, and the edit is on the clusters", func() error {
		if out, errs, code := compare(); code != 0 {
			return fmt.Errorf("exit code %d: %s\n%s", code, errs, out)
		}
		if _, ok := g.released(t)["fleet/one cmd-diff-extra"]; ok {
			return errors.New("one still has cmd-diff-extra")
		}
		return errors.Join(g.delivered(ctx, "diffed", "one", "two"), g.delivered(ctx, "diffed-more", "one", "two"),
			wantData(ctx, g.two, "cmd-diff-layers", "cmd-diff-layers", "color", "two.example.dev"))
	})
	if d := cmp.Diff(wroteBetween(before, g.released(t)), saidBy(said)); d != "" {
		t.Errorf("-what the hub did +what the diff said\n%s\nit printed\n%s", d, out)
	}
	g.remove(t, "flux-system", "diffed")
	g.remove(t, "flux-system", "diffed-more")
}

// released returns the HelmReleases of the hub by cluster and add-on.
func (g *generation) released(t *testing.T) map[string]*helmv2.HelmRelease {
	t.Helper()
	list := &helmv2.HelmReleaseList{}
	check(t, g.Client.List(context.WithoutCancel(t.Context()), list, client.HasLabels{hubv1.ClusterKeyLabel}))
	out := map[string]*helmv2.HelmRelease{}
	for i := range list.Items {
		o := &list.Items[i]
		out[o.Annotations[hubv1.RegistrationAnnotation]+" "+o.Labels[hubv1.AddonLabel]] = o
	}
	return out
}

// wroteBetween returns what happened to each release: New, Removed, or the values that changed.
func wroteBetween(before, after map[string]*helmv2.HelmRelease) map[string]string {
	out := map[string]string{}
	for _, k := range slices.Sorted(maps.Keys(before)) {
		old, is := before[k], after[k]
		switch {
		case is == nil:
			out[k] = string(diff.Removed)
		case is.UID != old.UID:
			out[k] = "made again"
		case is.Generation != old.Generation:
			var changed []string
			x, y := old.GetValues(), is.GetValues()
			for name := range mergedKeys(x, y) {
				if fmt.Sprint(x[name]) != fmt.Sprint(y[name]) {
					changed = append(changed, fmt.Sprintf("values.%s: %v -> %v", name, x[name], y[name]))
				}
			}
			slices.Sort(changed)
			out[k] = strings.Join(changed, ", ")
		}
	}
	for k := range after {
		if before[k] == nil {
			out[k] = string(diff.New)
		}
	}
	return out
}

func mergedKeys(x, y map[string]any) map[string]bool {
	out := map[string]bool{}
	for _, m := range []map[string]any{x, y} {
		for k := range m {
			out[k] = true
		}
	}
	return out
}

// saidBy returns the same of a diff.
func saidBy(r *diff.Result) map[string]string {
	out := map[string]string{}
	for i := range r.Groups {
		for _, c := range r.Groups[i].Changes {
			text := string(c.Kind)
			if c.Kind == diff.Changed {
				var changed []string
				for _, f := range c.Fields {
					changed = append(changed, fmt.Sprintf("%s: %v -> %v", f.Path, value(f.Old), value(f.New)))
				}
				slices.Sort(changed)
				text = strings.Join(changed, ", ")
			}
			for _, cluster := range r.Groups[i].Clusters {
				out[cluster+" "+c.Addon] = text
			}
		}
	}
	return out
}

func value(raw json.RawMessage) any {
	var v any
	_ = json.Unmarshal(raw, &v) // nothing is nil
	return v
}
