// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/render/flux"
)

// anyRules let everything pass that a hub may ever have written: a kubeconfig copy is only read to be mended.
var anyRules = kubeconfig.Rules{AllowInsecureTLS: true, AllowProxy: true, AllowMissingCA: true, AllowHTTP: true, AllowServices: true}

// shutProxy takes the user and password of a proxy out of a kubeconfig copy that an older hub wrote. What the Team delivers through it
// fails from then on, as it would when the token ends. The copy stays: without it, Flux would forget what it has on the cluster when an
// object is deleted.
func (r *Reconciler) shutProxy(ctx context.Context, there *metav1.PartialObjectMetadata) error {
	if there == nil || there.Labels[hubv1.CopyLabel] != identity.TeamCopy {
		return nil
	}
	copied := &corev1.Secret{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(there), copied); err != nil {
		return client.IgnoreNotFound(err)
	}
	config, err := kubeconfig.Parse(copied.Data[flux.KubeconfigKey], anyRules)
	if err != nil || copied.UID != there.UID || config.CheckShared() == nil {
		return nil // what does not parse, no hub wrote
	}
	open, err := config.WithOpenProxy()
	if err != nil {
		return fmt.Errorf("take the credential of the proxy out of Secret %s: it cannot be written without", copied.Name)
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": copied.UID, "resourceVersion": copied.ResourceVersion},
		"data":     map[string][]byte{flux.KubeconfigKey: open.Minimal()},
	})
	if err != nil {
		return fmt.Errorf("take the credential of the proxy out of Secret %s: the patch cannot be written", copied.Name)
	}
	at := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: copied.Namespace, Name: copied.Name}}
	err = r.Client.Patch(ctx, at, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(hubv1.FieldManager))
	return client.IgnoreNotFound(err)
}
