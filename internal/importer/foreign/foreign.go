// SPDX-License-Identifier: Apache-2.0

// Package foreign writes AddonSets for objects of other tools: the part that both have, with the rest as notes. It is pure.
package foreign

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/match"
)

// Set is an AddonSet that was written, with what is not taken over.
type Set struct {
	*hubv1.AddonSet
	// From names the object that it was written for.
	From  string
	Notes []string
}

// kinds are those that are known, by group and kind.
var kinds = map[string]func(*writer, *unstructured.Unstructured) error{
	"addons.cluster.x-k8s.io/ClusterResourceSet": (*writer).clusterResourceSet,
	"addons.cluster.x-k8s.io/HelmChartProxy":     (*writer).helmChartProxy,
	"config.projectsveltos.io/ClusterProfile":    (*writer).profile,
	"config.projectsveltos.io/Profile":           (*writer).profile,
	"argoproj.io/ApplicationSet":                 (*writer).applicationSet,
}

// Known returns whether an object is of a kind that is known.
func Known(u *unstructured.Unstructured) bool {
	gvk := u.GroupVersionKind()
	return kinds[gvk.Group+"/"+gvk.Kind] != nil
}

// writer writes one set.
type writer struct {
	set   *hubv1.AddonSet
	notes []string
}

// Write writes the set for an object of another tool. namespace is that of sets whose objects have none.
func Write(u *unstructured.Unstructured, namespace string) (*Set, error) {
	gvk := u.GroupVersionKind()
	w := newWriter(u.GetName(), cmp.Or(u.GetNamespace(), namespace))
	from := fmt.Sprintf("%s %s/%s", gvk.Kind, w.set.Namespace, u.GetName())
	if err := kinds[gvk.Group+"/"+gvk.Kind](w, u); err != nil {
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	return w.finish(from)
}

func newWriter(name, namespace string) *writer {
	w := &writer{set: &hubv1.AddonSet{}}
	w.set.APIVersion, w.set.Kind = hubv1.GroupVersion.String(), "AddonSet"
	w.set.Name, w.set.Namespace = name, namespace
	return w
}

// finish returns the set, and says if the hub would refuse it.
func (w *writer) finish(from string) (*Set, error) {
	if len(w.set.Spec.Addons) == 0 {
		return nil, fmt.Errorf("%s: it has nothing that an AddonSet can deliver: %s", from, strings.Join(w.notes, "; "))
	}
	if _, err := compile.Compile(&w.set.Spec, match.Reach{Namespace: w.set.Namespace, Platform: true}.Author(w.set.Name)); err != nil {
		w.note("the hub would refuse the set until you mend it: %v", err)
	}
	return &Set{w.set, from, w.notes}, nil
}

// Comment returns what stands above a set: what it was written for, and what is not in it.
func (s *Set) Comment() string {
	out := "# Written for " + excerpt.Line(s.From) + ".\n"
	for _, note := range s.Notes {
		out += "# - " + excerpt.Line(note) + "\n"
	}
	return out
}

func (w *writer) note(format string, args ...any) {
	w.notes = append(w.notes, fmt.Sprintf(format, args...))
}

// unread notes the fields that say something which the set does not.
func (w *writer) unread(in map[string]any, path string, known ...string) {
	var left []string
	for k := range in {
		if !slices.Contains(known, k) {
			left = append(left, path+k)
		}
	}
	if slices.Sort(left); len(left) > 0 {
		w.note("not taken over: %s", strings.Join(left, ", "))
	}
}

// read reads a part of an object into a struct.
func read(from, into any) error {
	raw, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}

func spec(u *unstructured.Unstructured) map[string]any {
	out, _ := u.Object["spec"].(map[string]any)
	return out
}

func object(v any) *apiextensionsv1.JSON {
	raw, err := json.Marshal(v)
	if err != nil { // it is made of texts, lists and maps
		panic(err)
	}
	return &apiextensionsv1.JSON{Raw: raw}
}

// selects writes the selector. One that is empty selects everything, which a set says in another way.
func (w *writer) selects(selector *metav1.LabelSelector) {
	if selector == nil || len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		w.set.Spec.SelectAll = true
		return
	}
	w.set.Spec.ClusterSelector = selector
}

// chart is a Helm chart, and how it is installed.
type chart struct {
	addon, url, name, version, release, namespace string
	values                                        any
	valuesFrom                                    []any
}

// helm adds a chart, with its repository as a source of the set.
func (w *writer) helm(c chart) {
	source := w.source("HelmRepository", c.addon, repository(c.url))
	spec := map[string]any{"chart": c.name, "sourceRef": map[string]any{"kind": "HelmRepository", "name": source}}
	if c.version != "" {
		spec["version"] = c.version
	} else {
		w.note("add-on %s: no version of the chart is pinned, so the newest is installed", c.addon)
	}
	release := map[string]any{"chart": map[string]any{"spec": spec}}
	for field, v := range map[string]string{"releaseName": c.release, "targetNamespace": c.namespace} {
		if v != "" {
			release[field] = v
		}
	}
	if c.values != nil {
		release["values"] = c.values
	}
	if len(c.valuesFrom) > 0 {
		release["valuesFrom"] = c.valuesFrom
	}
	w.set.Spec.Addons = append(w.set.Spec.Addons, hubv1.Addon{Name: c.addon, AddonBody: hubv1.AddonBody{HelmRelease: object(release)}})
}

func repository(url string) map[string]any {
	out := map[string]any{"url": url, "interval": "1h"}
	if strings.HasPrefix(url, "oci://") {
		out["type"] = "oci"
	}
	return out
}

// source returns the name of a source of the set with a spec, which is added unless it is there.
func (w *writer) source(kind, name string, spec map[string]any) string {
	body := object(spec)
	for _, s := range w.set.Spec.Sources {
		if s.Kind == kind && string(s.Spec.Raw) == string(body.Raw) {
			return s.Name
		}
	}
	w.set.Spec.Sources = append(w.set.Spec.Sources, hubv1.Source{Name: name, Kind: kind, Spec: body})
	return name
}

// values reads Helm values that are a text, with the templates of another tool in it.
func (w *writer) values(addon, text string, dialect dialect) any {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	// A template may stand in quotes of either kind, or in none: it is a mark while the YAML is read.
	var marks []string
	marked := holes.ReplaceAllStringFunc(text, func(whole string) string {
		marks = append(marks, whole)
		return fmt.Sprintf("\ue000%d\ue001", len(marks)-1)
	})
	var out any
	if err := yaml.Unmarshal([]byte(marked), &out); err != nil {
		w.note("add-on %s: its values are no YAML without the templates in them, and are left out: write them by hand", addon)
		return nil
	}
	for i, whole := range marks {
		out = inTexts(out, fmt.Sprintf("\ue000%d\ue001", i), whole)
	}
	written, left := dialect.all(normal(out))
	for _, t := range left {
		w.note("add-on %s: the template %s in its values has no expression that means the same: write it by hand", addon, t)
	}
	return written
}

// inTexts replaces something in all texts of a value.
func inTexts(v any, old, instead string) any {
	switch v := v.(type) {
	case string:
		return strings.ReplaceAll(v, old, instead)
	case map[string]any:
		for k := range v {
			v[k] = inTexts(v[k], old, instead)
		}
	case []any:
		for i := range v {
			v[i] = inTexts(v[i], old, instead)
		}
	}
	return v
}

// normal makes numbers what JSON has.
func normal(v any) any {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	var out any
	_ = json.Unmarshal(raw, &out) // it was written just now
	return out
}
