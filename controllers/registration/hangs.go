// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"fmt"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/enqueue"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/internal/breaker"
	"github.com/chandler-hub/chandler/internal/fluxstate"
	"github.com/chandler-hub/chandler/internal/identity"
)

// hangs fills in since when Flux has waited for a first answer of a cluster, from the objects and deliveries in the cache.
func (r *Reconciler) hangs(ctx context.Context, reg *hubv1.ClusterRegistration, facts *breaker.Facts) error {
	open := facts.Open == hubv1.FluxHangsReason
	objects, err := index.FluxObjects(ctx, r.Client, identity.ClusterKey(r.Config.HubID, client.ObjectKeyFromObject(reg)))
	if err != nil {
		return err
	}
	var states map[[3]string]time.Time // since when each add-on is in its state
	for _, obj := range objects {
		since := fluxstate.Waiting(obj, !open)
		if since.IsZero() || !obj.GetDeletionTimestamp().IsZero() {
			continue
		}
		if states == nil && !open {
			if states, err = r.addonsSince(ctx, reg); err != nil {
				return err
			}
		}
		// Flux does not renew the time if it says the same after it was resumed.
		if at := states[addonKey(obj)]; at.After(since) {
			since = at
		}
		if facts.Waiting.IsZero() || since.Before(facts.Waiting) {
			facts.Waiting = since
		}
	}
	if !open && !facts.Waiting.IsZero() && facts.Now.Sub(facts.Waiting) >= breaker.HangsAfter {
		return r.hanging(ctx, facts)
	}
	return nil
}

// addonKey names an add-on by its Flux object.
func addonKey(obj client.Object) [3]string {
	kind := "HelmRelease"
	if _, ok := obj.(*kustomizev1.Kustomization); ok {
		kind = "Kustomization"
	}
	return [3]string{kind, obj.GetNamespace(), obj.GetName()}
}

func (r *Reconciler) addonsSince(ctx context.Context, reg *hubv1.ClusterRegistration) (map[[3]string]time.Time, error) {
	list := &hubv1.AddonDeliveryList{}
	if err := r.Client.List(ctx, list, index.DeliveriesOf(client.ObjectKeyFromObject(reg)), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the deliveries of a cluster that Flux waits for: %w", err)
	}
	out := map[[3]string]time.Time{}
	for i := range list.Items {
		for _, a := range list.Items[i].Status.Addons {
			if a.Since != nil {
				out[[3]string{a.Kind, list.Items[i].Namespace, a.Object}] = a.Since.Time
			}
		}
	}
	return out, nil
}

// hanging counts the clusters that Flux has waited for too long.
func (r *Reconciler) hanging(ctx context.Context, facts *breaker.Facts) error {
	clusters, err := r.waitedFor(ctx, facts.Now)
	if err != nil {
		return err
	}
	all := &hubv1.ClusterRegistrationList{}
	if err := r.Client.List(ctx, all, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("count the clusters: %w", err)
	}
	facts.Hanging = breaker.Fleet{Probed: len(all.Items), Failed: len(clusters)}
	return nil
}

// waitedFor returns the registrations of the clusters that Flux has waited for too long, and that are not suspended.
func (r *Reconciler) waitedFor(ctx context.Context, now time.Time) (map[types.NamespacedName]bool, error) {
	releases, kustomizations := &helmv2.HelmReleaseList{}, &kustomizev1.KustomizationList{}
	waits := client.MatchingFields{index.FluxWaits: index.Waits}
	if err := r.Client.List(ctx, releases, waits, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("look which HelmReleases Flux hangs on: %w", err)
	}
	if err := r.Client.List(ctx, kustomizations, waits, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("look which Kustomizations Flux hangs on: %w", err)
	}
	out := map[types.NamespacedName]bool{}
	look := func(obj client.Object, suspended bool) {
		if since := fluxstate.Waiting(obj, true); !suspended && !since.IsZero() && now.Sub(since) >= breaker.HangsAfter {
			for _, request := range enqueue.RegistrationOfObject(ctx, obj) {
				out[request.NamespacedName] = true
			}
		}
	}
	for i := range releases.Items {
		look(&releases.Items[i], releases.Items[i].Spec.Suspend)
	}
	for i := range kustomizations.Items {
		look(&kustomizations.Items[i], kustomizations.Items[i].Spec.Suspend)
	}
	return out, nil
}

// watchFlux wakes the registrations of the clusters that Flux hangs on, once a minute: no event tells that nothing has happened.
func (r *Reconciler) watchFlux(ctx context.Context, news *enqueue.Bell) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Minute):
		}
		clusters, err := r.waitedFor(ctx, r.Clock.Now())
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "look what Flux hangs on")
		}
		for key := range clusters {
			reg := &hubv1.ClusterRegistration{}
			reg.Namespace, reg.Name = key.Namespace, key.Name
			news.Ring(ctx, reg)
		}
	}
}
