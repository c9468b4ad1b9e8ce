// SPDX-License-Identifier: Apache-2.0

package live

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandler-hub/chandler/internal/render"
)

// place is the namespace and name of a document.
type place struct {
	namespace string
	render.Ref
}

// document reads a ConfigMap or Secret that a set refers to. For a Secret it keeps only the names of the keys, and
// whether it contains CustomResourceDefinitions.
func (g *gatherer) document(namespace string, ref render.Ref) (render.Document, error) {
	namespace, ref = ref.In(namespace)
	at := place{namespace, ref}
	if doc, ok := g.documents[at]; ok {
		return doc, nil
	}
	read := g.configMap
	if ref.Kind == "Secret" {
		read = g.secret
	}
	doc, err := read(types.NamespacedName{Namespace: namespace, Name: ref.Name})
	switch {
	case apierrors.IsNotFound(err):
		doc, err = render.Document{}, nil
	case apierrors.IsForbidden(err):
		err = fmt.Errorf("you may not read %s %s/%s, which the set refers to", ref.Kind, namespace, ref.Name)
	case err != nil:
		err = fmt.Errorf("read %s %s/%s: %w", ref.Kind, namespace, ref.Name, err)
	}
	if err == nil {
		g.documents[at] = doc
	}
	return doc, err
}

func (g *gatherer) configMap(name types.NamespacedName) (render.Document, error) {
	m := &corev1.ConfigMap{}
	if err := g.Client.Get(g.ctx, name, m); err != nil {
		return render.Document{}, err
	}
	return render.ConfigMap(m.Annotations, m.Data), nil
}

// secret keeps nothing of the Secret's content but which objects it holds.
func (g *gatherer) secret(name types.NamespacedName) (render.Document, error) {
	s := &corev1.Secret{}
	if err := g.Client.Get(g.ctx, name, s); err != nil {
		return render.Document{}, err
	}
	doc := render.Secret(s.Labels, s.Annotations, s.Type, s.Data)
	doc.Version = s.ResourceVersion
	return doc, nil
}
