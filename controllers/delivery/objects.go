// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/controllers/tenure"
	"github.com/chandler-hub/chandler/internal/assembly"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/drain"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/fluxstate"
	"github.com/chandler-hub/chandler/internal/guard"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/report"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/internal/teardown"
)

func (r *Reconciler) gatherObjects(ctx context.Context, c *cluster) error {
	objects, err := index.FluxObjects(ctx, r.Client, identity.ClusterKey(r.Config.HubID, c.key))
	if err != nil {
		return err
	}
	for _, obj := range objects {
		ours, err := r.ours(ctx, c, obj)
		if err != nil {
			return err
		}
		if !ours {
			continue
		}
		hr, ok := obj.(*helmv2.HelmRelease)
		if !ok {
			r.observe(c, obj, fluxspec.KustomizationKind)
			continue
		}
		o := r.observe(c, hr, fluxspec.HelmReleaseKind)
		if latest := hr.Status.History.Latest(); latest != nil {
			o.Installed = latest.ChartName
		}
		if o.Chart, err = r.chartOf(ctx, hr); err != nil {
			return err
		}
	}
	return r.gatherForeign(ctx, c)
}

// gatherForeign finds the HelmReleases that people wrote for this cluster: those with the kubeconfig that it is registered
// with.
func (r *Reconciler) gatherForeign(ctx context.Context, c *cluster) error {
	if c.registration == nil || c.registration.Status.Credential == nil || c.unprobed() {
		return nil
	}
	list := &helmv2.HelmReleaseList{}
	secret := c.key.Namespace + "/" + c.registration.Status.Credential.SecretName
	if err := r.Client.List(ctx, list, client.MatchingFields{index.KubeConfigSecret: secret}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the HelmReleases of others: %w", err)
	}
	for i := range list.Items {
		hr := &list.Items[i]
		c.foreign = append(c.foreign, assembly.Foreign{Key: keyOf(hr, fluxspec.HelmReleaseKind), Release: assembly.ReleaseOf(hr)})
	}
	return nil
}

