// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/render/flux"
)

// Field is one field of an add-on's spec.
type Field struct {
	Path string `json:"path"`
	// Value is JSON.
	Value string `json:"value" about:"as JSON"`
	// By is the layer that set it.
	By string `json:"setBy" about:"the set, an overlay, an override of the cluster, or a default"`

	order string
}

// Variable is one that the add-on's expressions read.
type Variable struct {
	Name  string `json:"name"`
	Value string `json:"value" about:"as JSON"`
	By    string `json:"setBy"`
}

const (
	byDefault = "default"
	byKept    = "what it took over"
)

// body fills in the fields of an add-on, or the errors with which rendering it fails.
func (e *explainer) body(s *set, name string, r *AddonReport) {
	fail := func(text string) { r.Errors = append(r.Errors, excerpt.Line(text)) }
	a := s.addon(name)
	switch {
	case s.unrenderable != nil:
		for _, err := range each(s.unrenderable) {
			fail(err.Error())
		}
		return
	case a == nil:
		return
	}
	if st := s.status(name); s.frozen && st != nil && st.AppliedGeneration > 0 {
		r.Notes = append(r.Notes, "an older version of the hub made this, and it stays as it is until its turn in the rollout: the fields below "+
			"are what the present version makes of the same revision")
	}
	// The add-on is rendered alone, so that only the variables that it reads are there.
	result, err := e.render(s, only(s.program, a), e.Registration.Spec.Overrides, true)
	if err != nil {
		fail(err.Error())
		return
	}
	for _, err := range result.Failed[name] {
		err.Addon = ""
		fail(err.Error())
	}
	for _, v := range slices.Sorted(maps.Keys(result.Vars)) {
		r.Variables = append(r.Variables, Variable{v, inline(result.Vars[v]), by(result.VarLayers[v])})
	}
	if len(result.Objects) > 0 {
		r.Fields = fields(a, result.Objects)
	}
}

func each(err error) []error {
	errs, ok := err.(compile.Errors) //nolint:errorlint // made by compile, never wrapped
	if !ok {
		return []error{err}
	}
	out := make([]error, len(errs))
	for i := range errs {
		out[i] = errs[i]
	}
	return out
}

// fields returns the fields of an add-on's spec. The last of its objects has the trace.
func fields(a *compile.Addon, objects []flux.Object) []Field {
	last := &objects[len(objects)-1]
	spec := maps.Clone(last.Object.Object["spec"].(map[string]any))
	delete(spec, "kubeConfig") // the hub's
	t := table{object: last}
	if a.Kind == fluxspec.ManifestsKind {
		t.manifests(objects, spec)
	} else if chart := chartOf(last); chart != nil {
		delete(spec, "chartRef")
		spec["chart"] = chart
	}
	t.add(nil, spec)
	slices.SortStableFunc(t.fields, func(a, b Field) int { return cmp.Compare(a.order, b.order) })
	return t.fields
}

// chartOf returns the chart of a release as the author wrote it. The rendered chart is an object of its own, which
// clusters share.
func chartOf(o *flux.Object) map[string]any {
	for _, s := range o.Shared {
		if s.Object.GetKind() != sourcev1.HelmChartKind {
			continue
		}
		spec, _ := s.Object.DeepCopy().Object["spec"].(map[string]any)
		if ref, ok := spec["sourceRef"].(map[string]any); ok && s.Object.GetNamespace() != o.Namespace {
			ref["namespace"] = s.Object.GetNamespace()
		}
		return map[string]any{"spec": spec}
	}
	return nil
}

// table collects the fields of one object.
type table struct {
	object *flux.Object
	fields []Field
}

// add adds everything at and below a path. The trace has one layer for a whole list.
func (t *table) add(path []string, v any) {
	if m, ok := v.(map[string]any); ok && (len(m) > 0 || len(path) == 0) {
		for k, x := range m {
			t.add(append(path[:len(path):len(path)], k), x)
		}
		return
	}
	t.fields = append(t.fields, Field{written(path), inline(v), t.by(path), strings.Join(path, "\x00")})
}

