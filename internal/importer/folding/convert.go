// SPDX-License-Identifier: Apache-2.0

package folding

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/chandler-hub/chandler/internal/fluxspec"
)

// versions are the API versions that the hub writes, and earlier those that Flux had before.
var (
	versions = map[string]string{fluxspec.HelmReleaseKind: "v2", fluxspec.KustomizationKind: "v1"}
	earlier  = map[string][]string{fluxspec.HelmReleaseKind: {"v2beta1", "v2beta2"}, fluxspec.KustomizationKind: {"v1beta1", "v1beta2"}}
)

// Convert returns an object in the API version that the hub writes, by the rules that Flux gives for each version: what has
// another name now is moved, and what Flux no longer has is dropped. converted says what was done; "" if there was nothing to do.
func Convert(u *unstructured.Unstructured) (out *unstructured.Unstructured, converted string, err error) {
	gvk := u.GroupVersionKind()
	want := versions[gvk.Kind]
	if gvk.Version == want {
		return u, "", nil
	}
	if !slices.Contains(earlier[gvk.Kind], gvk.Version) {
		return nil, "", fmt.Errorf("apiVersion is %q: write %s/%s", u.GetAPIVersion(), gvk.Group, want)
	}
	out = u.DeepCopy()
	out.SetAPIVersion(gvk.Group + "/" + want)
	spec, _ := out.Object["spec"].(map[string]any)
	c := converter{}
	if gvk.Kind == fluxspec.KustomizationKind {
		c.patches(spec, "spec.")
		c.drop(spec, "validation", "spec.validation")
	} else {
		c.helmRelease(spec)
	}
	if c.err != nil {
		return nil, "", c.err
	}
	converted = fmt.Sprintf("%s is converted to %s", u.GetAPIVersion(), out.GetAPIVersion())
	if len(c.done) > 0 {
		converted += ": " + strings.Join(c.done, ", ")
	}
	return out, converted, nil
}

// converter notes what it has done.
type converter struct {
	done []string
	err  error
}

func (c *converter) drop(in map[string]any, field, path string) {
	if _, there := in[field]; there {
		delete(in, field)
		c.done = append(c.done, path+" has no meaning any more")
	}
}

func (c *converter) helmRelease(spec map[string]any) {
	if chart, ok, _ := unstructured.NestedMap(spec, "chart", "spec"); ok {
		if one, there := chart["valuesFile"]; there {
			list, _ := chart["valuesFiles"].([]any)
			chart["valuesFiles"] = append([]any{one}, list...)
			delete(chart, "valuesFile")
			c.err = unstructured.SetNestedMap(spec, chart, "chart", "spec")
			c.done = append(c.done, "spec.chart.spec.valuesFile is the first of valuesFiles")
		}
	}
	renderers, _ := spec["postRenderers"].([]any)
	for i, r := range renderers {
		renderer, _ := r.(map[string]any)
		if k, ok := renderer["kustomize"].(map[string]any); ok {
			c.patches(k, fmt.Sprintf("spec.postRenderers[%d].kustomize.", i))
		}
	}
}

// patches writes patchesStrategicMerge and patchesJson6902 as patches, in the order in which kustomize applies them.
func (c *converter) patches(in map[string]any, path string) {
	merges, _ := in["patchesStrategicMerge"].([]any)
	operations, _ := in["patchesJson6902"].([]any)
	if len(merges)+len(operations) == 0 {
		return
	}
	var out []any
	for _, m := range merges {
		out = append(out, map[string]any{"patch": c.text(m)})
	}
	list, _ := in["patches"].([]any)
	out = append(out, list...)
	for _, o := range operations {
		patch, _ := o.(map[string]any)
		out = append(out, map[string]any{"patch": c.text(patch["patch"]), "target": patch["target"]})
	}
	in["patches"] = out
	for _, field := range []string{"patchesStrategicMerge", "patchesJson6902"} {
		if _, there := in[field]; there {
			delete(in, field)
			c.done = append(c.done, path+field+" is in patches")
		}
	}
}

func (c *converter) text(v any) string {
	raw, err := yaml.Marshal(v)
	if err != nil {
		c.err = err
	}
	return string(raw)
}
