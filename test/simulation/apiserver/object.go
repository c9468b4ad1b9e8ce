// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// Object is an object as JSON has it.
type Object = map[string]any

// keepSystemFields undoes what no client may write.
func keepSystemFields(old, next Object) {
	was, m := metadata(old), metadata(next)
	for _, f := range []string{"uid", "creationTimestamp", "generation", "deletionTimestamp", "resourceVersion"} {
		if f == "deletionTimestamp" && m[f] != nil && was[f] == nil {
			continue // set by Delete
		}
		if was[f] == nil {
			delete(m, f)
		} else {
			m[f] = was[f]
		}
	}
}

func specChanged(a, b Object) bool {
	for _, o := range []Object{a, b} {
		for f := range o {
			if f != "metadata" && f != "status" && !equal(a[f], b[f]) {
				return true
			}
		}
	}
	return false
}

func deletedNow(a, b Object) bool { return !deleted(a) && deleted(b) }

func metadata(o Object) Object {
	m, _ := o["metadata"].(Object)
	if m == nil {
		m = Object{}
		o["metadata"] = m
	}
	return m
}

func deleted(o Object) bool { return metadata(o)["deletionTimestamp"] != nil }

func generation(o Object) int64 { g, _ := metadata(o)["generation"].(int64); return g }

func finalizers(o Object) []any { f, _ := metadata(o)["finalizers"].([]any); return f }

// drop removes nulls: the JSON objects of the API server hold none.
func drop(o Object) {
	for f, v := range o {
		switch v := v.(type) {
		case nil:
			delete(o, f)
		case Object:
			drop(v)
		}
	}
}

// merge is RFC 7386. What is in the objects within stays as it is: they are copied as far as they change.
func merge(into, patch Object) {
	for f, v := range patch {
		switch v := v.(type) {
		case nil:
			delete(into, f)
		case Object:
			there, _ := into[f].(Object)
			there = shallow(there)
			into[f] = there
			merge(there, v)
		default:
			into[f] = v
		}
	}
}

// edited returns a copy of an object of which all but the metadata's and the object's own fields is the same, and must
// not be changed.
func edited(o Object) Object {
	next := shallow(o)
	next["metadata"] = shallow(metadata(o))
	return next
}

func shallow(o Object) Object {
	out := make(Object, len(o)+1)
	for f, v := range o {
		out[f] = v
	}
	return out
}

// equal returns whether two values are the same, and is quick where they share parts.
func equal(a, b any) bool {
	switch a := a.(type) {
	case Object:
		b, ok := b.(Object)
		if !ok || len(a) != len(b) || (a == nil) != (b == nil) {
			return false
		}
		if reflect.ValueOf(a).UnsafePointer() == reflect.ValueOf(b).UnsafePointer() {
			return true
		}
		for f, v := range a {
			w, there := b[f]
			if !there || !equal(v, w) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		return ok && (a == nil) == (b == nil) && slices.EqualFunc(a, b, equal)
	case nil, string, bool, int64, float64:
		return a == b
	}
	return reflect.DeepEqual(a, b)
}

// Clone copies an object, and makes of its values those that JSON has.
func Clone(o Object) Object {
	c, _ := cloneValue(o).(Object)
	return c
}

func cloneValue(v any) any {
	switch v := v.(type) {
	case Object:
		out := make(Object, len(v))
		for f, x := range v {
			out[f] = cloneValue(x)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = cloneValue(x)
		}
		return out
	case nil, string, bool, int64, float64:
		return v
	case int:
		return int64(v)
	case int32:
		return int64(v)
	}
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	var out any
	if err := unmarshal(raw, &out); err != nil {
		panic(err)
	}
	return out
}

// FromTyped returns an object as JSON has it.
func FromTyped(obj runtime.Object) (Object, error) {
	return runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
}
