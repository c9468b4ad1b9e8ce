// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"fmt"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/status"
)

// workload is what a Flux object looks after on its cluster: a Helm release; or what a Kustomization of an add-on applies.
type workload struct {
	Name, StorageNamespace string
	Addon                  string
}

func workloadOf(obj client.Object) workload {
	if r := releaseOf(obj); r != (hubv1.HelmReleaseIdentity{}) {
		return workload{Name: r.Name, StorageNamespace: r.StorageNamespace}
	}
	return workload{Addon: obj.GetLabels()[hubv1.AddonLabel]}
}

// elsewhere is a look at the other registrations of a cluster: for what leaves, and what the Kustomizations of that apply, as far as it was asked for.
type elsewhere struct {
	cluster *cluster
	leavers []*object
	mine    map[plan.Key]*kustomizev1.KustomizationSpec
}

// gatherElsewhere finds what other registrations of the same cluster deliver to it: it would be taken from them if it were uninstalled here. That
// it is the same cluster, the cluster says itself; one that lies gains that what leaves another cluster is left there, and told of. What a
// registration that is going has, and what is on its way out there as well, does not count: of two that let go of the same at once, the
// second one uninstalls it.
func (r *Reconciler) gatherElsewhere(ctx context.Context, c *cluster) error {
	e := &elsewhere{cluster: c, leavers: c.leavers(), mine: map[plan.Key]*kustomizev1.KustomizationSpec{}}
	if c.registration == nil || c.registration.Status.ClusterID() == "" || len(e.leavers) == 0 {
		return nil // most clusters lose nothing most of the time, and many may have one UID
	}
	list := &hubv1.ClusterRegistrationList{}
	if err := r.Client.List(ctx, list, client.MatchingFields{index.ClusterID: c.registration.Status.ClusterID()}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("look for other registrations of the cluster: %w", err)
	}
	for i := range list.Items {
		other := &list.Items[i]
		if other.UID == c.registration.UID || status.Goes(other) {
			continue
		}
		if err := r.servedBy(ctx, e, other); err != nil {
			return err
		}
	}
	return nil
}

// servedBy notes what one other registration delivers.
func (r *Reconciler) servedBy(ctx context.Context, e *elsewhere, other *hubv1.ClusterRegistration) error {
	k := client.ObjectKeyFromObject(other)
	deliveries := &hubv1.AddonDeliveryList{}
	if err := r.Client.List(ctx, deliveries, client.MatchingFields{index.DeliveryRegistration: k.String()}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the deliveries of ClusterRegistration %s: %w", k, err)
	}
	by := map[types.NamespacedName]*hubv1.AddonDelivery{}
	for i := range deliveries.Items {
		by[client.ObjectKeyFromObject(&deliveries.Items[i])] = &deliveries.Items[i]
	}
	objects, err := index.FluxObjects(ctx, r.Client, identity.ClusterKey(r.Config.HubID, k))
	if err != nil {
		return fmt.Errorf("look for what ClusterRegistration %s has: %w", k, err)
	}
	for _, obj := range objects {
		d := by[types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetAnnotations()[hubv1.DeliveryAnnotation]}]
		if d == nil || !stays(d, obj) {
			continue
		}
		if kustomization, ok := obj.(*kustomizev1.Kustomization); ok {
			if same, err := r.sameContent(ctx, e, kustomization); err != nil {
				return err
			} else if !same {
				continue
			}
		}
		if e.cluster.elsewhere == nil {
			e.cluster.elsewhere = map[workload]string{}
		}
		e.cluster.elsewhere[workloadOf(obj)] = k.String()
	}
	return nil
}

// leavers are the Flux objects that nobody wants on the cluster any more.
func (c *cluster) leavers() []*object {
	var out []*object
	for k, o := range c.objects {
		if _, wanted := c.wanted(k); wanted == nil && !o.Foreign {
			out = append(out, o)
		}
	}
	return out
}

// sameContent returns whether a Kustomization of another registration applies what one applies that leaves here. Two add-ons of one name do not
// if their specs differ: substitution alone makes other objects of them. It reads live: the cache keeps no such specs.
func (r *Reconciler) sameContent(ctx context.Context, e *elsewhere, other *kustomizev1.Kustomization) (bool, error) {
	var theirs *kustomizev1.KustomizationSpec
	for _, o := range e.leavers {
		if o.Key.Kind != fluxspec.KustomizationKind || o.workload != workloadOf(other) {
			continue
		}
		mine, known := e.mine[o.Key]
		var err error
		if !known {
			if mine, err = r.content(ctx, client.ObjectKey{Namespace: o.Key.Namespace, Name: o.Key.Name}); err != nil {
				return false, err
			}
			e.mine[o.Key] = mine
		}
		if theirs == nil {
			if theirs, err = r.content(ctx, client.ObjectKeyFromObject(other)); err != nil || theirs == nil {
				return false, err
			}
		}
		if mine != nil && equality.Semantic.DeepEqual(mine, theirs) {
			return true, nil
		}
	}
	return false, nil
}

// content reads what a Kustomization's spec says of what is applied; nil if it is not there.
func (r *Reconciler) content(ctx context.Context, k client.ObjectKey) (*kustomizev1.KustomizationSpec, error) {
	there := &kustomizev1.Kustomization{}
	if err := r.Live.Get(ctx, k, there); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("read Kustomization %s: %w", k, err)
	}
	spec := &there.Spec
	if spec.SourceRef.Namespace == "" {
		spec.SourceRef.Namespace = there.Namespace
	}
	spec.KubeConfig, spec.Suspend, spec.DependsOn = nil, false, nil
	return spec, nil
}

// stays returns whether a delivery goes on with an object.
func stays(d *hubv1.AddonDelivery, obj client.Object) bool {
	if d.Withdrawn() || obj.GetDeletionTimestamp() != nil {
		return false
	}
	for _, a := range d.Status.Addons {
		if a.Object == obj.GetName() && a.Name == obj.GetLabels()[hubv1.AddonLabel] {
			return a.State != hubv1.AddonRemoving && a.State != hubv1.AddonOrphaned
		}
	}
	return false
}
