// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/render/document"
	"github.com/chandler-hub/chandler/internal/render/layers"
)

// place is where an object of an add-on is written: in a list of its layers, or in a key of a document.
type place struct {
	index int
	ref   document.Ref
	key   string
	// A place with a ref and no key is a copy of that Secret. implied is true if the object does not name the namespace itself.
	implied bool
}

// duplicate says which object an add-on has twice on this cluster, and where both are written; "" if there is none. Helm would fail
// to make the second one, or one would overwrite the other for ever. merged is the body before its expressions were evaluated.
func (r *renderer) duplicate(a *compile.Addon, merged, body map[string]any) string {
	once := occurrences{r: r, addon: a, merged: merged, target: r.implied(a, body), seen: map[document.ObjectID]place{}}
	objects, _ := body["objects"].([]any)
	for i, o := range objects {
		if why := once.add(document.Identities(o), place{index: i}); why != "" {
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
		ref := document.Ref{Kind: s.Kind, Name: s.Name}
		if s.CopyAs != nil {
			copied := document.ObjectID{Kind: s.Kind, Namespace: s.CopyAs.Namespace, Name: cmp.Or(s.CopyAs.Name, s.Name)}
			if why := once.add([]document.ObjectID{copied}, place{ref: ref}); doc.Found && why != "" {
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
	merged map[string]any
	// target is the namespace of objects that name none.
	target string
	seen   map[document.ObjectID]place
}

// add adds the objects of a place, and says which of them is there already; "" if none is.
func (c *occurrences) add(ids []document.ObjectID, at place) string {
	for _, id := range ids {
		named := id.Namespace
		id = id.In(c.target)
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
		return fmt.Sprintf("%s is there twice: %s, and %s%s", what, c.r.where(c.addon, c.merged, first), c.r.where(c.addon, c.merged, at), remedy)
	}
	return ""
}

// where names a place, with the layer that wrote it.
func (r *renderer) where(a *compile.Addon, merged map[string]any, at place) string {
	if at.key != "" {
		return fmt.Sprintf("in key %q of %s %q", at.key, at.ref.Kind, at.ref.Name)
	}
	if at.ref.Name != "" {
		return fmt.Sprintf("as the copy of %s %q", at.ref.Kind, at.ref.Name)
	}
	if layer, index := r.wrote(a, merged, at.index); layer != "" {
		return fmt.Sprintf("as objects[%d] of %s", index, layer)
	}
	return fmt.Sprintf("as objects[%d], which a patch made", at.index)
}

// wrote returns which layer wrote an object of a merged body, and its index there; "" if it was a patch.
func (r *renderer) wrote(a *compile.Addon, merged map[string]any, index int) (string, int) {
	list, ok := merged["objects"].([]any)
	if !ok || index >= len(list) {
		return layers.Set, index // one expression gives all of them
	}
	object, _ := list[index].(map[string]any)
	is := func(list []any, i int) bool {
		o, ok := list[i].(map[string]any)
		return ok && document.Identify(o) == document.Identify(object)
	}
	if own, _ := a.Body["objects"].([]any); index < len(own) && is(own, index) {
		return layers.Set, index
	}
	for _, o := range r.overlays {
		added, _ := o.Addons[a.Name].Body["objects"].([]any)
		for i := range added {
			if is(added, i) {
				return layers.Overlay(o.Name), i
			}
		}
	}
	return "", 0
}
