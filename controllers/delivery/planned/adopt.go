// SPDX-License-Identifier: Apache-2.0

package planned

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/delivery/observed"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/internal/assembly"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/fluxstate"
	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/render/flux"
)

// adoptions returns the hand-written objects that add-ons take over. Each one that exists is planned for as if it
// were the hub's, and the add-on goes on with its Helm release.
func (r *Planner) adoptions(ctx context.Context, c *Cluster, d *Delivery, result *render.Result,
	in *render.Input) (map[plan.Key]*observed.Object, error) {
	adopted, again := map[plan.Key]*observed.Object{}, false
	for i := range result.Objects {
		o := &result.Objects[i]
		if o.Adopt == nil || c.Lives(d.Delivery, o.Addon) {
			continue
		}
		there, err := r.handWritten(ctx, c, o)
		if err != nil {
			if errs, ok := err.(compile.Error); ok { //nolint:errorlint // made by handWritten, never wrapped
				result.Failed[o.Addon] = render.Errors{errs}
				c.LookAgain(observed.RetryFailed) // no event tells that it has been mended: hand-written Kustomizations are not watched
				continue
			}
			return nil, fmt.Errorf("add-on %q: adopt: %w", o.Addon, err)
		}
		if there == nil {
			continue
		}
		k := observed.KeyOf(there, o.Kind)
		adopted[k] = r.byHand(d, o, there)
		if _, kept := in.Releases[o.Addon]; !kept {
			if release, ok := assembly.Adopted(o, there); ok {
				in.Releases[o.Addon], again = release, true
			}
		}
	}
	if !again {
		return adopted, nil
	}
	second, err := d.whole()
	if err != nil {
		return nil, err
	}
	for addon, errs := range result.Failed {
		second.Failed[addon] = errs
	}
	*result = *second
	return adopted, nil
}

// byHand returns what is planned with of a hand-written object that an add-on takes over.
func (r *Planner) byHand(d *Delivery, by *flux.Object, there client.Object) *observed.Object {
	state := fluxstate.Of(there)
	out := &observed.Object{
		State: state, UID: there.GetUID(), Version: there.GetResourceVersion(), Adopter: d.Namespace,
		Observed: plan.Observed{
			Key: observed.KeyOf(there, by.Kind), Addon: by.Addon, Foreign: true, Release: assembly.ReleaseOf(there),
			Generation: there.GetGeneration(), Deleting: there.GetDeletionTimestamp() != nil, Suspended: state.Suspended,
		},
	}
	if deleted := there.GetDeletionTimestamp(); deleted != nil {
		out.Deleted = deleted.Time
	}
	switch o := there.(type) {
	case *helmv2.HelmRelease:
		out.HelmChart = o.Status.HelmChart
		if latest := o.Status.History.Latest(); latest != nil {
			out.Installed = latest.ChartName
		}
	case *kustomizev1.Kustomization:
		out.Applies(o, r.Reader.Sightings.Succeeded(o))
	}
	return out
}

// handWritten returns the object that an add-on adopts, and nil if it does not exist. It must be for this cluster. If
// the hub took over another cluster's object, that cluster would lose its add-on, and this one would seem to have it.
func (r *Planner) handWritten(ctx context.Context, c *Cluster, o *flux.Object) (client.Object, error) {
	obj := observed.NewObject(plan.Key{Kind: o.Kind})
	name := types.NamespacedName{Namespace: o.Adopt.Namespace, Name: o.Adopt.Name}
	if !assembly.Adopts(o) || c.Registration.Status.Credential == nil { // nothing is made before the cluster has answered
		return nil, nil
	}
	if err := r.Live.Get(ctx, name, obj); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("read %s %s: %w", o.Kind, name, err)
	}
	if err := assembly.RefuseAdoption(o, obj, c.Unprobed()); err != nil {
		return nil, err
	}
	refuse := func(format string, args ...any) error { return assembly.NotAdopted(o, format, args...) }
	if why := cmp.Or(r.refuseRelease(c, o, obj), refuseUnapplied(o, obj)); why != "" {
		return nil, refuse("%s", why)
	}
	ref := assembly.LoginOf(obj)
	if what := validation.IsDNS1123Subdomain(ref.Name); len(what) > 0 { // a client refuses to ask for such a name
		return nil, refuse("has spec.kubeConfig.secretRef.name %q, which no Secret can be called (%s): correct it there, or drop adopt here",
			ref.Name, what[0])
	}
	secret := &corev1.Secret{}
	if err := r.Live.Get(ctx, types.NamespacedName{Namespace: name.Namespace, Name: ref.Name}, secret); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, refuse("has its kubeconfig from Secret %q, which does not exist: the hub cannot tell which cluster it is for", ref.Name)
		}
		return nil, fmt.Errorf("read the kubeconfig of %s %s: %w", o.Kind, name, err)
	}
	key := kubeconfig.FluxKey(secret.Data, ref.Key)
	config, err := kubeconfig.Parse(secret.Data[key], r.Config.RulesFor(c.Registration))
	if err != nil {
		return nil, refuse("has a kubeconfig (Secret %q, key %q) that is refused: which cluster it is for cannot be told", ref.Name, key)
	}
	if credential := c.Registration.Status.Credential; credential == nil || config.TargetFingerprint() != credential.TargetFingerprint {
		return nil, refuse("is for another cluster: its kubeconfig (Secret %q, key %q) names another API server or CA", ref.Name, key)
	}
	if why := refuseSuspended(obj); why != "" {
		return nil, refuse("%s", why)
	}
	return obj, nil
}

