// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// decoding is what one object, as of one write, is as one Go type.
type decoding struct {
	version string
	as      reflect.Type
}

// Typed returns an object of the server's as the Go type that into has. It must not be changed: whoever asks for the same gets the same.
func (s *Server) Typed(from Object, into runtime.Object) (runtime.Object, error) {
	version, _ := metadata(from)["resourceVersion"].(string)
	key := decoding{version, reflect.TypeOf(into)}
	if known := s.decoded[key]; known != nil {
		return known, nil
	}
	out := reflect.New(key.as.Elem()).Interface().(runtime.Object)
	content := from
	if _, ok := out.(*metav1.PartialObjectMetadata); ok {
		content = Object{"metadata": from["metadata"]}
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, out); err != nil {
		return nil, err
	}
	if version != "" {
		s.decoded[key] = out
	}
	return out, nil
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
