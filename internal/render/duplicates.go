// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/fluxspec"
)

// ObjectID is what an API server knows an object by: all versions of a group are one. Namespace is empty if the object names none.
type ObjectID struct{ Group, Kind, Namespace, Name string }

func (id ObjectID) String() string {
	if id.Namespace == "" {
		return id.Kind + " " + id.Name
	}
	return fmt.Sprintf("%s %s/%s", id.Kind, id.Namespace, id.Name)
}

// in returns the identity of an object that is delivered to a namespace.
func (id ObjectID) in(namespace string) ObjectID {
	if fluxspec.IsClusterScoped(id.Group, id.Kind) {
		namespace, id.Namespace = "", ""
	}
	id.Namespace = cmp.Or(id.Namespace, namespace)
	return id
}

func identify(o map[string]any) ObjectID {
	u := unstructured.Unstructured{Object: o}
	apiVersion := u.GetAPIVersion() // it may be an expression, which is no group yet
	group, _, ok := strings.Cut(apiVersion, "/")
	if !ok && !strings.Contains(apiVersion, "<<") {
		group = ""
	}
	return ObjectID{group, u.GetKind(), u.GetNamespace(), u.GetName()}
}

// identities adds those of an object, or of the items of a list. Items may leave out what follows from the list.
func identities(ids []ObjectID, v any, apiVersion, kind string) []ObjectID {
	if list, ok := v.([]any); ok {
		for _, x := range list {
			ids = identities(ids, x, apiVersion, kind)
		}
		return ids
	}
	o, ok := v.(map[string]any)
	if !ok {
		return ids
	}
	if own, _ := o["kind"].(string); own != "" {
		kind = own
	}
	if own, _ := o["apiVersion"].(string); own != "" {
		apiVersion = own
	}
	if items, ok := o["items"].([]any); ok && strings.HasSuffix(kind, "List") {
		if kind == "List" {
			apiVersion = ""
		}
		return identities(ids, items, apiVersion, strings.TrimSuffix(kind, "List"))
	}
	id := identify(o)
	group, _, ok := strings.Cut(apiVersion, "/")
	if !ok {
		group = ""
	}
	if id.Group, id.Kind = group, kind; id.Kind != "" && id.Name != "" {
		ids = append(ids, id)
	}
	return ids
}

// separator stands between documents, as for the chart that delivers them (package manifestchart).
var separator = regexp.MustCompile(`(?m)^(?:---(?:[ \t]+|#.*$|$)|\.\.\.(?:[ \t]+|$))`)

// Identities returns those of the objects in a text of YAML or JSON documents. It leaves out what cannot be read: Helm tells of that.
func Identities(text string) []ObjectID {
	var ids []ObjectID
	for _, part := range separator.Split(strings.ReplaceAll(text, "\r\n", "\n"), -1) {
		var v any
		if strings.Contains(part, "kind") && yaml.Unmarshal([]byte(part), &v) == nil {
			ids = identities(ids, v, "", "")
		}
	}
	return ids
}

// place is where an object of an add-on is written: in a list of its layers, or in a key of a document.
type place struct {
	index int
	ref   Ref
	key   string
	// A place with a ref and no key is a copy of that Secret. implied is true if the object does not name the namespace itself.
	implied bool
}

