// SPDX-License-Identifier: Apache-2.0

package clusterreader

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/internal/render/document"
)

// place is the namespace and name of a document.
type place struct {
	namespace string
	document.Ref
}

// document reads a document once.
func (g *gatherer) document(namespace string, ref document.Ref) (document.Document, error) {
	namespace, ref = ref.In(namespace)
	at := place{namespace, ref}
	if doc, ok := g.documents[at]; ok {
		return doc, nil
	}
	doc, err := Document(g.ctx, g.Client, namespace, ref)
	if err == nil {
		g.documents[at] = doc
	}
	return doc, err
}

// Document reads a ConfigMap or Secret that a set refers to. For a Secret it keeps only the names of the keys, and whether it contains
// CustomResourceDefinitions.
func Document(ctx context.Context, c client.Reader, namespace string, ref document.Ref) (document.Document, error) {
	read := configMap
	if ref.Kind == "Secret" {
		read = secret
	}
	doc, err := read(ctx, c, types.NamespacedName{Namespace: namespace, Name: ref.Name})
	switch {
	case apierrors.IsNotFound(err):
		return document.Document{}, nil
	case apierrors.IsForbidden(err):
		return doc, fmt.Errorf("you may not read %s %s/%s, which the set refers to", ref.Kind, namespace, ref.Name)
	case err != nil:
		return doc, fmt.Errorf("read %s %s/%s: %w", ref.Kind, namespace, ref.Name, err)
	}
	return doc, nil
}

func configMap(ctx context.Context, c client.Reader, name types.NamespacedName) (document.Document, error) {
	m := &corev1.ConfigMap{}
	if err := c.Get(ctx, name, m); err != nil {
		return document.Document{}, err
	}
	return document.ConfigMap(m.Annotations, m.Data), nil
}

// secret keeps nothing of the Secret's content but which objects it holds.
func secret(ctx context.Context, c client.Reader, name types.NamespacedName) (document.Document, error) {
	s := &corev1.Secret{}
	if err := c.Get(ctx, name, s); err != nil {
		return document.Document{}, err
	}
	doc := document.Secret(s.Labels, s.Annotations, s.Type, s.Data)
	doc.Version = s.ResourceVersion
	return doc, nil
}