func (t *table) by(path []string) string {
	if l := t.object.Trace.Layer(path); l != "" {
		return by(l)
	}
	release := len(path) == 1 && slices.Contains([]string{"releaseName", "targetNamespace", "storageNamespace"}, path[0])
	if release && !t.object.DefaultRelease {
		return byKept
	}
	return byDefault
}

// by returns the name of a layer.
func by(layer string) string {
	if layer == "set" {
		return "the set"
	}
	return excerpt.Line(layer)
}

// manifests turns the releases that deliver plain objects back into what the author wrote. It leaves out of the spec
// what only the hub's chart understands.
func (t *table) manifests(objects []flux.Object, spec map[string]any) {
	listed := t.by([]string{"objects"})
	for i := range objects {
		values, _, _ := unstructured.NestedMap(objects[i].Object.Object, "spec", "values")
		texts, _ := values["objects"].([]any)
		for _, x := range texts {
			text, _ := x.(string)
			o := map[string]any{}
			if err := yaml.Unmarshal([]byte(text), &o); err != nil {
				continue
			}
			u := unstructured.Unstructured{Object: o}
			name := u.GetName()
			if u.GetNamespace() != "" {
				name = u.GetNamespace() + "/" + name
			}
			t.fields = append(t.fields, Field{fmt.Sprintf("objects[%s %s]", u.GetKind(), name), inline(o), listed,
				fmt.Sprintf("objects %06d", len(t.fields))})
		}
	}
	for i, value := range manifestsFrom(spec) {
		t.fields = append(t.fields, Field{fmt.Sprintf("manifestsFrom[%d]", i), inline(value), t.by([]string{"manifestsFrom"}),
			fmt.Sprintf("manifestsFrom %06d", i)})
	}
	strategy := fluxspec.StrategyReconcile
	if t.object.Once {
		strategy = fluxspec.StrategyApplyOnce
	}
	t.fields = append(t.fields, Field{"strategy", inline(strategy), t.by([]string{"strategy"}), "strategy"})
	for _, k := range []string{"chartRef", "values", "valuesFrom", "driftDetection"} {
		delete(spec, k)
	}
}

// manifestsFrom returns the keys that objects come from, and then the Secrets that are copied.
func manifestsFrom(spec map[string]any) (out []any) {
	from, _ := spec["valuesFrom"].([]any)
	for _, x := range from {
		m, _ := x.(map[string]any)
		if at, _ := m["targetPath"].(string); !strings.HasPrefix(at, "copies.") {
			out = append(out, map[string]any{"kind": m["kind"], "name": m["name"], "key": m["valuesKey"]})
		}
	}
	secrets, _, _ := unstructured.NestedSlice(spec, "values", "secrets")
	for _, x := range secrets {
		m, _ := x.(map[string]any)
		to := map[string]any{}
		for _, field := range []string{"name", "namespace", "labels", "annotations"} {
			if v, said := m[field]; said {
				to[field] = v
			}
		}
		data, _ := m["data"].(map[string]any)
		out = append(out, map[string]any{"kind": "Secret", "name": m["from"], fluxspec.CopyAs: to, "keys": slices.Sorted(maps.Keys(data))})
	}
	return out
}

var plainKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// written formats a path as people do, with keys that contain dots in brackets.
func written(path []string) string {
	var out strings.Builder
	for i, k := range path {
		switch {
		case !plainKey.MatchString(k):
			out.WriteString("[" + inline(k) + "]")
		case i > 0:
			out.WriteString("." + k)
		default:
			out.WriteString(k)
		}
	}
	return out.String()
}

// inline returns a value as JSON in one line.
func inline(v any) string {
	var out strings.Builder
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "?"
	}
	return strings.TrimSpace(excerpt.Visible(out.String()))
}
