// SPDX-License-Identifier: Apache-2.0

package clusterreader

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandler-hub/chandler/internal/origin"
)

// origin reads the origin. If it cannot be read, that is noted and is not a failure: the hub goes on without it too.
func (g *gatherer) origin() error {
	ref := g.in.Registration.Spec.OriginRef
	if ref == nil {
		return nil
	}
	kind, err := origin.KindOf(*ref)
	if err != nil {
		g.in.NoOrigin = "which the hub does not know: " + err.Error()
		return nil //nolint:nilerr // told in the report
	}
	mapping, err := g.Client.RESTMapper().RESTMapping(kind.GroupKind)
	if err == nil {
		g.in.Origin, err = g.readOrigin(kind, mapping, types.NamespacedName{Namespace: g.in.Registration.Namespace, Name: ref.Name})
	}
	switch {
	case err == nil:
	case meta.IsNoMatchError(err):
		g.in.NoOrigin = "whose kind is not installed"
	case apierrors.IsNotFound(err):
		g.in.NoOrigin = "which does not exist"
	case apierrors.IsForbidden(err):
		g.in.NoOrigin = "which you may not read: what expressions make of it may be otherwise on the hub"
	default:
		return fmt.Errorf("read the origin, %s %s/%s: %w", ref.Kind, g.in.Registration.Namespace, ref.Name, err)
	}
	return nil
}

// readOrigin reads an origin in the version that the API server prefers; of a Secret only the metadata.
func (g *gatherer) readOrigin(kind origin.Kind, mapping *meta.RESTMapping, name types.NamespacedName) (*unstructured.Unstructured, error) {
	if kind.GroupKind != origin.Secret.GroupKind {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(mapping.GroupVersionKind)
		if err := g.Client.Get(g.ctx, name, u); err != nil {
			return nil, err
		}
		return u, nil
	}
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(mapping.GroupVersionKind)
	if err := g.Client.Get(g.ctx, name, m); err != nil {
		return nil, err
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(m)
	return &unstructured.Unstructured{Object: object}, err
}