// duplicate says which object an add-on has twice on this cluster, and where both are written; "" if there is none. Helm would fail
// to make the second one, or one would overwrite the other for ever. layers is the body before its expressions were evaluated.
func (r *renderer) duplicate(a *compile.Addon, layers, body map[string]any) string {
	once := occurrences{r: r, addon: a, layers: layers, target: r.implied(a, body), seen: map[ObjectID]place{}}
	objects, _ := body["objects"].([]any)
	for i, o := range objects {
		if why := once.add(identities(nil, o, "", ""), place{index: i}); why != "" {
			return why
		}
	}
	raw, err := json.Marshal(body["manifestsFrom"])
	var from []fluxspec.ManifestsSource
	if err != nil || json.Unmarshal(raw, &from) != nil {
		return "" // the other add-on tells
	}
	for _, s := range from {
		doc, _, _, err := r.manifestsSource("manifestsFrom", s)
		if err != nil {
			return "" // it has been told of
		}
		ref := Ref{Kind: s.Kind, Name: s.Name}
		if s.CopyAs != nil {
			copied := ObjectID{Kind: s.Kind, Namespace: s.CopyAs.Namespace, Name: cmp.Or(s.CopyAs.Name, s.Name)}
			if why := once.add([]ObjectID{copied}, place{ref: ref}); doc.Found && why != "" {
				return why
			}
			continue
		}
		for _, key := range doc.Keys {
			if s.Key != "" && s.Key != key {
				continue
			}
			if why := once.add(doc.Objects[key], place{ref: ref, key: key}); why != "" {
				return why
			}
		}
	}
	return ""
}

// implied returns the namespace of the objects that name none.
func (r *renderer) implied(a *compile.Addon, body map[string]any) string {
	spec := map[string]any{}
	if namespace, ok := body["targetNamespace"]; ok {
		spec["targetNamespace"] = namespace
	}
	fluxspec.Default(a.Kind, spec, a.Name, r.team)
	target, _ := spec["targetNamespace"].(string)
	return target
}

// occurrences are the objects of an add-on, and where each is written.
type occurrences struct {
	r      *renderer
	addon  *compile.Addon
	layers map[string]any
	// target is the namespace of objects that name none.
	target string
	seen   map[ObjectID]place
}

// add adds the objects of a place, and says which of them is there already; "" if none is.
func (c *occurrences) add(ids []ObjectID, at place) string {
	for _, id := range ids {
		named := id.Namespace
		id = id.in(c.target)
		at.implied = named == "" && id.Namespace != ""
		first, ok := c.seen[id]
		if !ok {
			c.seen[id] = at
			continue
		}
		what, remedy := id.String(), ". Remove one of them"
		if first.ref.Kind == "Secret" && at.ref.Kind == "Secret" && first.key != "" && at.key != "" {
			what = "an object" // its name may be private
		}
		if first.implied != at.implied {
			remedy = fmt.Sprintf(": what names no namespace goes to %s. Remove one of them", c.target)
		}
		return fmt.Sprintf("%s is there twice: %s, and %s%s", what, c.r.where(c.addon, c.layers, first), c.r.where(c.addon, c.layers, at), remedy)
	}
	return ""
}

// where names a place, with the layer that wrote it.
func (r *renderer) where(a *compile.Addon, layers map[string]any, at place) string {
	if at.key != "" {
		return fmt.Sprintf("in key %q of %s %q", at.key, at.ref.Kind, at.ref.Name)
	}
	if at.ref.Name != "" {
		return fmt.Sprintf("as the copy of %s %q", at.ref.Kind, at.ref.Name)
	}
	if layer, index := r.wrote(a, layers, at.index); layer != "" {
		return fmt.Sprintf("as objects[%d] of %s", index, layer)
	}
	return fmt.Sprintf("as objects[%d], which a patch made", at.index)
}

// wrote returns which layer wrote an object of a merged body, and its index there; "" if it was a patch.
func (r *renderer) wrote(a *compile.Addon, layers map[string]any, index int) (string, int) {
	merged, ok := layers["objects"].([]any)
	if !ok || index >= len(merged) {
		return SetLayer, index // one expression gives all of them
	}
	object, _ := merged[index].(map[string]any)
	is := func(list []any, i int) bool {
		o, ok := list[i].(map[string]any)
		return ok && identify(o) == identify(object)
	}
	if own, _ := a.Body["objects"].([]any); index < len(own) && is(own, index) {
		return SetLayer, index
	}
	for _, o := range r.overlays {
		added, _ := o.Addons[a.Name].Body["objects"].([]any)
		for i := range added {
			if is(added, i) {
				return overlayLayer(o.Name), i
			}
		}
	}
	return "", 0
}
