// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"fmt"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/match"
	"github.com/chandler-hub/chandler/internal/status"
)

// recalled returns whether a delivery is about to be made again, to be withdrawn: somebody has deleted it, and what it delivered is there still. The
// matcher does that, and can as long as the registration is there. It looks live, as deliveriesLeft does.
func (r *Reconciler) recalled(ctx context.Context, reg types.NamespacedName, reason string) (bool, error) {
	for _, list := range []*metav1.PartialObjectMetadataList{
		{TypeMeta: metav1.TypeMeta{APIVersion: helmv2.GroupVersion.String(), Kind: helmv2.HelmReleaseKind + "List"}},
		{TypeMeta: metav1.TypeMeta{APIVersion: kustomizev1.GroupVersion.String(), Kind: kustomizev1.KustomizationKind + "List"}},
	} {
		if err := r.Live.List(ctx, list, client.MatchingLabels{hubv1.ClusterKeyLabel: identity.ClusterKey(r.Config.HubID, reg)}); err != nil {
			return false, fmt.Errorf("look for what is left of deliveries: %w", err)
		}
		for i := range list.Items {
			o := &list.Items[i]
			if !r.generated(o, reg) || o.DeletionTimestamp != nil && !hubv1.LetsGo(reason) { // Flux is at it, and its cluster answers
				continue
			}
			if taken, err := r.taken(ctx, reg, types.NamespacedName{Namespace: o.Namespace, Name: o.Annotations[hubv1.DeliveryAnnotation]}); err != nil {
				return false, err
			} else if taken {
				continue
			}
			if withdraws, err := r.withdraws(ctx, types.NamespacedName{Namespace: o.Namespace, Name: o.Labels[hubv1.AddonSetLabel]}); err != nil || withdraws {
				return withdraws, err
			}
		}
	}
	return false, nil
}

// generated returns whether a Flux object has the name that the hub gives, says that it is of the delivery that its set would have, and lies where that
// may be.
func (r *Reconciler) generated(o *metav1.PartialObjectMetadata, reg types.NamespacedName) bool {
	return o.Name == identity.FluxObject(r.Config.HubID, reg, o.Labels[hubv1.AddonLabel]) &&
		o.Annotations[hubv1.DeliveryAnnotation] == identity.Delivery(o.Labels[hubv1.AddonSetLabel], reg) &&
		match.Reaches(o.Namespace, r.Config.IsPlatform(o.Namespace), reg.Namespace)
}

// taken returns whether a delivery to another cluster has that name: nobody can make the one that belongs there.
func (r *Reconciler) taken(ctx context.Context, reg, delivery types.NamespacedName) (bool, error) {
	d := &hubv1.AddonDelivery{}
	if err := r.Live.Get(ctx, delivery, d); apierrors.IsNotFound(err) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("read AddonDelivery %s: %w", delivery, err)
	}
	return d.Spec.RegistrationRef.Key() != reg, nil
}

// withdraws returns whether a set is there of which the matcher makes deliveries again. One that does not compile is none, and one that is being
// deleted looks for what it has left itself.
func (r *Reconciler) withdraws(ctx context.Context, key types.NamespacedName) (bool, error) {
	set := &hubv1.AddonSet{}
	if err := r.Live.Get(ctx, key, set); apierrors.IsNotFound(err) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("read AddonSet %s: %w", key, err)
	}
	return set.DeletionTimestamp == nil && !status.IsTrue(set, hubv1.StalledCondition), nil
}
