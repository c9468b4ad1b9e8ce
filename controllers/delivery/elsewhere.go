// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"fmt"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/identity"
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

// gatherElsewhere finds what other registrations of the same cluster deliver to it: it would be taken from them if it were uninstalled here. That
// it is the same cluster, the cluster says itself; one that lies gains that what leaves another cluster is left there, and told of. What a
// registration that is going has, and what is on its way out there as well, does not count: of two that let go of the same at once, the
// second one uninstalls it.
func (r *Reconciler) gatherElsewhere(ctx context.Context, c *cluster) error {
	if c.registration == nil || c.registration.Status.ClusterID() == "" || len(c.leavers()) == 0 {
		return nil // most clusters lose nothing most of the time, and many may have one UID
	}
	list := &hubv1.ClusterRegistrationList{}
	if err := r.Client.List(ctx, list, client.MatchingFields{index.ClusterID: c.registration.Status.ClusterID()}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("look for other registrations of the cluster: %w", err)
	}
	for i := range list.Items {
		other := &list.Items[i]
		if other.UID == c.registration.UID || other.DeletionTimestamp != nil {
			continue
		}
		if err := r.servedBy(ctx, c, other); err != nil {
			return err
		}
	}
	return nil
}

// servedBy notes what one other registration delivers.
func (r *Reconciler) servedBy(ctx context.Context, c *cluster, other *hubv1.ClusterRegistration) error {
	k := client.ObjectKeyFromObject(other)
	deliveries := &hubv1.AddonDeliveryList{}
	if err := r.Client.List(ctx, deliveries, client.MatchingFields{index.DeliveryRegistration: k.String()}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the deliveries of ClusterRegistration %s: %w", k, err)
	}
	by := map[types.NamespacedName]*hubv1.AddonDelivery{}
	for i := range deliveries.Items {
		by[client.ObjectKeyFromObject(&deliveries.Items[i])] = &deliveries.Items[i]
	}
	note := func(obj client.Object) {
		d := by[types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetAnnotations()[hubv1.DeliveryAnnotation]}]
		if d == nil || !stays(d, obj) {
			return
		}
		if c.elsewhere == nil {
			c.elsewhere = map[workload]string{}
		}
		c.elsewhere[workloadOf(obj)] = k.String()
	}
	of := client.MatchingFields{index.ClusterKey: identity.ClusterKey(r.Config.HubID, k)}
	releases, kustomizations := &helmv2.HelmReleaseList{}, &kustomizev1.KustomizationList{}
	if err := r.Client.List(ctx, releases, of, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the HelmReleases of ClusterRegistration %s: %w", k, err)
	}
	if err := r.Client.List(ctx, kustomizations, of, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the Kustomizations of ClusterRegistration %s: %w", k, err)
	}
	for i := range releases.Items {
		note(&releases.Items[i])
	}
	for i := range kustomizations.Items {
		same, err := r.sameContent(ctx, c, &kustomizations.Items[i])
		if err != nil {
			return err
		}
		if same {
			note(&kustomizations.Items[i])
		}
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
func (r *Reconciler) sameContent(ctx context.Context, c *cluster, other *kustomizev1.Kustomization) (bool, error) {
	for _, o := range c.leavers() {
		if o.Key.Kind != fluxspec.KustomizationKind || o.workload != workloadOf(other) {
			continue
		}
		mine, theirs := &kustomizev1.Kustomization{}, &kustomizev1.Kustomization{}
		for key, into := range map[client.ObjectKey]*kustomizev1.Kustomization{{Namespace: o.Key.Namespace, Name: o.Key.Name}: mine, client.ObjectKeyFromObject(other): theirs} {
			if err := r.Live.Get(ctx, key, into); apierrors.IsNotFound(err) {
				return false, nil
			} else if err != nil {
				return false, fmt.Errorf("read Kustomization %s: %w", key, err)
			}
		}
		if equality.Semantic.DeepEqual(content(mine), content(theirs)) {
			return true, nil
		}
	}
	return false, nil
}

// content is what a Kustomization's spec says of what is applied.
func content(k *kustomizev1.Kustomization) kustomizev1.KustomizationSpec {
	spec := *k.Spec.DeepCopy()
	if spec.SourceRef.Namespace == "" {
		spec.SourceRef.Namespace = k.Namespace
	}
	spec.KubeConfig, spec.Suspend, spec.DependsOn = nil, false, nil
	return spec
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
