// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/test/localfleet"
	"github.com/chandler-hub/chandler/test/localfleet/parts"
)

const setName = "bench"

// addonName names the add-on of an index.
func addonName(i int) string { return fmt.Sprintf("addon-%02d", i) }

// changing is the add-on that is changed everywhere: the first.
var changing = addonName(0)

// newSet returns a set as people write them: half of the add-ons are charts and half Kustomizations, with values from expressions and
// an overlay that matches. A change of it reaches all clusters at once.
func newSet(name string, addons []string, charts, git string) *unstructured.Unstructured {
	list := make([]any, len(addons))
	for i, name := range addons {
		if i%2 == 0 {
			list[i] = map[string]any{"name": name, "helmRelease": map[string]any{
				"chart": map[string]any{"spec": map[string]any{"chart": "settings", "sourceRef": map[string]any{"name": "charts"}}},
				"values": map[string]any{"color": "v0", "cluster": "<< cluster.name >>", "region": `<< cluster.labels["region"] >>`,
					"resources": map[string]any{"limits": map[string]any{"cpu": "100m", "memory": "128Mi"}}},
			}}
			continue
		}
		list[i] = map[string]any{"name": name, "kustomization": map[string]any{
			"path": "./bench", "sourceRef": map[string]any{"name": "fleet"},
			"postBuild": map[string]any{"substitute": map[string]any{"name": name + "-<< cluster.name >>", "color": "v0"}},
		}}
	}
	set := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"clusterSelector": map[string]any{"matchLabels": map[string]any{"fleet": "yes"}},
		"removalGuard":    map[string]any{"mode": "Off"},
		"rollout":         map[string]any{"strategy": string(hubv1.AllAtOnceStrategy)},
		"sources": []any{
			map[string]any{"name": "charts", "kind": "HelmRepository", "spec": map[string]any{"url": charts}},
			map[string]any{"name": "fleet", "kind": "GitRepository", "spec": map[string]any{"url": git, "ref": map[string]any{"branch": "main"}}},
		},
		"addons": list,
		"overlays": []any{map[string]any{
			"name": "eu", "clusterSelector": map[string]any{"matchLabels": map[string]any{"region": "eu"}},
			"addons": []any{map[string]any{"name": addons[0], "helmRelease": map[string]any{"values": map[string]any{"replicas": int64(3)}}}},
		}},
	}}}
	set.SetGroupVersionKind(hubv1.GroupVersion.WithKind("AddonSet"))
	set.SetNamespace(sets)
	set.SetName(name)
	return set
}

func (f *fleet) createSet(ctx context.Context, p Parameters) error {
	addons := make([]string, p.Addons)
	for i := range addons {
		addons[i] = addonName(i)
	}
	return f.management.Client.Create(ctx, f.newSet(setName, addons))
}

// newSet returns a set that this fleet can deliver. Where Flux is there, the Helm releases of each cluster have a
// namespace of their own, since all clusters of a bench are one, and the add-ons have an interval that is longer than a
// measurement.
func (f *fleet) newSet(name string, addons []string) *unstructured.Unstructured {
	charts, git := f.upstream()
	set := newSet(name, addons, charts, git)
	if f.charts == nil {
		return set
	}
	for _, a := range set.Object["spec"].(map[string]any)["addons"].([]any) {
		addon := a.(map[string]any)
		if k, ok := addon["kustomization"].(map[string]any); ok {
			k["interval"] = "3h"
			continue
		}
		h := addon["helmRelease"].(map[string]any)
		h["interval"], h["targetNamespace"], h["install"] = "3h", "<< cluster.name >>", map[string]any{"createNamespace": true}
	}
	return set
}

// upstream returns where the chart is, and where the repository.
func (f *fleet) upstream() (charts, git string) {
	if f.charts == nil {
		return "http://127.0.0.1:1", "http://127.0.0.1:1/fleet.git" // nobody looks there without Flux
	}
	return f.charts.URL(), f.git.URL("fleet")
}

// changeSet gives one add-on another value, for every cluster.
func (f *fleet) changeSet(ctx context.Context, color string) error {
	set := &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: sets, Name: setName}}
	patch := fmt.Appendf(nil, `[{"op":"replace","path":"/spec/addons/0/helmRelease/values/color","value":%q}]`, color)
	return f.management.Client.Patch(ctx, set, client.RawPatch(types.JSONPatchType, patch))
}

// undelivered counts the deliveries that have not been Ready on the revision that they are to have.
func (f *fleet) undelivered(ctx context.Context) (int, error) {
	list := &hubv1.AddonDeliveryList{}
	err := f.management.Client.List(ctx, list)
	n := 0
	for i := range list.Items {
		if d := &list.Items[i]; d.Status.ReadyRevision != d.Spec.RevisionName || d.Status.ObservedGeneration != d.Generation {
			n++
		}
	}
	return n, err
}

// startFlux starts the controllers, and serves what the set refers to.
func (f *fleet) startFlux(ctx context.Context) error {
	var err error
	if f.charts, err = localfleet.NewChartServer(); err != nil {
		return err
	}
	if f.git, err = localfleet.NewGitServer(); err != nil {
		return err
	}
	root, err := parts.Root()
	if err != nil {
		return err
	}
	if err := f.charts.Publish(os.DirFS(filepath.Join(root, "e2e", "testdata")), "charts/settings"); err != nil {
		return err
	}
	const cm = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"${name}\", namespace: default}\ndata: {color: \"${color}\"}\n"
	if _, err := f.git.Commit("fleet", map[string]string{"bench/cm.yaml": cm}); err != nil {
		return err
	}
	return f.management.StartFlux(ctx, localfleet.FluxOptions{})
}
