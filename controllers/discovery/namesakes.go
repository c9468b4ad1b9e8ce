// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/controllers/reach"
	"github.com/chandler-hub/chandler/internal/match"
	"github.com/chandler-hub/chandler/internal/origin"
	"github.com/chandler-hub/chandler/internal/provenance"
)

// Deliveries outlive a registration that somebody has deleted and that is about to be made again. In between, nobody
// whose origin may be registered under the same name may get those deliveries: neither an origin with the other one's
// name, nor one with that name and its kind.

// unregisterAgain makes the registration of an origin that says it wants none, if deliveries of that registration
// exist: nobody else would withdraw them. Somebody deleted the registration while it was wanted, so it was released
// to be made again, and the label changed before that. An origin without a label may never have had that
// registration: somebody may have written it by hand, and absence removes nothing. An origin that is being deleted has
// no registration made: what was delivered stays, and the deliveries say so.
func (r *Reconciler) unregisterAgain(ctx context.Context, req Request, obj *unstructured.Unstructured, verdict origin.Verdict) error {
	if !verdict.AtOnce || obj.GetDeletionTimestamp() != nil {
		return nil
	}
	if there, err := r.delivered(ctx, req.NamespacedName); err != nil || !there {
		return err
	}
	if err := r.Live.Get(ctx, req.NamespacedName, &hubv1.ClusterRegistration{}); !apierrors.IsNotFound(err) {
		return client.IgnoreNotFound(err) // it is there, or another origin has its name
	}
	if others, err := r.rivals(ctx, req, req.Name); err != nil || len(others) > 0 {
		return err
	}
	if may, err := r.Origins.MayRegister(ctx, req.Kind, obj); err != nil || !may {
		return err
	}
	return r.ensure(ctx, req, obj, nil)
}

// delivered returns whether a delivery of a registration exists. Writing one beside an origin does not register
// anything: its author cannot write its status, so that names no add-ons.
func (r *Reconciler) delivered(ctx context.Context, reg types.NamespacedName) (bool, error) {
	list := &hubv1.AddonDeliveryList{}
	if err := r.Client.List(ctx, list, index.DeliveriesOf(reg), client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("list the deliveries: %w", err)
	}
	for i := range list.Items {
		d := &list.Items[i]
		from, err := reach.Of(ctx, r.Client, r.Config, d.Namespace)
		if err != nil {
			return false, err
		}
		reaches := from.To(match.Missing(reg)) || provenance.Reported(d, from)
		if !provenance.Named(d) || !reaches || !from.Platform && len(d.Status.Addons) == 0 {
			continue // the hub did not make it, or has done nothing for it yet
		}
		// Live: when a cluster has been unregistered, its registration goes right after its last delivery.
		if err := r.Live.Get(ctx, client.ObjectKeyFromObject(d), &hubv1.AddonDelivery{}); err == nil {
			return true, nil
		} else if !apierrors.IsNotFound(err) {
			return false, fmt.Errorf("look for delivery %s: %w", d.Name, err)
		}
	}
	return false, nil
}

// spokenFor returns whether the name of a registration that does not exist belongs to another origin: deliveries of
// that name exist, and an older origin may have had it.
func (r *Reconciler) spokenFor(ctx context.Context, req Request, obj *unstructured.Unstructured, name string) (bool, error) {
	if there, err := r.delivered(ctx, types.NamespacedName{Namespace: req.Namespace, Name: name}); err != nil || !there {
		return false, err
	}
	others, err := r.rivals(ctx, req, name)
	for _, other := range others {
		created, mine := other.GetCreationTimestamp(), obj.GetCreationTimestamp()
		if created.Before(&mine) {
			return true, err
		}
	}
	return false, err
}

// rivals returns the other origins that ask to be registered and may be about to be registered under a name: it is
// their name, alone or with their kind, and they have no registration of another name.
func (r *Reconciler) rivals(ctx context.Context, req Request, name string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, first := range firstNames(name) {
		key := types.NamespacedName{Namespace: req.Namespace, Name: first}
		kinds, err := r.Origins.Asking(ctx, key)
		if err != nil {
			return nil, err
		}
		for _, kind := range kinds {
			other := Request{Kind: kind, NamespacedName: key}
			if other == req || first != name && secondName(other) != name {
				continue
			}
			obj, err := r.rival(ctx, other, name)
			if err != nil {
				return nil, err
			}
			if obj != nil {
				out = append(out, obj)
			}
		}
	}
	return out, nil
}

// rival returns an origin, unless it does not exist or has a registration of another name: then it returns nil.
func (r *Reconciler) rival(ctx context.Context, req Request, name string) (*unstructured.Unstructured, error) {
	reg, err := r.find(ctx, req)
	if err != nil || reg != nil && reg.Name != name {
		return nil, err
	}
	obj, _, err := r.Origins.Get(ctx, req.Kind, req.NamespacedName)
	return obj, err
}

// firstNames returns the names of the origins that may be registered under a name: alone, or with their kind.
func firstNames(name string) []string {
	names := []string{name}
	for _, kind := range origin.Kinds {
		if first, ok := strings.CutSuffix(name, suffix(kind)); ok && first != "" {
			names = append(names, first)
		}
	}
	return names
}

// secondName is the name by which an origin is registered if another one has its own.
func secondName(req Request) string { return req.Name + suffix(req.Kind) }

func suffix(kind origin.Kind) string { return "-" + strings.ToLower(kind.Kind) }
