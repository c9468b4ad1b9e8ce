// SPDX-License-Identifier: Apache-2.0

// Package demise asks the management cluster, with a live read, whether an object's namespace or its CRD is being
// deleted. If so, no user decided to delete that object, although it has a deletionTimestamp. The controllers ask only
// before they remove something.
package demise

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// The hub's own kinds, as their CRDs call them.
const (
	Registrations = "clusterregistrations"
	Sets          = "addonsets"
	Deliveries    = "addondeliveries"
	Teams         = "teams"
)

// Namespace returns whether a namespace is being deleted.
func Namespace(ctx context.Context, live client.Reader, name string) (bool, error) {
	return going(ctx, live, corev1.SchemeGroupVersion.WithKind("Namespace"), name)
}

// AnyKind returns whether one of the hub's own kinds is being deleted, and every object of it.
func AnyKind(ctx context.Context, live client.Reader, kinds ...string) (bool, error) {
	for _, kind := range kinds {
		is, err := going(ctx, live, apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"), kind+"."+hubv1.GroupVersion.Group)
		if is || err != nil {
			return is, err
		}
	}
	return false, nil
}

// going reads one object by a list: the hub may list these kinds anyway.
func going(ctx context.Context, live client.Reader, gvk schema.GroupVersionKind, name string) (bool, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err := live.List(ctx, list, client.MatchingFields{metav1.ObjectNameField: name}); err != nil {
		return false, fmt.Errorf("read %s %s: %w", gvk.Kind, name, err)
	}
	return len(list.Items) > 0 && list.Items[0].DeletionTimestamp != nil, nil
}
