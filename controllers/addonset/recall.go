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
	"github.com/chandler-hub/chandler/controllers/reach"
	"github.com/chandler-hub/chandler/internal/drain"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/fluxstate"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/match"
	"github.com/chandler-hub/chandler/internal/pace"
	"github.com/chandler-hub/chandler/internal/provenance"
	"github.com/chandler-hub/chandler/internal/status"
)

// If somebody deletes a delivery, its Flux objects stay, and the delivery is made again. If its set stops selecting
// the cluster in between, or is deleted, the set would not make it again, and nobody would ever remove the objects.
// So the set makes it again then too, and withdraws it.
//
// Whoever deletes a set, unregisters a cluster or drains it has said what is to go. If a set merely does not select a
// cluster, that may mean less: both may have just been restored from a backup, or together with their CRD, and their
// labels may follow. So what is older than the set or the registration waits until both have existed for
// --teardown-grace.
//
// A Team may lose the cluster just then. Its set does not reach the cluster any more, and delivers nothing there. It makes
// the delivery again all the same, as long as the Team has its rights there, which are waiting for what it withdraws.

var fluxKinds = map[string]schema.GroupVersion{fluxspec.HelmReleaseKind: helmv2.GroupVersion,
	fluxspec.KustomizationKind: kustomizev1.GroupVersion}

// recall makes deliveries again whose Flux objects exist: those of sets that do not want the cluster, or of all sets
// if the cluster goes. It returns after how long there may be more.
func (m *Matcher) recall(ctx context.Context, reg *hubv1.ClusterRegistration,
	existing map[types.NamespacedName]*hubv1.AddonDelivery) (time.Duration, error) {
	left, err := m.leftovers(ctx, reg, existing)
	if err != nil || len(left) == 0 {
		return 0, err
	}
	var errs []error
	var again time.Duration
	sets := m.registry.all()
	for _, key := range sorted(sets) {
		set := sets[key]
		objects := left[types.NamespacedName{Namespace: key.Namespace, Name: identity.Delivery(key.Name, client.ObjectKeyFromObject(reg))}]
		if len(objects) == 0 || !set.forgets(reg) {
			continue
		}
		again = pace.Sooner(again, m.uninstalls(objects))
		if objects = slices.DeleteFunc(objects, func(o client.Object) bool { return !m.stays(o, reg, key.Name) }); len(objects) == 0 {
			continue
		}
		if acts, err := reach.Acts(ctx, m.Live, m.Config, set.reach, reg); err != nil || !acts {
			errs = append(errs, err)
			continue
		}
		if wait := m.mayFollow(reg, set.created, objects); wait > 0 {
			again = pace.Sooner(again, wait)
			continue
		}
		if there, err := m.anyThere(ctx, reg, key.Name, objects); err != nil || !there {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, m.create(ctx, reg, key, set, gift{revision: set.newcomers}))
	}
	return again, errors.Join(errs...)
}

// forgets returns whether nobody else makes a set's delivery to a cluster again.
func (set *compiled) forgets(reg *hubv1.ClusterRegistration) bool {
	if set.leaving || set.held || set.selector == nil || set.newcomers == "" {
		return false
	}
	return status.Goes(reg) || !set.selector.Matches(reg)
}

// mayFollow returns how long the labels or the selector may still be missing by which a set delivered to a cluster; 0
// if that time is over.
func (m *Matcher) mayFollow(reg *hubv1.ClusterRegistration, set time.Time, objects []client.Object) time.Duration {
	since := reg.CreationTimestamp.Time
	if set.After(since) {
		since = set
	}
	after := func(o client.Object) bool { return !o.GetCreationTimestamp().Time.Before(since) }
	if status.Goes(reg) || drain.Requested(reg) || slices.ContainsFunc(objects, after) {
		return 0
	}
	return max(0, m.Config.TeardownGrace-m.Clock.Since(since))
}

// leftovers returns the Flux objects of a cluster whose delivery does not exist, by the delivery's name, as the cache
// has them. Usually there are none, and then nothing else is read.
func (m *Matcher) leftovers(ctx context.Context, reg *hubv1.ClusterRegistration,
	existing map[types.NamespacedName]*hubv1.AddonDelivery) (map[types.NamespacedName][]client.Object, error) {
	objects, err := index.FluxObjects(ctx, m.Client, identity.ClusterKey(m.Config.HubID, client.ObjectKeyFromObject(reg)))
	if err != nil {
		return nil, fmt.Errorf("look for what sets have left: %w", err)
	}
	there := make(map[types.NamespacedName]bool, len(existing))
	for _, d := range existing {
		there[client.ObjectKeyFromObject(d)] = true
	}
	left := map[types.NamespacedName][]client.Object{}
	for _, obj := range objects {
		delivery := types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetAnnotations()[hubv1.DeliveryAnnotation]}
		if !there[delivery] {
			left[delivery] = append(left[delivery], obj)
		}
	}
	return left, nil
}

