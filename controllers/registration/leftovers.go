// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
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

// recallTime is how long what somebody forces waits for a delivery to be made again. The matcher tries that many times within it.
const recallTime = time.Minute

// recalled returns the Flux objects whose deliveries are about to be made again, to be withdrawn: somebody has
// deleted them, and what they delivered is there still. The matcher does that, and can as long as the registration is
// there. It looks live, as deliveriesLeft does.
func (r *Reconciler) recalled(ctx context.Context, reg types.NamespacedName, reason string) ([]string, error) {
	var out []string
	sets := map[string][]hubv1.AddonSet{} // those that withdraw, by namespace
	taken := map[types.NamespacedName]bool{}
	for _, list := range []*metav1.PartialObjectMetadataList{
		{TypeMeta: metav1.TypeMeta{APIVersion: helmv2.GroupVersion.String(), Kind: helmv2.HelmReleaseKind + "List"}},
		{TypeMeta: metav1.TypeMeta{APIVersion: kustomizev1.GroupVersion.String(), Kind: kustomizev1.KustomizationKind + "List"}},
	} {
		if err := r.Live.List(ctx, list, client.MatchingLabels{hubv1.ClusterKeyLabel: identity.ClusterKey(r.Config.HubID, reg)}); err != nil {
			return nil, fmt.Errorf("look for what is left of deliveries: %w", err)
		}
		for i := range list.Items {
			o, platform := &list.Items[i], r.Config.IsPlatform(list.Items[i].Namespace)
			// Flux is at it, and its cluster answers
			if o.DeletionTimestamp != nil && !hubv1.LetsGo(reason) || !match.Reaches(o.Namespace, platform, reg.Namespace) {
				continue
			}
			if _, known := sets[o.Namespace]; !known {
				there, err := r.withdrawing(ctx, o.Namespace)
				if err != nil {
					return nil, err
				}
				sets[o.Namespace] = there
			}
			made := func(set hubv1.AddonSet) bool { return provenance.Object(o, r.Config.HubID, set.Name, reg, platform) }
			if !slices.ContainsFunc(sets[o.Namespace], made) {
				continue
			}
			delivery := types.NamespacedName{Namespace: o.Namespace, Name: o.Annotations[hubv1.DeliveryAnnotation]}
			if _, known := taken[delivery]; !known {
				is, err := r.taken(ctx, reg, delivery)
				if err != nil {
					return nil, err
				}
				taken[delivery] = is
			}
			if !taken[delivery] {
				out = append(out, fmt.Sprintf("%s %s/%s", strings.TrimSuffix(list.Kind, "List"), o.Namespace, o.Name))
			}
		}
	}
	return out, nil
}

// givesUp returns whether a registration that goes waits no longer for deliveries to be made again: somebody forces
// it, and the matcher has had its time.
func (r *Reconciler) givesUp(reg *hubv1.ClusterRegistration) bool {
	c := status.Find(reg, hubv1.UnregisteringCondition)
	return c != nil && c.Reason == hubv1.ForcedReason && r.Clock.Since(c.LastTransitionTime.Time) >= recallTime
}

// tellGivenUp tells what stays as it is: nobody lets it go, and so nobody else tells of it.
func (r *Reconciler) tellGivenUp(reg *hubv1.ClusterRegistration, objects []string) {
	if len(objects) > 0 {
		r.Recorder.Eventf(reg, nil, corev1.EventTypeWarning, hubv1.AddonOrphanedEvent, "Remove",
			"somebody forces it to go, and the deliveries of %s could not be made again, by which they would be let go. "+
				"They stay, and Flux goes on with what they deliver: suspend them, and delete them", status.List(objects, 20))
	}
}

// leftText says what a registration that goes still waits for.
func leftText(deliveries int, recalled []string) string {
	if len(recalled) > 0 {
		return fmt.Sprintf("%s of deliveries that somebody has deleted: they are to be made again first", status.List(recalled, 3))
	}
	return status.Count(deliveries, "delivery") + " left"
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

// withdrawing returns the sets of a namespace of which the matcher makes deliveries again. One that does not compile
// is none, and one that is being deleted looks for what it has left itself.
func (r *Reconciler) withdrawing(ctx context.Context, namespace string) ([]hubv1.AddonSet, error) {
	sets := &hubv1.AddonSetList{}
	if err := r.Live.List(ctx, sets, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list the AddonSets of namespace %s: %w", namespace, err)
	}
	return slices.DeleteFunc(sets.Items, func(set hubv1.AddonSet) bool {
		return set.DeletionTimestamp != nil || status.IsTrue(&set, hubv1.StalledCondition)
	}), nil
}
