// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/metakey"
	"github.com/chandler-hub/chandler/internal/preview"
	"github.com/chandler-hub/chandler/internal/status"
)

// The fields of a document that are none of a Flux object's spec.
const (
	sourcesField  = "sources"
	objectsField  = "objects"
	contentsField = "manifestsFrom"
	afterField    = "dependsOn"
	policyField   = "deletionPolicy"
	metadataField = "metadata"
)

// document returns what a Flux object says, as people write it in a set: with the template of its chart, its sources, and its
// manifests as objects. What names the cluster, or is a hash, is left out: the same edit is to look the same on every cluster.
func document(i *preview.Item) map[string]any {
	spec, _ := i.Manifest.Object["spec"].(map[string]any)
	doc := maps.Clone(spec)
	delete(doc, "kubeConfig")
	if kc, ok := spec["kubeConfig"].(map[string]any); ok {
		doc["kubeConfig"] = "Secret"
		if kc["configMapRef"] != nil {
			doc["kubeConfig"] = "workload identity"
		}
	}
	delete(doc, afterField)
	if after := i.Manifest.GetAnnotations()[hubv1.DependsOnAnnotation]; after != "" {
		doc[afterField] = after
	}
	if policy := i.Manifest.GetAnnotations()[hubv1.DeletionPolicyAnnotation]; policy != "" {
		doc[policyField] = policy
	}
	if own := ownMetadata(i.Manifest); len(own) > 0 {
		doc[metadataField] = own
	}
	names, sources := map[string]string{}, map[string]any{}
	for _, s := range i.Shared {
		kind, name := s.Object.GetKind(), s.Object.GetName()
		switch {
		case kind == "ServiceAccount", s.InPlace:
		case kind == sourcev1.HelmChartKind:
			delete(doc, "chartRef")
			if i.Form != fluxspec.ManifestsKind {
				doc["chart"] = map[string]any{"spec": s.Object.Object["spec"]}
			}
		default:
			names[name] = withoutHash(name)
			sources[kind+" "+names[name]] = s.Object.Object["spec"]
		}
	}
	if i.Form == fluxspec.ManifestsKind {
		manifests(doc)
	}
	if len(names) > 0 {
		doc = renamed(doc, names).(map[string]any)
	}
	if len(sources) > 0 {
		doc[sourcesField] = sources
	}
	return doc
}

// ownMetadata returns the labels and annotations that people gave to a Flux object: those that only people may write.
func ownMetadata(u *unstructured.Unstructured) map[string]any {
	out := map[string]any{}
	for field, texts := range map[string]map[string]string{"labels": u.GetLabels(), "annotations": u.GetAnnotations()} {
		own := map[string]any{}
		for k, v := range texts {
			if metakey.Refusal(k, field == "labels") == "" {
				own[k] = v
			}
		}
		if len(own) > 0 {
			out[field] = own
		}
	}
	return out
}

// onlyMetadata returns whether nothing changes but labels and annotations.
func (c *Change) onlyMetadata() bool {
	return c.Kind == Changed && len(c.Fields) > 0 &&
		!slices.ContainsFunc(c.Fields, func(f Field) bool { return !strings.HasPrefix(f.Path, metadataField+".") && f.Path != metadataField })
}