// lookForFlux is after how long a set that is being deleted looks again whether Flux has removed what somebody has deleted: no event tells
// the set's room.
const lookForFlux = 10 * time.Second

// remains are what a set that is being deleted has on clusters without a delivery.
type remains struct {
	// recalled is true if deliveries were made again.
	recalled bool
	// uninstalling are Flux objects that somebody has deleted, and that Flux is at work on. The set has to stay until Flux is done:
	// if the cluster goes, or Flux gets no further, nobody else makes the delivery again.
	uninstalling []string
}

// waitedFor returns whether a registration that goes may wait for a delivery of a set that is being deleted: it has none, and Flux
// objects of the set are there. It asks the cache, since it asks often, and says more than recallAll finds.
func (r *Reconciler) waitedFor(ctx context.Context, set *hubv1.AddonSet, deliveries []hubv1.AddonDelivery) (bool, error) {
	regs := &hubv1.ClusterRegistrationList{}
	if err := r.Client.List(ctx, regs, client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("list the ClusterRegistrations: %w", err)
	}
	for i := range regs.Items {
		reg := &regs.Items[i]
		key := client.ObjectKeyFromObject(reg)
		has := func(d hubv1.AddonDelivery) bool { return d.Spec.RegistrationRef.Key() == key }
		if !status.Goes(reg) || slices.ContainsFunc(deliveries, has) {
			continue
		}
		objects, err := index.FluxObjects(ctx, r.Client, identity.ClusterKey(r.Config.HubID, key))
		if err != nil {
			return false, fmt.Errorf("look for what sets have left on %s: %w", key, err)
		}
		claims := func(o client.Object) bool {
			there := o.GetDeletionTimestamp() == nil || slices.Contains(o.GetFinalizers(), fluxstate.Finalizer)
			return there && o.GetNamespace() == set.Namespace && provenance.Claims(o, r.Config.HubID, set.Name, key)
		}
		if slices.ContainsFunc(objects, claims) {
			return true, nil
		}
	}
	return false, nil
}

// recallAll makes deliveries of a set that is being deleted again, if their Flux objects exist. Objects for a cluster that is not
// registered any more stay as they are. So do objects that claim to be for a cluster out of the set's reach: anybody who may write Flux
// objects in a namespace can claim that.
func (r *Reconciler) recallAll(ctx context.Context, set *hubv1.AddonSet, existing []hubv1.AddonDelivery) (out remains, err error) {
	if going, err := demise.Namespace(ctx, r.Live, set.Namespace); err != nil || going || set.Status.Revision == "" {
		return out, err
	}
	from, err := reach.Of(ctx, r.Client, r.Config, set.Namespace)
	if err != nil {
		return out, err
	}
	objects, err := r.leftOf(ctx, set)
	if err != nil {
		return out, err
	}
	there := map[types.NamespacedName]bool{}
	for i := range existing {
		there[existing[i].Spec.RegistrationRef.Key()] = true
	}
	clusters := map[types.NamespacedName]*hubv1.ClusterRegistration{}
	for _, obj := range objects {
		key := obj.cluster
		if there[key] {
			continue
		}
		if _, known := clusters[key]; !known {
			if clusters[key], err = r.readCluster(ctx, key, from); err != nil {
				return out, err
			}
		}
		again, waits, err := r.recallOne(ctx, set, obj.PartialObjectMetadata, clusters[key])
		if err != nil {
			return out, err
		}
		if waits {
			out.uninstalling = append(out.uninstalling, fmt.Sprintf("%s %s/%s", obj.Kind, obj.Namespace, obj.Name))
		}
		there[key], out.recalled = again, out.recalled || again
	}
	return out, nil
}

// leftover is a Flux object that claims to be of a set on a cluster.
type leftover struct {
	*metav1.PartialObjectMetadata
	cluster types.NamespacedName
}

// leftOf returns the Flux objects that claim to be of a set, read live.
func (r *Reconciler) leftOf(ctx context.Context, set *hubv1.AddonSet) ([]leftover, error) {
	var out []leftover
	for _, kind := range slices.Sorted(maps.Keys(fluxKinds)) {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(fluxKinds[kind].WithKind(kind + "List"))
		if err := r.Live.List(ctx, list, client.InNamespace(set.Namespace), setLabels(set.Name)); err != nil {
			return nil, fmt.Errorf("look for what the set has left: %w", err)
		}
		for i := range list.Items {
			obj := &list.Items[i]
			obj.Kind = kind
			cluster, ok := index.Registration(obj.Annotations[hubv1.RegistrationAnnotation])
			if ok && provenance.Claims(obj, r.Config.HubID, set.Name, cluster) {
				out = append(out, leftover{obj, cluster})
			}
		}
	}
	return out, nil
}