// refuseRelease returns why an add-on may not go on with the Helm release that a hand-written HelmRelease asks for; "" if it
// may. Its author chooses the release, and may not choose one that the hub delivers already: its own add-on
// would lose it to another chart. A tenant's add-on keeps none from the platform, which wins anyway.
func (r *Planner) refuseRelease(c *Cluster, o *flux.Object, obj client.Object) string {
	if as := index.InstalledAs(obj); as != (hubv1.HelmReleaseIdentity{}) { // which would be left behind, and no status would say so
		return fmt.Sprintf("asks for another Helm release than Flux still has installed for it, %q in namespace %q: it is taken over when "+
			"Flux has moved that", as.Name, as.Namespace)
	}
	release := assembly.ReleaseOf(obj)
	for _, l := range c.live() {
		tenants := r.Config.IsPlatform(o.Namespace) && !r.Config.IsPlatform(l.Key.Namespace)
		if l.Release.Name == "" || l.Release.Name != release.Name || l.Release.StorageNamespace != release.StorageNamespace || tenants ||
			c.Scope(l.Key.Namespace) != c.Scope(o.Namespace) || assembly.MovesFrom(o, &l) || c.Objects[l.Key].Foreign {
			continue
		}
		return fmt.Sprintf("asks for Helm release %q in namespace %q, which add-on %q of AddonSet %s/%s delivers here", release.Name,
			release.StorageNamespace, l.Addon, l.Key.Namespace, l.Set)
	}
	return ""
}

// refuseSuspended returns why an add-on may not go on with what a user has suspended, since the add-on is not; "" if none has. What the
// hub has suspended itself, to take it over, says so.
func refuseSuspended(obj client.Object) string {
	ours := obj.GetAnnotations()[hubv1.SuspendedAnnotation] == hubv1.TakenOverSuspension
	if !fluxstate.Of(obj).Suspended || obj.GetDeletionTimestamp() != nil || ours {
		return ""
	}
	return "is suspended, and an add-on is not: resume it, and the add-on takes it over"
}

// refuseUnapplied returns why an add-on of another namespace may not go on yet with what a hand-written Kustomization has applied; "" if
// it may. If the Kustomization has changed since Flux applied it, it may have had another folder before. When Flux applies the new
// folder, it prunes what only the former one has, and nothing else would prune that. A Kustomization that the hub has suspended or that
// is being deleted is not refused: its generation has changed by that alone, so it does not show whether the folder has.
func refuseUnapplied(by *flux.Object, obj client.Object) string {
	k, ok := obj.(*kustomizev1.Kustomization)
	if !ok || by.Namespace == obj.GetNamespace() || k.Spec.Suspend || k.DeletionTimestamp != nil || k.Status.Inventory == nil ||
		len(k.Status.Inventory.Entries) == 0 || observed.SaysSucceeded(k) >= k.Generation {
		return ""
	}
	return "has changed since Flux applied it: it is taken over when Flux has applied that"
}

// adopting returns whether an add-on is still to take over what it adopts.
func (c *Cluster) adopting(d *Delivery, result *render.Result) bool {
	return slices.ContainsFunc(result.Objects, func(o flux.Object) bool { return o.Adopt != nil && !c.Lives(d.Delivery, o.Addon) })
}
