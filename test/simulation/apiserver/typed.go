// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"reflect"
	"strings"
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// decoding is what one object, as of one write, is as one Go type.
type decoding struct {
	version string
	as      reflect.Type
}

// part is a field of objects, such as a spec, as one Go type. Objects share what a write leaves as it is, so it is told by where it lies.
type part struct {
	at unsafe.Pointer
	as reflect.Type
}

// decoder has objects as Go types. They must not be changed.
type decoder struct {
	objects map[decoding]runtime.Object
	parts   map[part]reflect.Value
	// kept are those that parts were made of, which keeps their places from being used again.
	kept []Object
}

func newDecoder() *decoder {
	return &decoder{objects: map[decoding]runtime.Object{}, parts: map[part]reflect.Value{}}
}

// Typed returns an object of the server's as the Go type that into has. It must not be changed: whoever asks for the same gets the same.
func (s *Server) Typed(from Object, into runtime.Object) (runtime.Object, error) {
	version, _ := metadata(from)["resourceVersion"].(string)
	key := decoding{version, reflect.TypeOf(into)}
	if known := s.decoded.objects[key]; known != nil {
		return known, nil
	}
	out := reflect.New(key.as.Elem()).Interface().(runtime.Object)
	if version == "" {
		return out, runtime.DefaultUnstructuredConverter.FromUnstructured(from, out)
	}
	if err := s.decoded.decode(from, reflect.ValueOf(out).Elem()); err != nil {
		return nil, err
	}
	s.decoded.objects[key] = out
	return out, nil
}

// decode fills a Go struct, of which each field that is an object is looked up among the parts that are known.
func (d *decoder) decode(from Object, into reflect.Value) error {
	rest := make(Object, len(from))
	for f, v := range from {
		rest[f] = v
	}
	for i := range into.NumField() {
		field := into.Type().Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		content, ok := from[name].(Object)
		if !ok || field.Type.Kind() != reflect.Struct {
			continue
		}
		key := part{reflect.ValueOf(content).UnsafePointer(), field.Type}
		known, there := d.parts[key]
		if !there {
			made := reflect.New(field.Type)
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, made.Interface()); err != nil {
				return err
			}
			known = made.Elem()
			d.parts[key] = known
			d.kept = append(d.kept, content)
		}
		into.Field(i).Set(known)
		delete(rest, name)
	}
	decoded := reflect.New(into.Type())
	if _, metadata := decoded.Interface().(*metav1.PartialObjectMetadata); metadata {
		return nil // it has nothing else
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(rest, decoded.Interface()); err != nil {
		return err
	}
	for i := range into.NumField() {
		if into.Field(i).IsZero() {
			into.Field(i).Set(decoded.Elem().Field(i))
		}
	}
	return nil
}

// Into fills an object of any form with one of the server's.
func (s *Server) Into(from Object, into runtime.Object) error {
	if u, ok := into.(*unstructured.Unstructured); ok {
		u.Object = Clone(from)
		return nil
	}
	known, err := s.Typed(from, into)
	if err != nil {
		return err
	}
	gvk := into.GetObjectKind().GroupVersionKind()
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(known.DeepCopyObject()).Elem())
	if _, ok := into.(*metav1.PartialObjectMetadata); ok {
		into.GetObjectKind().SetGroupVersionKind(gvk)
	}
	return nil
}
