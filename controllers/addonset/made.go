// SPDX-License-Identifier: Apache-2.0

package addonset

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/internal/identity"
)

// unreported returns the add-ons that a delivery reports as absent from its cluster, or does not report, although
// their Flux objects exist: a hub that dies between making an object and reporting it leaves a stale status. An
// add-on that leaves by a grant has been counted. An add-on that is reported as orphaned is counted while its object
// exists, since it may have been made again. It also returns whether any object is being deleted.
func (r *removals) unreported(d *hubv1.AddonDelivery, reported []string) (out []string, going bool) {
	made, going, err := r.made(d)
	r.failed = errors.Join(r.failed, err)
	slices.Sort(made)
	for _, addon := range made {
		goes := slices.ContainsFunc(d.Status.Addons, func(a hubv1.AddonStatus) bool {
			return a.Name == addon && a.State == hubv1.AddonRemoving
		})
		if !goes && !slices.Contains(reported, addon) {
			out = append(out, addon)
		}
	}
	return out, going
}

// objectsOf returns the add-ons of a delivery whose Flux objects exist in the cache and are not being deleted, and
// whether any are being deleted.
func (r *Reconciler) objectsOf(ctx context.Context, d *hubv1.AddonDelivery) (made []string, going bool, err error) {
	reg := d.Spec.RegistrationRef.Key()
	objects, err := index.FluxObjects(ctx, r.Client, identity.ClusterKey(r.Config.HubID, reg), client.InNamespace(d.Namespace))
	if err != nil {
		return nil, false, fmt.Errorf("look for what delivery %s has made: %w", d.Name, err)
	}
	for _, o := range objects {
		addon := o.GetLabels()[hubv1.AddonLabel]
		switch {
		case o.GetAnnotations()[hubv1.DeliveryAnnotation] != d.Name:
		case o.GetDeletionTimestamp() != nil:
			going = true
		default:
			made = append(made, addon)
		}
	}
	return made, going, nil
}