// readCluster returns a registration, read live; nil if there is none, or the hub does not act on it for a namespace.
func (r *Reconciler) readCluster(ctx context.Context, key types.NamespacedName, from match.Reach) (*hubv1.ClusterRegistration, error) {
	reg := &hubv1.ClusterRegistration{}
	if err := r.Live.Get(ctx, key, reg); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("read ClusterRegistration %s: %w", key, err)
	}
	if acts, err := reach.Acts(ctx, r.Live, r.Config, from, reg); err != nil || !acts {
		return nil, err
	}
	return reg, nil
}

// recallOne makes the delivery of a set to one cluster again, for a Flux object that claims to be of it. It returns whether
// it has, and otherwise whether Flux is still at work on the object.
func (r *Reconciler) recallOne(ctx context.Context, set *hubv1.AddonSet, obj *metav1.PartialObjectMetadata,
	reg *hubv1.ClusterRegistration) (again, waits bool, err error) {
	if reg == nil {
		return false, false, nil
	}
	if !r.stays(obj, reg, set.Name) {
		return false, slices.Contains(obj.Finalizers, fluxstate.Finalizer), nil
	}
	revision, err := r.remade(ctx, set)
	if err != nil {
		return false, false, err
	}
	return true, false, r.deliver(ctx, reg, client.ObjectKeyFromObject(set), set.UID, gift{revision: revision}, "")
}

// uninstalls returns how long Flux may still take to remove what somebody has deleted; 0 if there is nothing to wait for.
func (r *Reconciler) uninstalls(objects []client.Object) (wait time.Duration) {
	for _, obj := range objects {
		if at := obj.GetDeletionTimestamp(); at != nil && slices.Contains(obj.GetFinalizers(), fluxstate.Finalizer) {
			wait = pace.Sooner(wait, max(0, r.Config.TeardownGrace-r.Clock.Since(at.Time)))
		}
	}
	return wait
}

// stays returns whether a Flux object says that the hub made it for a set on a cluster, and cannot be removed without its
// delivery. What somebody has deleted, Flux removes. But the cluster may not answer, and after its registration nobody would
// let go what Flux tries in vain. Or the credentials were rotated, and nobody gives Flux the new ones: what it has not removed
// within --teardown-grace needs its delivery as well. What Flux has finished with goes without one: the delivery that let it go is
// through, and was to be made again for nothing.
func (r *Reconciler) stays(obj client.Object, reg *hubv1.ClusterRegistration, set string) bool {
	tries := slices.Contains(obj.GetFinalizers(), fluxstate.Finalizer)
	stuck := tries && (letsGo(reg) || status.Goes(reg) || r.uninstalls([]client.Object{obj}) == 0)
	return (obj.GetDeletionTimestamp() == nil || stuck) && provenance.Claims(obj, r.Config.HubID, set, client.ObjectKeyFromObject(reg))
}

// letsGo returns whether the add-ons of a cluster are let go. Then a Flux object that somebody has deleted needs its
// delivery as well: Flux never finishes with the Kustomization of a cluster that is gone unless the hub suspends it.
func letsGo(reg *hubv1.ClusterRegistration) bool {
	return hubv1.LetsGo(status.Reason(reg, hubv1.UnregisteringCondition))
}

// leaves returns whether a registration that goes leaves on the cluster what was delivered through it, counted by the guard or not. That is
// let go also if the cluster is registered again before it is done.
func leaves(reg *hubv1.ClusterRegistration) bool {
	return letsGo(reg) || status.Reason(reg, hubv1.UnregisteringCondition) == hubv1.OriginLostReason
}

// anyThere returns whether one of these Flux objects exists and is not being deleted. It reads live: objects that
// were withdrawn a moment ago may still be in the cache after their delivery has gone.
func (r *Reconciler) anyThere(ctx context.Context, reg *hubv1.ClusterRegistration, set string, objects []client.Object) (bool, error) {
	for _, obj := range objects {
		kind := fluxspec.KustomizationKind
		if _, ok := obj.(*helmv2.HelmRelease); ok {
			kind = fluxspec.HelmReleaseKind
		}
		live := &metav1.PartialObjectMetadata{}
		live.SetGroupVersionKind(fluxKinds[kind].WithKind(kind))
		err := r.Live.Get(ctx, client.ObjectKeyFromObject(obj), live)
		if client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("look for %s %s/%s: %w", kind, obj.GetNamespace(), obj.GetName(), err)
		}
		if err == nil && r.stays(live, reg, set) {
			return true, nil
		}
	}
	return false, nil
}
