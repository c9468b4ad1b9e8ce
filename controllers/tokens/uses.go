// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/internal/apply"
	"github.com/chandler-hub/chandler/internal/fluxstate"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/provenance"
)

// uses says what a namespace has that needs a token of one cluster.
type uses struct {
	// wanted is true if there is a delivery that is not being deleted, and reported if the hub has reported on one.
	wanted, reported bool
	// objects is true if there are Flux objects, and ofAnother if one was made for another cluster.
	objects, ofAnother bool
	// refused is true if the cluster does not accept the token of one.
	refused bool
}

// unauthorized matches what Flux says of an API server that answers 401.
var unauthorized = regexp.MustCompile(`(?i)\bunauthorized\b|asked for the client to provide credentials`)

// uses looks into a namespace. A user who may write there can forge Flux objects, and deliveries but for their status.
func (r *Reconciler) uses(ctx context.Context, reg *hubv1.ClusterRegistration, namespace string) (uses, error) {
	var u uses
	key := client.ObjectKeyFromObject(reg)
	list := &hubv1.AddonDeliveryList{}
	if err := r.Client.List(ctx, list, index.DeliveriesOf(key), client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return u, fmt.Errorf("list the deliveries: %w", err)
	}
	for i := range list.Items {
		d := &list.Items[i]
		if provenance.Named(d) {
			u.wanted = u.wanted || d.DeletionTimestamp == nil
			u.reported = u.reported || len(d.Status.Addons) > 0
		}
	}
	objects, err := index.FluxObjects(ctx, r.Client, identity.ClusterKey(r.Config.HubID, key), client.InNamespace(namespace))
	if err != nil {
		return u, err
	}
	for _, o := range objects {
		uid := o.GetAnnotations()[hubv1.ClusterUIDAnnotation]
		u.objects = true
		u.ofAnother = u.ofAnother || uid != "" && uid != string(reg.Status.ClusterID())
		s := fluxstate.Of(o)
		u.refused = u.refused || s.Ready == metav1.ConditionFalse && unauthorized.MatchString(s.Message)
	}
	return u, nil
}

// dropUnused drops the kubeconfig copies with a Team's token of a cluster in namespaces that have no delivery to it and no Flux object
// for it: the last delivery may have gone while a token was on its way.
func (r *Reconciler) dropUnused(ctx context.Context, reg *hubv1.ClusterRegistration, delivered []string) error {
	key := client.ObjectKeyFromObject(reg)
	kept, err := index.Copies(ctx, r.Client, "Secret", identity.ClusterKey(r.Config.HubID, key))
	if err != nil {
		return err
	}
	var errs []error
	for i := range kept {
		m := &kept[i]
		if m.Labels[hubv1.CopyLabel] != identity.TeamCopy || m.Name != identity.KubeconfigCopy(r.Config.HubID, key) ||
			slices.Contains(delivered, m.Namespace) {
			continue
		}
		errs = append(errs, r.drop(ctx, reg, m.DeepCopy()))
	}
	return errors.Join(errs...)
}

// drop drops a kubeconfig copy, unless a delivery or a Flux object is there after all. It reads live.
func (r *Reconciler) drop(ctx context.Context, reg *hubv1.ClusterRegistration, m *metav1.PartialObjectMetadata) error {
	cluster := client.MatchingLabels{hubv1.ClusterKeyLabel: identity.ClusterKey(r.Config.HubID, client.ObjectKeyFromObject(reg))}
	for kind, version := range map[string]string{
		"AddonDelivery": hubv1.GroupVersion.String(), "HelmRelease": helmv2.GroupVersion.String(),
		"Kustomization": kustomizev1.GroupVersion.String(),
	} {
		list := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: kind + "List"}}
		if err := r.Live.List(ctx, list, client.InNamespace(m.Namespace), cluster, client.Limit(1)); err != nil {
			return fmt.Errorf("look for what uses the kubeconfig copy: %w", err)
		}
		if len(list.Items) > 0 {
			return nil
		}
	}
	if err := apply.RemoveFinalizer(ctx, r.Client, m, hubv1.Finalizer); err != nil {
		return fmt.Errorf("let the kubeconfig copy go: %w", err)
	}
	return apply.Delete(ctx, r.Client, m)
}
