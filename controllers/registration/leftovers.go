// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"fmt"
	"slices"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/match"
	"github.com/chandler-hub/chandler/internal/provenance"
	"github.com/chandler-hub/chandler/internal/status"
)

// recalled returns whether a delivery is about to be made again, to be withdrawn: somebody has deleted it, and what it delivered is there still. The
// matcher does that, and can as long as the registration is there. It looks live, as deliveriesLeft does.
func (r *Reconciler) recalled(ctx context.Context, reg types.NamespacedName, reason string) (bool, error) {
	sets := map[string][]hubv1.AddonSet{} // those that withdraw, by namespace
	for _, list := range []*metav1.PartialObjectMetadataList{
		{TypeMeta: metav1.TypeMeta{APIVersion: helmv2.GroupVersion.String(), Kind: helmv2.HelmReleaseKind + "List"}},
		{TypeMeta: metav1.TypeMeta{APIVersion: kustomizev1.GroupVersion.String(), Kind: kustomizev1.KustomizationKind + "List"}},
	} {
		if err := r.Live.List(ctx, list, client.MatchingLabels{hubv1.ClusterKeyLabel: identity.ClusterKey(r.Config.HubID, reg)}); err != nil {
			return false, fmt.Errorf("look for what is left of deliveries: %w", err)
		}
		for i := range list.Items {
			o, platform := &list.Items[i], r.Config.IsPlatform(list.Items[i].Namespace)
			if o.DeletionTimestamp != nil && !hubv1.LetsGo(reason) || !match.Reaches(o.Namespace, platform, reg.Namespace) { // Flux is at it, and its cluster answers
				continue
			}
			if _, known := sets[o.Namespace]; !known {
				there, err := r.withdrawing(ctx, o.Namespace)
				if err != nil {
					return false, err
				}
				sets[o.Namespace] = there
			}
			made := func(set hubv1.AddonSet) bool { return provenance.Object(o, r.Config.HubID, set.Name, reg, platform) }
			if !slices.ContainsFunc(sets[o.Namespace], made) {
				continue
			}
			if taken, err := r.taken(ctx, reg, types.NamespacedName{Namespace: o.Namespace, Name: o.Annotations[hubv1.DeliveryAnnotation]}); err != nil || !taken {
				return !taken, err
			}
		}
	}
	return false, nil
}

// taken returns whether a delivery to another cluster has that name: nobody can make the one that belongs there.
func (r *Reconciler) taken(ctx context.Context, reg, delivery types.NamespacedName) (bool, error) {
	d := &hubv1.AddonDelivery{}
	if err := r.Live.Get(ctx, delivery, d); apierrors.IsNotFound(err) {
		return false, nil
	} else if err != nil {
		return true, fmt.Errorf("read AddonDelivery %s: %w", delivery, err)
	}
	return d.Spec.RegistrationRef.Key() != reg, nil
}

// withdrawing returns the sets of a namespace of which the matcher makes deliveries again. One that does not compile is none, and one that is being
// deleted looks for what it has left itself.
func (r *Reconciler) withdrawing(ctx context.Context, namespace string) ([]hubv1.AddonSet, error) {
	sets := &hubv1.AddonSetList{}
	if err := r.Live.List(ctx, sets, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list the AddonSets of namespace %s: %w", namespace, err)
	}
	return slices.DeleteFunc(sets.Items, func(set hubv1.AddonSet) bool {
		return set.DeletionTimestamp != nil || status.IsTrue(&set, hubv1.StalledCondition)
	}), nil
}
