// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/internal/origin"
)

// Origin reads an origin in the version that the API server prefers; of a Secret only the metadata.
func (r *Reader) Origin(ctx context.Context, kind origin.Kind, name types.NamespacedName) (*unstructured.Unstructured, error) {
	mapping, err := r.Client.RESTMapper().RESTMapping(kind.GroupKind)
	if err != nil {
		return nil, err
	}
	var obj client.Object = &unstructured.Unstructured{}
	if kind == origin.Secret {
		obj = &metav1.PartialObjectMetadata{}
	}
	obj.GetObjectKind().SetGroupVersionKind(mapping.GroupVersionKind)
	if err := r.Client.Get(ctx, name, obj); err != nil {
		return nil, err
	}
	return asOrigin(obj, mapping)
}

// Origins lists the origins of a kind in the version that the API server prefers; of Secrets only the metadata.
func (r *Reader) Origins(ctx context.Context, kind origin.Kind, opts ...client.ListOption) ([]*unstructured.Unstructured, error) {
	if kind == origin.Secret {
		return r.OriginMetadata(ctx, kind, opts...)
	}
	return r.origins(ctx, kind, &unstructured.UnstructuredList{}, opts...)
}

// OriginMetadata lists the metadata of the origins of a kind.
func (r *Reader) OriginMetadata(ctx context.Context, kind origin.Kind, opts ...client.ListOption) ([]*unstructured.Unstructured, error) {
	return r.origins(ctx, kind, &metav1.PartialObjectMetadataList{}, opts...)
}

func (r *Reader) origins(ctx context.Context, kind origin.Kind, list client.ObjectList,
	opts ...client.ListOption) (out []*unstructured.Unstructured, err error) {
	mapping, err := r.Client.RESTMapper().RESTMapping(kind.GroupKind)
	if err != nil {
		return nil, err
	}
	list.GetObjectKind().SetGroupVersionKind(mapping.GroupVersionKind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := r.Client.List(ctx, list, opts...); err != nil {
		return nil, err
	}
	err = meta.EachListItem(list, func(one runtime.Object) error {
		u, err := asOrigin(one, mapping)
		out = append(out, u)
		return err
	})
	return out, err
}

// asOrigin leaves out what repeats the rest: kubectl keeps a copy of the whole object in an annotation, and so the data of a Secret.
func asOrigin(obj runtime.Object, mapping *meta.RESTMapping) (*unstructured.Unstructured, error) {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: object}
	u.SetGroupVersionKind(mapping.GroupVersionKind)
	unstructured.RemoveNestedField(object, "metadata", "managedFields")
	unstructured.RemoveNestedField(object, "metadata", "annotations", corev1.LastAppliedConfigAnnotation)
	return u, nil
}
