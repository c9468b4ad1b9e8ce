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

// unreported returns the add-ons of which a delivery says that they are not on its cluster, or nothing, though their
// Flux objects are there: a hub that is killed between making one and saying so leaves a status that is behind. What
// is on its way out by a grant has been counted. What is said to be let go is counted as long as it is there: it may
// have been made again. It returns as well whether anything is there that is on its way out.
func (r *removals) unreported(d *hubv1.AddonDelivery, reported []string) (out []string, going bool) {
	made, going, err := r.made(d)
	r.failed = errors.Join(r.failed, err)
	slices.Sort(made)
	for _, addon := range made {
		goes := slices.ContainsFunc(d.Status.Addons, func(a hubv1.AddonStatus) bool {
			return a.Name == addon && a.State == hubv1.AddonRemoving
		})
		if is := r.named(addon); !goes && !slices.Contains(reported, is) {
			out = append(out, is)
		}
	}
	return out, going
}

// objectsOf returns the add-ons of a delivery whose Flux objects are there and are not being deleted, as the cache has
// them, and whether there are others that are.
func (r *Reconciler) objectsOf(ctx context.Context, d *hubv1.AddonDelivery) (made []string, going bool, err error) {
	reg := d.Spec.RegistrationRef.Key()
	objects, err := index.FluxObjects(ctx, r.Client, identity.ClusterKey(r.Config.HubID, reg), client.InNamespace(d.Namespace))
	if err != nil {
		return nil, false, fmt.Errorf("look for what delivery %s has made: %w", d.Name, err)
	}
	for _, o := range objects {
		addon := o.GetLabels()[hubv1.AddonLabel]
		switch {
		case o.GetAnnotations()[hubv1.DeliveryAnnotation] != d.Name || o.GetName() != identity.FluxObject(r.Config.HubID, reg, addon):
		case o.GetDeletionTimestamp() != nil:
			going = true
		default:
			made = append(made, addon)
		}
	}
	return made, going, nil
}
