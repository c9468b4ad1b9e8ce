// SPDX-License-Identifier: Apache-2.0

package inflate

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client" //nolint:depguard // the interface that Flux's libraries take
)

const configMapKind = "ConfigMap"

// documents stands for the management cluster where Flux's libraries read ConfigMaps and Secrets. It has nothing else, and no Secret.
type documents struct {
	client.Client
	from From
}

// Get reads a ConfigMap.
func (d documents) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if m, ok := into.(*corev1.ConfigMap); ok {
		data, found := d.from.ConfigMap(key.Namespace, key.Name)
		if !found {
			return apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, key.Name)
		}
		m.Name, m.Namespace, m.Data = key.Name, key.Namespace, data
		return nil
	}
	if !d.from.HasSecret(key.Namespace, key.Name) {
		// It may be missing for Flux too, or only here. Nobody knows, so an optional one is an error too.
		return fmt.Errorf("Secret %s/%s is not in the files, and Secrets are not read from the hub", key.Namespace, key.Name)
	}
	return fmt.Errorf("what Secret %s/%s holds is not read", key.Namespace, key.Name)
}
