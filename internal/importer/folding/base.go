// SPDX-License-Identifier: Apache-2.0

package folding

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/chandler-hub/chandler/internal/expression"
)

// value is what one cluster has at a path.
type value struct {
	there bool
	v     any
}

// node is what the base has at a path: an object, or something that is written as a whole. A nil node has nothing.
type node struct {
	fields map[string]*node
	// leaf is what is written, without escapes; text is written in its place if it is an expression, which gives each
	// cluster what it has.
	leaf any
	text any
	// fits says which clusters have what the text gives them; nil if all have.
	fits []bool
}

// base returns what most clusters have. A value in which clusters differ only by their names becomes an expression. tokens
// are the names of each cluster.
func base(values []value, tokens [][]token) *node {
	first := values[0]
	if all(values, func(v value) bool { return v.there == first.there && equal(v.v, first.v) }) {
		if !first.there {
			return nil
		}
		return whole(first.v)
	}
	if text, ok := common(values, tokens); ok {
		return &node{text: text}
	}
	objects := 0
	for _, v := range values {
		if _, ok := v.v.(map[string]any); ok {
			objects++
		}
	}
	if 2*objects > len(values) {
		return fields(values, tokens)
	}
	usual, count := first, 0
	for _, v := range values { // of several that are as frequent, the first
		n := 0
		for _, w := range values {
			if v.there == w.there && equal(v.v, w.v) {
				n++
			}
		}
		if n > count {
			usual, count = v, n
		}
	}
	if text, fits, n := most(values, tokens); n > count {
		return &node{text: text, fits: fits}
	}
	if !usual.there {
		return nil
	}
	return whole(usual.v)
}

// whole returns the node of a value.
func whole(v any) *node {
	m, ok := v.(map[string]any)
	if !ok || len(m) == 0 {
		return &node{leaf: v}
	}
	out := &node{fields: map[string]*node{}}
	for k, x := range m {
		out.fields[k] = whole(x)
	}
	return out
}

func fields(values []value, tokens [][]token) *node {
	keys := map[string]bool{}
	for _, v := range values {
		m, _ := v.v.(map[string]any)
		for k := range m {
			keys[k] = true
		}
	}
	out := &node{fields: map[string]*node{}}
	for k := range keys {
		below := make([]value, len(values))
		for i, v := range values {
			m, _ := v.v.(map[string]any)
			x, there := m[k]
			below[i] = value{there, x}
		}
		if n := base(below, tokens); n != nil {
			out.fields[k] = n
		}
	}
	return out
}

func all(values []value, is func(value) bool) bool {
	return !slices.ContainsFunc(values, func(v value) bool { return !is(v) })
}

func equal(a, b any) bool { return equality.Semantic.DeepEqual(a, b) }

// write returns what an AddonSet has to say for a node.
func (n *node) write() any {
	switch {
	case n == nil:
		return nil
	case n.text != nil:
		return n.text
	case n.fields == nil:
		return expression.EscapeAll(n.leaf)
	}
	out := make(map[string]any, len(n.fields))
	for k, f := range n.fields {
		out[k] = f.write()
	}
	return out
}

// change is one thing in which a cluster differs from the base.
type change struct {
	path []string
	// remove is true if the base has something that the cluster does not have.
	remove bool
	value  any
}

// id is the same for equal changes.
func (c change) id() string {
	raw, err := json.Marshal([]any{c.path, c.remove, c.value})
	if err != nil { // it was read from JSON
		panic(err)
	}
	return string(raw)
}

// changes returns in what a cluster differs from the base. which is its place among the values that the base was made of.
func (n *node) changes(which int, v value, path []string) []change {
	path = path[:len(path):len(path)]
	m, isObject := v.v.(map[string]any)
	switch {
	case n == nil && !v.there, n != nil && n.text != nil && (n.fits == nil || n.fits[which]):
		return nil
	case n == nil:
		return []change{{path: path, value: v.v}}
	case !v.there:
		return []change{{path: path, remove: true}}
	case n.fields == nil && equal(n.leaf, v.v):
		return nil
	case n.fields == nil || !isObject:
		return []change{{path: path, value: v.v}}
	}
	keys := map[string]bool{}
	for k := range n.fields {
		keys[k] = true
	}
	for k := range m {
		keys[k] = true
	}
	var out []change
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		x, there := m[k]
		out = append(out, n.fields[k].changes(which, value{there, x}, append(path, k))...)
	}
	return out
}

// places returns where a name stands in a text as a word of its own.
func places(text, name string) []int {
	var out []int
	for from := 0; name != ""; {
		i := strings.Index(text[from:], name)
		if i < 0 {
			break
		}
		at, end := from+i, from+i+len(name)
		if (at == 0 || !isWord(text[at-1])) && (end == len(text) || !isWord(text[end])) {
			out = append(out, at)
			from = end
			continue
		}
		from = at + 1
	}
	return out
}

func isWord(b byte) bool { return b >= 0x80 || unicode.IsLetter(rune(b)) || unicode.IsDigit(rune(b)) }
