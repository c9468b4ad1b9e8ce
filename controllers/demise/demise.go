// SPDX-License-Identifier: Apache-2.0

// Package demise asks the management cluster, with a live read, whether an object's namespace or its CRD is being
// deleted. If so, no user decided to delete that object, although it has a deletionTimestamp. The controllers ask only
// before they remove something, and before they register a cluster.
package demise

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// Namespace returns whether a namespace is being deleted. It reads by a list, which the hub may do anyway.
func Namespace(ctx context.Context, live client.Reader, name string) (bool, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	if err := live.List(ctx, list, client.MatchingFields{metav1.ObjectNameField: name}); err != nil {
		return false, fmt.Errorf("read Namespace %s: %w", name, err)
	}
	return len(list.Items) > 0 && list.Items[0].DeletionTimestamp != nil, nil
}

// AnyKind returns whether one of the hub's own kinds is being deleted, and every object of it. It reads each CRD by
// name: before it answers a live list, the API server waits up to 100 ms for its watch cache, and each new registration would wait as long.
func AnyKind(ctx context.Context, live client.Reader, kinds ...string) (bool, error) {
	for _, kind := range kinds {
		crd := &metav1.PartialObjectMetadata{}
		crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
		name := client.ObjectKey{Name: kind + "." + hubv1.GroupVersion.Group}
		if err := live.Get(ctx, name, crd); client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("read CustomResourceDefinition %s: %w", name.Name, err)
		}
		if crd.DeletionTimestamp != nil {
			return true, nil
		}
	}
	return false, nil
}
