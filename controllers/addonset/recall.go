// SPDX-License-Identifier: Apache-2.0

package addonset

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/demise"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/match"
	"github.com/chandler-hub/chandler/internal/status"
)

// A delivery that somebody deletes goes, and its Flux objects stay: it is made again. If its set stops selecting the cluster in between, or is
// deleted, nobody would make it again, and nobody would ever remove the objects. So a set makes it again then as well, and withdraws it.
//
// Objects that are older than the set or the registration stay as they are: these may have just come out of a backup, or back with their CRD, and
// their labels may follow.

var fluxKinds = map[string]schema.GroupVersion{fluxspec.HelmReleaseKind: helmv2.GroupVersion, fluxspec.KustomizationKind: kustomizev1.GroupVersion}

// recall makes the deliveries again of sets that do not want a cluster, or of all sets if it is unregistered, and that have Flux objects there.
func (m *Matcher) recall(ctx context.Context, reg *hubv1.ClusterRegistration, existing map[types.NamespacedName]*hubv1.AddonDelivery) error {
	regKey, leaving := client.ObjectKeyFromObject(reg), status.Goes(reg)
	without := map[types.NamespacedName]types.NamespacedName{} // sets by the names of deliveries that are not there
	sets := m.registry.all()
	for key, set := range sets {
		if existing[key] == nil && !set.leaving && !set.held && set.selector != nil && set.selector.Reaches(reg.Namespace) && (leaving || !set.selector.Matches(reg)) {
			without[types.NamespacedName{Namespace: key.Namespace, Name: identity.Delivery(key.Name, regKey)}] = key
		}
	}
	if len(without) == 0 {
		return nil
	}
	left := map[types.NamespacedName]bool{}
	note := func(obj client.Object, kind string) error {
		key, ours := without[types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetAnnotations()[hubv1.DeliveryAnnotation]}]
		if !ours || left[key] || !m.madeSince(obj, reg, sets[key].created) {
			return nil
		}
		// Live: what was withdrawn a moment ago may still be in the cache, after its delivery has gone.
		there, err := m.there(ctx, reg, obj, kind)
		left[key] = there
		return err
	}
	of := client.MatchingFields{index.ClusterKey: identity.ClusterKey(m.Config.HubID, regKey)}
	releases, kustomizations := &helmv2.HelmReleaseList{}, &kustomizev1.KustomizationList{}
	if err := errors.Join(m.Client.List(ctx, releases, of, client.UnsafeDisableDeepCopy), m.Client.List(ctx, kustomizations, of, client.UnsafeDisableDeepCopy)); err != nil {
		return fmt.Errorf("look for what sets have left on the cluster: %w", err)
	}
	var errs []error
	for i := range releases.Items {
		errs = append(errs, note(&releases.Items[i], fluxspec.HelmReleaseKind))
	}
	for i := range kustomizations.Items {
		errs = append(errs, note(&kustomizations.Items[i], fluxspec.KustomizationKind))
	}
	for _, key := range sorted(left) {
		if left[key] {
			errs = append(errs, m.registry.write(key, func() error { return m.deliver(ctx, reg, key, sets[key].uid, sets[key].revision, true) }))
		}
	}
	return errors.Join(errs...)
}

// recallAll makes the deliveries of a set that is being deleted again, of which Flux objects are there. It returns whether there are any. What is
// for a cluster that is not registered any more stays as it is, and so does what says that it is for one out of the set's reach: whoever writes
// Flux objects in a namespace of his own can say that of them.
func (r *Reconciler) recallAll(ctx context.Context, set *hubv1.AddonSet) (bool, error) {
	if going, err := demise.Namespace(ctx, r.Live, set.Namespace); err != nil || going || set.Status.Revision == "" {
		return false, err
	}
	made := map[types.NamespacedName]bool{}
	for _, kind := range slices.Sorted(maps.Keys(fluxKinds)) {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(fluxKinds[kind].WithKind(kind + "List"))
		if err := r.Live.List(ctx, list, client.InNamespace(set.Namespace), setLabels(set.Name)); err != nil {
			return false, fmt.Errorf("look for what the set has left: %w", err)
		}
		for i := range list.Items {
			obj := &list.Items[i]
			regKey, ok := index.Registration(obj.Annotations[hubv1.RegistrationAnnotation])
			if !ok || made[regKey] || obj.Annotations[hubv1.DeliveryAnnotation] != identity.Delivery(set.Name, regKey) {
				continue
			}
			if !match.Reaches(set.Namespace, r.Config.IsPlatform(set.Namespace), regKey.Namespace) {
				continue
			}
			reg := &hubv1.ClusterRegistration{}
			if err := r.Live.Get(ctx, regKey, reg); apierrors.IsNotFound(err) {
				continue
			} else if err != nil {
				return false, fmt.Errorf("read ClusterRegistration %s: %w", regKey, err)
			}
			if !r.madeSince(obj, reg, set.CreationTimestamp.Time) {
				continue
			}
			if err := r.deliver(ctx, reg, client.ObjectKeyFromObject(set), set.UID, set.Status.Revision, true); err != nil {
				return false, err
			}
			made[regKey] = true
		}
	}
	return len(made) > 0, nil
}

// made returns whether the hub made a Flux object for a cluster, and it is not on its way out.
func (r *Reconciler) made(obj client.Object, reg types.NamespacedName) bool {
	return obj.GetDeletionTimestamp() == nil && r.named(obj, reg)
}

// named returns whether a Flux object has the name that the hub gives.
func (r *Reconciler) named(obj client.Object, reg types.NamespacedName) bool {
	return obj.GetName() == identity.FluxObject(r.Config.HubID, reg, obj.GetLabels()[hubv1.AddonLabel])
}

// madeSince returns whether the hub made it for a registration and a set as they are.
func (r *Reconciler) madeSince(obj client.Object, reg *hubv1.ClusterRegistration, set time.Time) bool {
	since := obj.GetCreationTimestamp().Time
	key := client.ObjectKeyFromObject(reg)
	return (r.made(obj, key) || letsGo(reg) && r.named(obj, key)) && !since.Before(reg.CreationTimestamp.Time) && !since.Before(set)
}

// letsGo returns whether what is on a cluster is let go. Then a Flux object that somebody has deleted needs its delivery as well: Flux never
// comes to an end with the Kustomization of a cluster that is gone, unless the hub suspends it.
func letsGo(reg *hubv1.ClusterRegistration) bool {
	return hubv1.LetsGo(status.Reason(reg, hubv1.UnregisteringCondition))
}

// there returns whether a Flux object is there, read live, and not on its way out.
func (r *Reconciler) there(ctx context.Context, reg *hubv1.ClusterRegistration, obj client.Object, kind string) (bool, error) {
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(fluxKinds[kind].WithKind(kind))
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(obj), live)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for %s %s/%s: %w", kind, obj.GetNamespace(), obj.GetName(), err)
	}
	return live.GetDeletionTimestamp() == nil || letsGo(reg), nil
}