// manifests puts the objects of a release that delivers manifests in place of its values.
func manifests(doc map[string]any) {
	values, _ := doc["values"].(map[string]any)
	delete(doc, "values")
	delete(doc, "valuesFrom")
	objects := map[string]any{}
	list, _ := values["objects"].([]any)
	groups := map[string]map[string]bool{}
	read := make([]map[string]any, len(list))
	for n, x := range list {
		text, _ := x.(string)
		if yaml.Unmarshal([]byte(text), &read[n]) != nil || read[n] == nil {
			objects[fmt.Sprint(n)] = text
			continue
		}
		name := nameOf(read[n])
		if groups[name] == nil {
			groups[name] = map[string]bool{}
		}
		groups[name][groupOf(read[n])] = true
	}
	for _, o := range read {
		if o == nil {
			continue
		}
		name := nameOf(o)
		if len(groups[name]) > 1 { // two kinds of the same name
			name += " of " + cmp.Or(groupOf(o), "v1")
		}
		objects[name] = o
	}
	secrets, _ := values["secrets"].([]any)
	for _, x := range secrets {
		if s, ok := x.(map[string]any); ok {
			name, copied := copyOf(s)
			objects[name] = copied
		}
	}
	if len(objects) > 0 {
		doc[objectsField] = objects
	}
	if versions, ok := values["versions"].(map[string]any); ok {
		doc[contentsField] = versions
	}
}

func groupOf(o map[string]any) string {
	apiVersion, _ := o["apiVersion"].(string)
	group, _, ok := strings.Cut(apiVersion, "/")
	if !ok {
		return ""
	}
	return group
}

// copyOf describes a Secret that the chart makes of another one: it has nothing of what they hold.
func copyOf(secret map[string]any) (name string, copied map[string]any) {
	copied = map[string]any{"copyOf": secret["from"], "type": secret["type"]}
	for _, field := range []string{"labels", "annotations"} {
		if v, said := secret[field]; said {
			copied[field] = v
		}
	}
	data, _ := secret["data"].(map[string]any)
	keys := []any{}
	for _, k := range slices.Sorted(maps.Keys(data)) {
		keys = append(keys, k)
	}
	copied["keys"] = keys
	return nameOf(map[string]any{"kind": "Secret", "metadata": secret}), copied
}

// nameOf names an object of a manifest.
func nameOf(o map[string]any) string {
	meta, _ := o["metadata"].(map[string]any)
	name := fmt.Sprintf("%v %v", o["kind"], meta["name"])
	if ns, ok := meta["namespace"]; ok {
		name = fmt.Sprintf("%v %v/%v", o["kind"], ns, meta["name"])
	}
	return name
}

// withoutHash takes the hash of its content off the name of a source.
func withoutHash(name string) string {
	if at := strings.LastIndex(name, "-"); at > 0 {
		return name[:at]
	}
	return name
}

// renamed returns a value with the names of sources as they are without hashes. It copies what it changes.
func renamed(v any, names map[string]string) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			if name, ok := x.(string); ok && k == "name" && names[name] != "" {
				x = names[name]
			}
			out[k] = renamed(x, names)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = renamed(x, names)
		}
		return out
	}
	return v
}

// what says in a few words what an object delivers.
func what(i *preview.Item) string {
	doc := document(i)
	text := func(path ...string) string {
		var at any = doc
		for _, k := range path {
			m, _ := at.(map[string]any)
			at = m[k]
		}
		s, _ := at.(string)
		return s
	}
	switch {
	case i.Form == fluxspec.ManifestsKind:
		objects, _ := doc[objectsField].(map[string]any)
		if contents, _ := doc[contentsField].(map[string]any); len(contents) > 0 {
			return fmt.Sprintf("manifests: %s, and what %s or Secrets have", status.Count(len(objects), "object"),
				status.Count(len(contents), "ConfigMap"))
		}
		return "manifests: " + status.Count(len(objects), "object")
	case text("chart", "spec", "chart") != "":
		return strings.TrimSpace("chart " + text("chart", "spec", "chart") + " " + text("chart", "spec", "version"))
	case text("chartRef", "name") != "":
		return fmt.Sprintf("the chart of %s %s", text("chartRef", "kind"), text("chartRef", "name"))
	case text("sourceRef", "name") != "":
		folder := text("path")
		if folder == "" {
			folder = "."
		}
		return fmt.Sprintf("folder %s of %s %s", folder, text("sourceRef", "kind"), text("sourceRef", "name"))
	}
	return i.Key.Kind
}
