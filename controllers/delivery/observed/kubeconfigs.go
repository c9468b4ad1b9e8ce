// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/apply"
	"github.com/chandler-hub/chandler/internal/identity"
)

// The kinds of kubeconfig copies: a Secret with the kubeconfig, or a ConfigMap that says how Flux logs in by workload identity.
const (
	SecretKind    = "Secret"
	ConfigMapKind = "ConfigMap"
)

// CopyKind is the kind of kubeconfig copy that the cluster's objects in a namespace refer to.
func (c *Cluster) CopyKind(namespace string) string {
	if c.Unprobed() && !c.Reach[namespace].ByTeam() {
		return ConfigMapKind
	}
	return SecretKind
}

// CopyThere returns the metadata of a kubeconfig copy, and nil if it does not exist. It returns an error if an object of
// that name is not the hub's.
func (r *Reader) CopyThere(ctx context.Context, reader client.Reader, c *Cluster, kind,
	namespace string) (*metav1.PartialObjectMetadata, error) {
	there := &metav1.PartialObjectMetadata{}
	there.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	name := types.NamespacedName{Namespace: namespace, Name: identity.KubeconfigCopy(r.Config.HubID, c.Key)}
	err := reader.Get(ctx, name, there)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the kubeconfig copy: %w", err)
	case there.Labels[hubv1.ClusterKeyLabel] != identity.ClusterKey(r.Config.HubID, c.Key):
		return nil, fmt.Errorf("%s %s: %w", kind, name, apply.ErrNotOwned)
	}
	return there, nil
}

// IgnoreNotOwned ignores that an object which is not the hub's has the name of a kubeconfig copy: that does not matter to a caller that
// deletes.
func IgnoreNotOwned(err error) error {
	if errors.Is(err, apply.ErrNotOwned) {
		return nil
	}
	return err
}
