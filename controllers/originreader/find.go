// SPDX-License-Identifier: Apache-2.0

package originreader

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/origin"
	"github.com/chandler-hub/chandler/internal/teardown"
)

// Named is an origin.
type Named struct {
	Kind origin.Kind
	types.NamespacedName
}

// Asking returns the origins that ask to be registered under a name, as the first of those that they may get. It reads the cache only.
func (o *Reader) Asking(ctx context.Context, key types.NamespacedName) ([]Named, error) {
	var out []Named
	for _, kind := range origin.Kinds {
		gvk, ok := o.version(kind)
		if !ok {
			continue
		}
		for _, name := range o.policy.OriginNames(kind, key.Name) {
			one := Named{kind, types.NamespacedName{Namespace: key.Namespace, Name: name}}
			if _, err := o.read(ctx, kind, gvk, one.NamespacedName); apierrors.IsNotFound(err) {
				continue // Get would look live whether the kind is there
			} else if err != nil {
				return nil, fmt.Errorf("read %s %s: %w", kind.Kind, one.NamespacedName, err)
			}
			_, verdict, err := o.Get(ctx, kind, one.NamespacedName)
			if err != nil {
				return nil, err
			}
			if verdict.Origin == teardown.OriginWanted && verdict.RegistrationName(name) == key.Name {
				out = append(out, one)
			}
		}
	}
	return out, nil
}

// Concerned returns the origins of a kind in a namespace that say, in a label, whether they ask to be registered, or that a rule matches,
// and that options select. It reads the cache.
func (o *Reader) Concerned(ctx context.Context, kind origin.Kind, namespace string,
	and ...client.ListOption) ([]types.NamespacedName, error) {
	gvk, ok := o.version(kind)
	if !ok {
		return nil, nil
	}
	var list client.ObjectList = &unstructured.UnstructuredList{}
	if kind == origin.Secret {
		list = &metav1.PartialObjectMetadataList{}
	}
	list.GetObjectKind().SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	and = append(and, client.InNamespace(namespace), client.UnsafeDisableDeepCopy)
	if !o.policy.HasRules(kind) { // else a rule may match what has no label
		and = append(and, client.HasLabels{hubv1.RegisterLabel})
	}
	if err := o.cache.List(ctx, list, and...); err != nil {
		return nil, fmt.Errorf("list the %ss of namespace %s: %w", kind.Kind, namespace, err)
	}
	var out []types.NamespacedName
	err := meta.EachListItem(list, func(one runtime.Object) error {
		if obj := one.(client.Object); o.policy.Concerns(kind, obj) {
			out = append(out, client.ObjectKeyFromObject(obj))
		}
		return nil
	})
	return out, err
}

// NamingSecret returns the ClusterProfiles that name a Secret as the one with their kubeconfig. Other origins' Secrets are known by
// their names.
func (o *Reader) NamingSecret(ctx context.Context, secret types.NamespacedName) ([]types.NamespacedName, error) {
	gvk, ok := o.version(origin.ClusterProfile)
	if !ok {
		return nil, nil
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err := o.cache.List(ctx, list, client.InNamespace(secret.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the ClusterProfiles of namespace %s: %w", secret.Namespace, err)
	}
	var out []types.NamespacedName
	for i := range list.Items {
		if !o.policy.Concerns(origin.ClusterProfile, &list.Items[i]) {
			continue // one that registers nothing is not even looked at: its author decides how much it says
		}
		if source, err := origin.ClusterProfile.KubeConfig(&list.Items[i]); err == nil && source.Secret == secret.Name {
			out = append(out, client.ObjectKeyFromObject(&list.Items[i]))
		}
	}
	return out, nil
}
