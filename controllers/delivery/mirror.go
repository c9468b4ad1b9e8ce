// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/apply"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/render"
)

// mirrors puts the kubeconfig that the registration room has published beside each set that delivers here, and writes it
// only when its bytes change: Flux runs every object that refers to it again at each write. Without a published kubeconfig
// the mirrors stay as they are.
func (r *Reconciler) mirrors(ctx context.Context, c *cluster) error {
	var errs []error
	for _, ns := range c.namespaces() {
		errs = append(errs, r.mirror(ctx, c, ns))
	}
	return errors.Join(errs...)
}

// namespaces are those of the deliveries.
func (c *cluster) namespaces() []string {
	var out []string
	seen := map[string]bool{}
	for _, d := range c.deliveries {
		if !seen[d.Namespace] {
			seen[d.Namespace] = true
			out = append(out, d.Namespace)
		}
	}
	return out
}

func (r *Reconciler) mirror(ctx context.Context, c *cluster, namespace string) error {
	there := &metav1.PartialObjectMetadata{}
	there.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	name := types.NamespacedName{Namespace: namespace, Name: identity.Mirror(r.Config.HubID, c.key)}
	err := r.Client.Get(ctx, name, there)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read the kubeconfig mirror: %w", err)
	}
	exists := err == nil
	if exists && there.Labels[hubv1.ClusterKeyLabel] != identity.ClusterKey(r.Config.HubID, c.key) {
		return fmt.Errorf("Secret %s: %w", name, apply.ErrNotOwned)
	}
	c.mirrored[namespace] = exists
	if !c.answered() || !c.needsMirror(namespace) {
		return nil
	}
	for k, o := range c.objects {
		if exists && k.Namespace == namespace && o.Replaced {
			c.mirrored[namespace] = false
			return nil // Flux must not meet the new cluster with what it remembers of the old one
		}
	}
	credential := c.registration.Status.Credential
	if exists && (there.Annotations[hubv1.FingerprintAnnotation] == credential.Fingerprint || there.DeletionTimestamp != nil) {
		return nil
	}
	config, err := r.kubeconfig(ctx, c)
	if err != nil || config == nil {
		return err
	}
	if _, err := apply.Update(ctx, r.Client, r.mirrorObject(c, name, config), hubv1.FieldManager); err != nil {
		return err
	}
	c.mirrored[namespace] = true
	return nil
}

// needsMirror is false when all that is left of a namespace's deliveries is on its way out with nothing to remove.
func (c *cluster) needsMirror(namespace string) bool {
	for _, d := range c.deliveries {
		if d.Namespace == namespace && d.DeletionTimestamp == nil {
			return true
		}
	}
	for k := range c.objects {
		if k.Namespace == namespace {
			return true
		}
	}
	return false
}

// kubeconfig reads and checks the published kubeconfig again. It returns nil if the Secret has changed since: the
// registration room looks at it first, and wakes us.
func (r *Reconciler) kubeconfig(ctx context.Context, c *cluster) (*kubeconfig.Config, error) {
	credential := c.registration.Status.Credential
	secret := &corev1.Secret{}
	if err := r.Live.Get(ctx, types.NamespacedName{Namespace: c.key.Namespace, Name: credential.SecretName}, secret); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	config, err := kubeconfig.Parse(secret.Data[credential.Key], r.Config.RulesFor(c.registration))
	if err != nil || config.Fingerprint() != credential.Fingerprint {
		return nil, nil
	}
	return config, nil
}

func (r *Reconciler) mirrorObject(c *cluster, name types.NamespacedName, config *kubeconfig.Config) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"type": string(corev1.SecretTypeOpaque),
		"data": map[string]any{render.MirrorKey: base64.StdEncoding.EncodeToString(config.Minimal())},
	}}
	u.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	u.SetNamespace(name.Namespace)
	u.SetName(name.Name)
	u.SetFinalizers([]string{hubv1.MirrorFinalizer})
	u.SetLabels(map[string]string{
		"app.kubernetes.io/managed-by": "chandler",
		hubv1.MirrorLabel:              "true",
		hubv1.ClusterKeyLabel:          identity.ClusterKey(r.Config.HubID, c.key),
		hubv1.ClusterLabel:             identity.LabelValue(c.key.Name),
		fluxmeta.LabelKeyWatch:         fluxmeta.LabelValueWatchEnabled,
	})
	u.SetAnnotations(map[string]string{
		hubv1.RegistrationAnnotation: c.key.String(),
		hubv1.FingerprintAnnotation:  config.Fingerprint(),
	})
	return u
}

// dropMirror removes the mirror of a namespace. The last Flux object that used it must be gone.
func (r *Reconciler) dropMirror(ctx context.Context, c *cluster, namespace string) error {
	there := &metav1.PartialObjectMetadata{}
	there.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	name := types.NamespacedName{Namespace: namespace, Name: identity.Mirror(r.Config.HubID, c.key)}
	if err := r.Live.Get(ctx, name, there); err != nil {
		return client.IgnoreNotFound(err)
	}
	if there.Labels[hubv1.ClusterKeyLabel] != identity.ClusterKey(r.Config.HubID, c.key) {
		return nil
	}
	if err := apply.RemoveFinalizer(ctx, r.Client, there, hubv1.MirrorFinalizer); err != nil {
		return fmt.Errorf("let the kubeconfig mirror go: %w", err)
	}
	return client.IgnoreNotFound(r.Client.Delete(ctx, there))
}
