// SPDX-License-Identifier: Apache-2.0

// Package merge lays one JSON document over another. It does RFC 7386 merges, and RFC 6902 operations to change a
// list or remove a key. It is pure, and can record which layer set each field.
package merge

import (
	"k8s.io/apimachinery/pkg/runtime"
)

// Options say how to merge.
type Options struct {
	// KeepNull returns whether a null at a path stays as a value and does not remove the key. Within Helm values a
	// null tells Helm to remove a default of the chart. If KeepNull is nil, every null removes its key.
	KeepNull func(path []string) bool
	// Layer is the name that Trace records. Trace may be nil.
	Layer string
	Trace *Trace
	// Left is how many bytes of documents patches may still go through, and is lowered by what they do; nil for no
	// bound. Each patch reads and writes all of its document.
	Left *int64
}

// Merge merges patch into target, in place, by RFC 7386. Afterwards target shares no data with patch.
func Merge(target, patch map[string]any, o Options) {
	o.merge(target, patch, nil)
}

func (o *Options) merge(target, patch map[string]any, path []string) {
	for k, v := range patch {
		at := append(path[:len(path):len(path)], k)
		switch v := v.(type) {
		case nil:
			if o.KeepNull != nil && o.KeepNull(at) {
				target[k] = nil
				o.Trace.set(at, nil, o.Layer)
				continue
			}
			delete(target, k)
			o.Trace.drop(at)
		case map[string]any:
			below, ok := target[k].(map[string]any)
			if !ok {
				below = make(map[string]any, len(v))
				target[k] = below
				o.Trace.set(at, below, o.Layer)
			}
			o.merge(below, v, at)
		default:
			target[k] = runtime.DeepCopyJSONValue(v)
			o.Trace.set(at, v, o.Layer)
		}
	}
}
