// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"slices"
	"strings"
)

// Trace records which layer set each field of a document. A list is one field. A nil Trace records nothing.
type Trace struct {
	layers map[string]string // by path, joined with \x00
}

// NewTrace returns a trace of a document that one layer wrote.
func NewTrace(doc map[string]any, layer string) *Trace {
	t := &Trace{layers: map[string]string{}}
	for k, v := range doc {
		t.set([]string{k}, v, layer)
	}
	return t
}

const separator = "\x00"

// set records that a layer has set everything at and below a path.
func (t *Trace) set(path []string, value any, layer string) {
	if t == nil {
		return
	}
	t.drop(path)
	// A parent that was recorded as empty, or as something other than an object, is an object now.
	for i := len(path) - 1; i > 0; i-- {
		delete(t.layers, strings.Join(path[:i], separator))
	}
	if m, ok := value.(map[string]any); ok && len(m) > 0 {
		for k, v := range m {
			t.set(append(path[:len(path):len(path)], k), v, layer)
		}
		return
	}
	t.layers[strings.Join(path, separator)] = layer
}

// drop removes the records at and below a path.
func (t *Trace) drop(path []string) {
	if t == nil {
		return
	}
	key := strings.Join(path, separator)
	for k := range t.layers {
		if k == key || strings.HasPrefix(k, key+separator) {
			delete(t.layers, k)
		}
	}
}

// Layer returns the layer that set the field at a path, or the object or list that contains it; "" if no layer did.
func (t *Trace) Layer(path []string) string {
	if t == nil {
		return ""
	}
	for i := len(path); i > 0; i-- {
		if l, ok := t.layers[strings.Join(path[:i], separator)]; ok {
			return l
		}
	}
	return ""
}

// Fields returns the recorded paths, sorted.
func (t *Trace) Fields() [][]string {
	if t == nil {
		return nil
	}
	keys := make([]string, 0, len(t.layers))
	for k := range t.layers {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	out := make([][]string, len(keys))
	for i, k := range keys {
		out[i] = strings.Split(k, separator)
	}
	return out
}