func keyOf(obj client.Object, kind string) plan.Key {
	return plan.Key{Kind: kind, Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// applies notes what a Kustomization applies, and where. done is the last generation that Flux has applied with success.
func (o *object) applies(k *kustomizev1.Kustomization, done int64) {
	o.Content = assembly.ContentOf(k)
	o.Mark = k.Annotations[hubv1.AppliedAsAnnotation]
	o.AppliedAs = plan.ReadMark(o.Mark, done)
}

// accountOf returns the ServiceAccount that Flux acts as on the cluster.
func accountOf(obj client.Object) string {
	switch o := obj.(type) {
	case *kustomizev1.Kustomization:
		return o.Spec.ServiceAccountName
	case *helmv2.HelmRelease:
		return o.Spec.ServiceAccountName
	}
	return ""
}

func (r *Reconciler) observe(c *cluster, obj client.Object, kind string) *object {
	a := obj.GetAnnotations()
	k, is := keyOf(obj, kind), assembly.LiveOf(obj)
	o := &object{state: r.sightings.settled(obj.GetUID(), fluxstate.Of(obj)), uid: obj.GetUID(), version: obj.GetResourceVersion(),
		uses: index.UsesOf(obj), reads: index.ReadsOf(obj), delivery: is.Delivery, kept: is.Kept,
		orphan: a[hubv1.DeletionPolicyAnnotation] == string(hubv1.DeletionPolicyOrphan)}
	if d := obj.GetDeletionTimestamp(); d != nil {
		o.deleted = d.Time
	}
	o.account = accountOf(obj)
	o.Observed = plan.Observed{
		Key: k, Addon: is.Addon, Set: is.Set, Hash: is.Hash, Labels: obj.GetLabels(),
		Generation: obj.GetGeneration(), Deleting: o.state.Deleting, Suspended: o.state.Suspended, Release: is.Release,
		InstalledAs: index.InstalledAs(obj),
	}
	if kustomization, ok := obj.(*kustomizev1.Kustomization); ok {
		o.applies(kustomization, r.sightings.succeeded(kustomization))
	}
	_, annotated := a[hubv1.SuspendedAnnotation]
	o.Held = annotated && o.Suspended // there is nothing to resume otherwise, whatever wrote that
	o.Replaced = c.replaced(a[hubv1.ClusterUIDAnnotation])
	o.DependsOn = render.ParseDependsOn(a[hubv1.DependsOnAnnotation])
	if d := c.delivery(k.Namespace, o.delivery); d != nil {
		if s := d.addon(o.Addon); s != nil && s.Object == k.Name && s.Kind == kind {
			o.Applied = s.AppliedGeneration
		}
	}
	o.Applied = r.ledger.applied(k, obj.GetUID(), obj.GetGeneration(), o.Applied)
	c.objects[k] = o
	return o
}

// chartOf returns the name of the chart that one of the hub's HelmReleases asks for, from the HelmChart that the hub
// made of its template, or the hub's own chart; "" if it refers to something else.
func (r *Reconciler) chartOf(ctx context.Context, hr *helmv2.HelmRelease) (string, error) {
	ref := hr.Spec.ChartRef
	if ref == nil {
		return "", nil
	}
	key := types.NamespacedName{Namespace: cmp.Or(ref.Namespace, hr.Namespace), Name: ref.Name}
	switch ref.Kind {
	case sourcev1.OCIRepositoryKind:
		return r.ownChart(ctx, key)
	case sourcev1.HelmChartKind:
	default:
		return "", nil
	}
	chart := &sourcev1.HelmChart{}
	if err := r.Client.Get(ctx, key, chart, client.UnsafeDisableDeepCopy); err != nil {
		return "", client.IgnoreNotFound(err)
	}
	if chart.Spec.SourceRef.Kind != sourcev1.HelmRepositoryKind {
		return "", nil
	}
	return path.Base(chart.Spec.Chart), nil
}

// ownChart returns the name of the hub's own chart if a source is of it, in whatever version; "" if not.
func (r *Reconciler) ownChart(ctx context.Context, key types.NamespacedName) (string, error) {
	source := &sourcev1.OCIRepository{}
	if err := r.Client.Get(ctx, key, source, client.UnsafeDisableDeepCopy); err != nil {
		return "", client.IgnoreNotFound(err)
	}
	if ref := source.Spec.Reference; ref != nil && key.Name == identity.ChartRepository(r.Config.HubID, ref.Digest) {
		return r.Config.Chart.Name, nil
	}
	return "", nil
}

// steps returns what is to be done with each object. What a Team's sets deliver has a plan of its own.
func (c *cluster) steps(config *hubconfig.Config) []plan.Step {
	var out []plan.Step
	c.awaited = map[plan.Key]string{}
	for _, scope := range c.scopes() {
		out = append(out, plan.Compute(c.planInput(scope, config))...)
	}
	return out
}

// planInput returns what the plan of a scope is computed from.
func (c *cluster) planInput(scope string, config *hubconfig.Config) plan.Input {
	in := plan.Input{MayCreate: c.answered(), Frozen: map[plan.Key]bool{}, Platform: config.IsPlatform}
	if s := c.suspended(); s != nil {
		in.Suspend = s.Message
	}
	for _, d := range c.deliveries {
		if c.scope(d.Namespace) != scope {
			continue
		}
		for i := range d.Wanted {
			w := &d.Wanted[i]
			want := desired(w)
			want.Labels, want.Recorded = render.Labels(d.target, w.Addon), d.recorded(w)
			if d.deletedByHand() { // it may be gone already, and the set with it
				want.Gate = cmp.Or(want.Gate, "waits for its AddonDelivery, which was deleted, to be made again")
			}
			if o := c.objects[want.Key]; o != nil {
				_, to, _ := want.Reinstall(&o.Observed)
				want.MayReinstall = c.mayReinstall(d, guard.Reinstalled(string(o.uid), to.String()))
			}
			in.Desired = append(in.Desired, want)
		}
	}
	c.keepMoved(scope, in.Desired, config)
	for k, o := range c.objects {
		if c.scope(cmp.Or(o.adopter, k.Namespace)) != scope {
			continue // what is adopted is in the plan of the set that adopts it, whichever Team governs its namespace
		}
		o.NeededBy = c.neededBy(o, config)
		in.Observed = append(in.Observed, o.Observed)
		d := c.delivery(k.Namespace, o.delivery)
		in.Frozen[k] = !o.Foreign && !c.yields[k] &&
			(d == nil || !d.leaving && (d.holds(o.Addon) || c.awaited[k] != "" || d.frozen && !o.Deleting && !d.wants(k) && d.has(o.Addon)))
	}
	in.Removal = func(o plan.Observed) teardown.Decision {
		if d := c.delivery(o.Key.Namespace, c.objects[o.Key].delivery); d != nil && d.failed != nil {
			return teardown.Decision{Mode: teardown.Hold, Reason: d.unrenderable}
		}
		return teardown.Addon(c.removal(o, config))
	}
	return in
}

// keepMoved notes the objects that stay until the add-on that is to take them over can be delivered, unless another add-on goes on with
// them. A platform set does not wait for a tenant's add-on: the tenant would have a veto.
func (c *cluster) keepMoved(scope string, desired []plan.Desired, config *hubconfig.Config) {
	for _, d := range c.deliveries {
		if c.scope(d.Namespace) != scope {
			continue
		}
		for k, why := range d.Keeps {
			vetoed := config.IsPlatform(k.Namespace) && !config.IsPlatform(d.Namespace)
			if !vetoed && !slices.ContainsFunc(desired, func(o plan.Desired) bool { return o.Key == k }) {
				c.awaited[k] = why
			}
		}
	}
}

// desired returns what the plan needs to know of a wanted object, without the observed one.
func desired(w *assembly.Wanted) plan.Desired {
	return plan.Desired{
		Key: assembly.Key(&w.Object), Addon: w.Addon, Hash: w.Hash, Release: w.Release, Chart: w.Chart, Content: assembly.Content(&w.Object),
		Predecessors: w.Predecessors, Gate: w.Gate, Once: w.Once,
	}
}

// recorded returns whether the status says which release an add-on goes on with, or its name says so.
func (d *delivery) recorded(w *assembly.Wanted) bool {
	s := d.addon(w.Addon)
	return w.DefaultRelease || w.Kind != fluxspec.HelmReleaseKind || s != nil && s.Release != nil && *s.Release == w.Release
}

// wants returns whether a delivery delivers an object.
func (d *delivery) wants(k plan.Key) bool {
	return slices.ContainsFunc(d.Wanted, func(w assembly.Wanted) bool { return assembly.Key(&w.Object) == k })
}

// holds returns whether an add-on stays as it is, because it is not known what it should be.
func (d *delivery) holds(addon string) bool {
	return assembly.Held(&assembly.Delivery{Result: d.result, Stays: d.stays}, addon)
}

// granted returns whether the removal guard of the set grants a removal.
func (d *delivery) granted(removal string) bool {
	off := d.set != nil && d.set.Spec.RemovalGuard != nil && d.set.Spec.RemovalGuard.Mode == hubv1.RemovalGuardOff
	return off || d.leaving || slices.Contains(d.Spec.Removals, removal)
}

// mayReinstall returns whether the removal guard of the set grants a reinstall. What the set does not want on the cluster any more
// leaves as it is: another set may be about to go on with it.
func (c *cluster) mayReinstall(d *delivery, removal string) bool {
	return !c.unwanted(d) && d.granted(removal)
}

// removal returns the facts that decide how an object leaves.
func (c *cluster) removal(o plan.Observed, config *hubconfig.Config) teardown.Facts {
	obj := c.objects[o.Key]
	f := teardown.Facts{
		RegistrationFound: c.registration != nil, Unprobed: c.unprobed(), Deleted: obj.deleted, Orphan: obj.orphan, Since: c.now, Now: c.now,
		Grace: config.TeardownGrace, Settle: config.RemovalDelay, Began: c.began, Awaited: c.awaited[o.Key],
	}
	d, looks := c.delivery(o.Key.Namespace, obj.delivery), tenure.Looks
	if d != nil {
		f.Settle = c.settle(d, o.Addon, config)
		uninstalls := o.Deleting && !o.Suspended // Flux does, and no guard can hold that any more
		f.Guarded = !uninstalls && !d.granted(guard.Dropped(string(obj.uid)))
		if d.forGood(o.Key, o.Addon) {
			f.Orphaned = "it has been told of as orphaned"
		}
		f.Orphan = f.Orphan || d.set != nil && d.set.Spec.DeletionPolicy == hubv1.DeletionPolicyOrphan
		switch s := d.addon(o.Addon); {
		case d.leaving:
			f.Since = d.before.DeletionTimestamp.Time // the API server's answer to a write may be another delivery
		case s != nil && report.Leaves(s) && s.Since != nil:
			f.Since = s.Since.Time
		}
	}
	if reg := c.registration; reg != nil {
		f.Orphan = f.Orphan || reg.Spec.DeletionPolicy == hubv1.DeletionPolicyOrphan
		f.Paused = c.paused() && !status.Unregistered(reg)
		if u := status.Find(reg, hubv1.UnregisteringCondition); u != nil && hubv1.OrphansAddons(u.Reason) {
			f.Orphaned = u.Message
		}
		f.Silent, f.Rightless = c.silent(), c.rightless(o.Key.Namespace)
		f.Reachable = f.Silent.IsZero()
		if u := status.Find(reg, hubv1.UnregisteringCondition); u != nil && u.Reason == hubv1.OriginLostReason && d != nil && d.leaving {
			f.Orphaned = u.Message // the guard has let the delivery go, or it would not be leaving
		}
		if drain.Requested(reg) {
			f.Grace = max(f.Grace, drain.Timeout(reg.Spec.DrainBeforeDeletion)) // what is orphaned is not drained
			looks += drain.Timeout(reg.Spec.DrainBeforeDeletion)                // which a hub that starts counts anew
		}
	}
	if d != nil && d.leaving && d.Orphaned() && !f.Orphan && f.Orphaned == "" {
		f.Orphaned = "its add-ons were to stay when its delivery was withdrawn"
	}
	if asked := c.began.Add(looks - f.Grace); !f.Reachable && f.Silent.Before(c.began) && asked.After(f.Silent) {
		f.Silent = asked // while no hub was at work, the cluster was not asked: its grace is not over before the hub has asked
	}
	return f
}

// settle returns how long an add-on that a delivery drops stays. If labels or variables decide that, by a when or an overlay of the set,
// they may come back, as those by which a set selects the cluster may. An override says what its owner wants of this cluster.
func (c *cluster) settle(d *delivery, addon string, config *hubconfig.Config) time.Duration {
	if d.leaving || d.result == nil {
		return config.RemovalDelay
	}
	base := strings.TrimSuffix(addon, compile.CRDSuffix)
	overridden := c.registration != nil && slices.ContainsFunc(c.registration.Spec.Overrides, func(o hubv1.Override) bool {
		return o.Exclude && (o.Name == addon || o.Name == base)
	})
	if overridden || d.result.Excluded[addon] == "" && d.result.Excluded[base] == "" {
		return config.RemovalDelay
	}
	return max(config.RemovalDelay, config.DeselectionDelay)
}

// silent returns since when Flux can do nothing on the cluster, and zero if it can. The cluster does not answer, or
// sleeps, or is read-only.
func (c *cluster) silent() time.Time {
	if r := status.Find(c.registration, hubv1.ReachableCondition); !status.Online(c.registration) {
		if r == nil {
			return c.registration.CreationTimestamp.Time
		}
		return r.LastTransitionTime.Time
	}
	if s := c.suspended(); s != nil && (s.Reason == hubv1.ClusterSleepingReason || s.Reason == hubv1.ClusterWriteLimitedReason) {
		return s.LastTransitionTime.Time
	}
	return time.Time{}
}
