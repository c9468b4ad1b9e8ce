// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/chandler-hub/chandler/internal/preview"
)

// comparing collects the fields in which two objects differ.
type comparing struct {
	old, next *preview.Item
	out       []Field
}

// fields returns in which fields an object is not as before.
func fields(old, next *preview.Item) []Field {
	c := &comparing{old: old, next: next}
	c.maps(nil, veil(document(old), false).(map[string]any), veil(document(next), false).(map[string]any), false)
	return c.out
}

// maps compares two objects, field by field. secret is true below the content of a Secret.
func (c *comparing) maps(path []string, old, next map[string]any, secret bool) {
	keys := slices.Collect(maps.Keys(old))
	for k := range next {
		if _, ok := old[k]; !ok {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	for _, k := range keys {
		was, there := old[k]
		is, here := next[k]
		hide := secret || hides(old, k) || hides(next, k)
		c.values(append(path[:len(path):len(path)], k), value{was, there}, value{is, here}, hide)
	}
}

// value is a value, or none.
type value struct {
	is    any
	there bool
}

func (c *comparing) values(path []string, old, next value, secret bool) {
	if old.there == next.there && reflect.DeepEqual(old.is, next.is) {
		return
	}
	if len(path) > whole[path[0]] { // the layers of the fields differ, and that of an object is none
		old, next = orEmpty(old, next), orEmpty(next, old)
	}
	if was, is, ok := both[map[string]any](old, next); ok {
		c.maps(path, was, is, secret)
		return
	}
	if was, is, ok := both[[]any](old, next); ok && !secret {
		if a, b := byName(was), byName(is); a != nil && b != nil {
			c.maps(path, a, b, secret)
			c.order(path, was, is)
			return
		}
	}
	c.differ(path, old, next, secret)
}

// order notes that the elements which two lists have in common come in another order: containers start in theirs, and a variable of the
// environment refers to those before it.
func (c *comparing) order(path []string, old, next []any) {
	was, is := namesIn(old, next), namesIn(next, old)
	if slices.Equal(was, is) {
		return
	}
	at := append(path[:len(path):len(path)], "order")
	c.differ(at, value{strings.Join(was, ", "), true}, value{strings.Join(is, ", "), true}, false)
	c.out[len(c.out)-1].Layer = layerOf(c.next, path)
}

// namesIn returns the names of a list's elements that another list has too.
func namesIn(list, other []any) []string {
	there := byName(other)
	var out []string
	for _, x := range list {
		m, _ := x.(map[string]any)
		if name, _ := m["name"].(string); there["name="+name] != nil {
			out = append(out, name)
		}
	}
	return out
}

// whole is how many names the path of what comes or goes as a whole has: an object of a manifest, or a source.
var whole = map[string]int{objectsField: 2, sourcesField: 2}

// orEmpty returns an empty object for none, if the other one is an object with fields.
func orEmpty(v, other value) value {
	if m, ok := other.is.(map[string]any); ok && !v.there && len(m) > 0 {
		return value{map[string]any{}, true}
	}
	return v
}

func both[T any](old, next value) (was, is T, ok bool) {
	was, a := old.is.(T)
	is, b := next.is.(T)
	return was, is, a && b
}

// byName returns a list of objects that all have names of their own by these; nil for any other list, and for one whose order may say
// something.
func byName(list []any) map[string]any {
	out := map[string]any{}
	for _, x := range list {
		m, _ := x.(map[string]any)
		name, _ := m["name"].(string)
		if name == "" || out["name="+name] != nil {
			return nil
		}
		out["name="+name] = m
	}
	return out
}

// differ notes a field.
func (c *comparing) differ(path []string, old, next value, secret bool) {
	f := Field{Path: join(path), Op: "Changed", Hidden: secret || path[0] == contentsField}
	switch {
	case !old.there:
		f.Op = "Added"
	case !next.there:
		f.Op = "Removed"
	}
	layer, was := layerOf(c.next, path), layerOf(c.old, path)
	if f.Layer = layer; f.Op == "Removed" {
		f.Layer = was
	} else if was != layer && old.there {
		f.Was = was
	}
	if _, was := old.is.(veiled); was {
		f.Hidden = true
	}
	if _, is := next.is.(veiled); is {
		f.Hidden = true
	}
	if !f.Hidden {
		f.Old, f.New = shown(old), shown(next)
		f.Hidden = old.there && next.there && string(f.Old) == string(f.New)
	}
	if f.Hidden {
		f.Old, f.New = nil, nil
	}
	c.out = append(c.out, f)
}

// layerOf returns which layer set the field at a path of a document.
func layerOf(i *preview.Item, path []string) string {
	if i == nil { // an object of a cluster
		return ""
	}
	switch path[0] {
	case sourcesField, policyField, metadataField:
		return "the set"
	case afterField, "kubeConfig":
		return "hub"
	case objectsField:
		return i.Layer([]string{"values", "objects"})
	case contentsField:
		return i.Layer([]string{"values", "versions"})
	}
	for at, k := range path { // layers are known for whole lists
		if strings.HasPrefix(k, "name=") {
			path = path[:at]
			break
		}
	}
	return i.Layer(path)
}

// shown returns a value as JSON. What is veiled in it says only that.
func shown(v value) json.RawMessage {
	if !v.there {
		return nil
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false) // people read it
	if e.Encode(v.is) != nil {
		return nil
	}
	return bytes.TrimSpace(out.Bytes())
}

// join writes a path as people do: a.b["c.d"][name=e].
func join(path []string) string {
	var out strings.Builder
	for i, k := range path {
		switch {
		case strings.HasPrefix(k, "name="):
			fmt.Fprintf(&out, "[%s]", k)
		case k == "" || strings.ContainsAny(k, ". /[]"):
			fmt.Fprintf(&out, "[%q]", k)
		default:
			if i > 0 {
				out.WriteByte('.')
			}
			out.WriteString(k)
		}
	}
	return out.String()
}
