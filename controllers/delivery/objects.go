// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"fmt"
	"strings"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/internal/assembly"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/fluxstate"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/internal/teardown"
)

func (r *Reconciler) gatherObjects(ctx context.Context, c *cluster) error {
	selector := client.MatchingFields{index.ClusterKey: identity.ClusterKey(r.Config.HubID, c.key)}
	releases := &helmv2.HelmReleaseList{}
	if err := r.Client.List(ctx, releases, selector, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the HelmReleases: %w", err)
	}
	for i := range releases.Items {
		r.observe(c, &releases.Items[i], fluxspec.HelmReleaseKind)
	}
	kustomizations := &kustomizev1.KustomizationList{}
	if err := r.Client.List(ctx, kustomizations, selector, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the Kustomizations: %w", err)
	}
	for i := range kustomizations.Items {
		r.observe(c, &kustomizations.Items[i], fluxspec.KustomizationKind)
	}
	return r.gatherForeign(ctx, c)
}

// gatherForeign finds the HelmReleases that people wrote for this cluster: those with the kubeconfig that it is registered
// with.
func (r *Reconciler) gatherForeign(ctx context.Context, c *cluster) error {
	if c.registration == nil || c.registration.Status.Credential == nil {
		return nil
	}
	list := &helmv2.HelmReleaseList{}
	secret := c.key.Namespace + "/" + c.registration.Status.Credential.SecretName
	if err := r.Client.List(ctx, list, client.MatchingFields{index.KubeConfigSecret: secret}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the HelmReleases of others: %w", err)
	}
	for i := range list.Items {
		hr := &list.Items[i]
		c.foreign = append(c.foreign, assembly.Foreign{Key: keyOf(hr, fluxspec.HelmReleaseKind), Release: releaseOf(hr)})
	}
	return nil
}

func keyOf(obj client.Object, kind string) plan.Key {
	return plan.Key{Kind: kind, Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// releaseOf returns the Helm release of a HelmRelease, as helm-controller names it; zero for a Kustomization.
func releaseOf(obj client.Object) hubv1.HelmReleaseIdentity {
	hr, ok := obj.(*helmv2.HelmRelease)
	if !ok {
		return hubv1.HelmReleaseIdentity{}
	}
	return hubv1.HelmReleaseIdentity{Name: hr.GetReleaseName(), Namespace: hr.GetReleaseNamespace(), StorageNamespace: hr.GetStorageNamespace()}
}

func (r *Reconciler) observe(c *cluster, obj client.Object, kind string) {
	a := obj.GetAnnotations()
	k := keyOf(obj, kind)
	o := &object{state: fluxstate.Of(obj), uid: obj.GetUID(), delivery: a[hubv1.DeliveryAnnotation], orphan: a[hubv1.DeletionPolicyAnnotation] == string(hubv1.DeletionPolicyOrphan)}
	o.kept, _ = render.ParseRelease(a[hubv1.ReleaseAnnotation])
	o.Observed = plan.Observed{
		Key: k, Addon: obj.GetLabels()[hubv1.AddonLabel], Set: obj.GetLabels()[hubv1.AddonSetLabel], Hash: a[hubv1.HashAnnotation], Labels: obj.GetLabels(),
		Generation: obj.GetGeneration(), Deleting: o.state.Deleting, Suspended: o.state.Suspended, Release: releaseOf(obj),
	}
	_, o.Held = a[hubv1.SuspendedAnnotation]
	o.Replaced = c.replaced(a[hubv1.ClusterUIDAnnotation])
	if d := a[hubv1.DependsOnAnnotation]; d != "" {
		o.DependsOn = strings.Split(d, ",")
	}
	if d := c.delivery(k.Namespace, o.delivery); d != nil {
		if s := d.addon(o.Addon); s != nil && s.Object == k.Name && s.Kind == kind {
			o.Applied = s.AppliedGeneration
		}
	}
	o.Applied = r.ledger.applied(k, obj.GetUID(), o.Applied)
	c.objects[k] = o
}

// planInput puts together what a plan is computed from.
func (c *cluster) planInput(now time.Time, config *hubconfig.Config) plan.Input {
	in := plan.Input{MayCreate: c.answered(), Frozen: map[plan.Key]bool{}}
	if s := c.suspended(); s != nil {
		in.Suspend = s.Message
	}
	for _, d := range c.deliveries {
		for i := range d.Wanted {
			w := &d.Wanted[i]
			in.Desired = append(in.Desired, plan.Desired{
				Key: assembly.Key(&w.Object), Addon: w.Addon, Hash: w.Hash, Labels: w.Labels, Release: w.Release,
				Recorded: w.DefaultRelease || d.recorded(w), Predecessors: w.Predecessors, Gate: w.Gate, Once: w.Once,
			})
		}
	}
	for k, o := range c.objects {
		in.Observed = append(in.Observed, o.Observed)
		d := c.delivery(k.Namespace, o.delivery)
		in.Frozen[k] = !o.Foreign && (d == nil || d.DeletionTimestamp == nil && d.holds(o.Addon))
	}
	in.Removal = func(o plan.Observed) teardown.Decision { return teardown.Addon(c.removal(o, now, config)) }
	return in
}

// recorded returns whether the status already says which release an add-on takes over.
func (d *delivery) recorded(w *assembly.Wanted) bool {
	s := d.addon(w.Addon)
	return s != nil && s.Release != nil && *s.Release == w.Release
}

// holds returns whether an add-on stays as it is, since nobody knows what it should be.
func (d *delivery) holds(addon string) bool {
	return assembly.Held(&assembly.Delivery{Result: d.result}, addon)
}

// removal gathers the facts by which an object leaves.
func (c *cluster) removal(o plan.Observed, now time.Time, config *hubconfig.Config) teardown.Facts {
	obj := c.objects[o.Key]
	f := teardown.Facts{
		RegistrationFound: c.registration != nil, Reachable: c.reachable(), Orphan: obj.orphan, Since: now, Now: now,
		Grace: config.TeardownGrace, Settle: config.RemovalDelay,
	}
	d := c.delivery(o.Key.Namespace, obj.delivery)
	if d != nil {
		f.Orphan = f.Orphan || d.set != nil && d.set.Spec.DeletionPolicy == hubv1.DeletionPolicyOrphan
		switch s := d.addon(o.Addon); {
		case d.DeletionTimestamp != nil:
			f.Since = d.DeletionTimestamp.Time
		case s != nil && s.State == hubv1.AddonRemoving && s.Since != nil:
			f.Since = s.Since.Time
		}
	}
	if reg := c.registration; reg != nil {
		f.Orphan = f.Orphan || reg.Spec.DeletionPolicy == hubv1.DeletionPolicyOrphan
		if s := c.suspended(); s != nil && reg.DeletionTimestamp == nil {
			f.Paused = s.Reason != hubv1.ClusterUnreachableReason
		}
		u := status.Find(reg, hubv1.UnregisteringCondition)
		f.OriginDeleted = u != nil && u.Reason == hubv1.OriginDeletedReason
	}
	return f
}
