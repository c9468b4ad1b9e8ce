// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/documents"
	"github.com/chandler-hub/chandler/controllers/logkey"
	"github.com/chandler-hub/chandler/internal/assembly"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/facts"
	"github.com/chandler-hub/chandler/internal/fluxstate"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/match"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/report"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/internal/workloadidentity"
)

// render renders every delivery, and assembles the results.
func (r *Reconciler) render(ctx context.Context, c *cluster) error {
	in := assembly.Input{Foreign: c.foreign, Live: c.live()}
	for _, d := range c.deliveries {
		if d.program != nil && !d.leaving && c.registration != nil {
			if err := r.renderDelivery(ctx, c, d, in.Live); err != nil {
				r.memory.drop(client.ObjectKeyFromObject(d))
				d.fail(err)
			}
		}
		pending, err := r.pendingSets(ctx, c, d)
		if err != nil {
			d.fail(err)
		}
		d.stays = c.stays(d)
		a := assembly.Delivery{
			Namespace: d.Namespace, Set: d.Spec.AddonSetRef.Name, Name: d.Name, Platform: r.Config.IsPlatform(d.Namespace),
			Leaving: d.leaving, Result: d.result, Stays: d.stays, Over: c.over(d), Pending: pending,
			Latched: d.Status.ObservedRevision == d.Spec.RevisionName,
			Ready:   d.Status.ReadyRevision == d.Spec.RevisionName && !d.readyBefore(c.since()),
		}
		a.Returns = d.leaving && c.wantsAgain(d)
		switch {
		case a.Returns:
			a.Moves = compile.Moves(&d.set.Spec, c.reach[d.Namespace].Author(d.set.Name))
		case d.program != nil:
			a.DependsOn, a.Moves = d.program.DependsOn, d.program.Moves()
		case d.unread(): // what it is to take over stays
			a.Moves = compile.Moves(&d.set.Spec, c.reach[d.Namespace].Author(d.set.Name))
		}
		if d.set != nil {
			a.Ends = d.set.DeletionTimestamp != nil
			a.Priority = c.reach[d.Namespace].Author("").Team.Priority(d.set.Spec.Priority)
		}
		in.Deliveries = append(in.Deliveries, a)
	}
	in.Adopted = map[plan.Key]bool{}
	for k, o := range c.objects {
		in.Adopted[k] = o.Foreign
	}
	r.prune(c)
	c.trustFlux(&in)
	c.yields = map[plan.Key]bool{}
	for i, out := range c.assemble(in) {
		c.deliveries[i].Portion = out
		maps.Copy(c.yields, out.Yields)
	}
	return ctx.Err() // else all that could not be read for that would look like a failure of each delivery
}

// since is when the registration came to be of its present cluster; zero if that is not known.
func (c *cluster) since() time.Time {
	if c.registration == nil || c.registration.Status.ClusterSince == nil {
		return time.Time{}
	}
	return c.registration.Status.ClusterSince.Time
}

// readyBefore returns whether a delivery was Ready last before a time.
func (d *delivery) readyBefore(t time.Time) bool {
	return d.Status.ReadyTime != nil && d.Status.ReadyTime.Time.Before(t)
}

// prune forgets the deliveries of a cluster that are gone, in whatever way, and the documents to which those that are there do not
// refer any more: all that decides anything has just been read. What could not be read is read again, and until then all that was read
// before is noted.
func (r *Reconciler) prune(c *cluster) {
	for _, d := range r.roster.gone(c.key, c.deliveries) {
		r.memory.drop(d)
		r.waiting.Forget(d)
	}
	if !slices.ContainsFunc(c.deliveries, func(d *delivery) bool { return d.failed != nil }) {
		r.documents.Prune(c.key)
	}
}

// unread returns whether a delivery counts, and it is not known what is in its revision.
func (d *delivery) unread() bool {
	return d.program == nil && !d.leaving && d.set != nil &&
		(d.failed != nil || d.reason == hubv1.RevisionNotFoundReason || d.reason == hubv1.InvalidSpecReason)
}

// renderDelivery renders one delivery, or returns the last result if the input is the same.
func (r *Reconciler) renderDelivery(ctx context.Context, c *cluster, d *delivery, live []assembly.Live) error {
	d.target = render.Target{
		HubID: r.Config.HubID, Namespace: d.Namespace, Set: d.Spec.AddonSetRef.Name, Delivery: d.Name, Registration: c.key, Chart: r.Config.Chart,
		FluxShards: r.Config.ShardsFor(c.key.Namespace),
	}
	if why := c.originless(); why != "" {
		d.reason, d.unrenderable = hubv1.OriginMissingReason, why
		return nil
	}
	in := &render.Input{Cluster: facts.Cluster(c.registration, c.origin), Identity: facts.Identity(c.registration),
		Overrides: c.registration.Spec.Overrides, ServiceAccount: c.registration.Spec.ServiceAccountName, Now: c.now,
		Metadata: d.metadata()}
	if why := r.identityRefusal(c, d.Namespace); in.Identity != "" && why != "" {
		d.reason, d.unrenderable = hubv1.IdentityForbiddenReason, why+"; what is delivered stays as it is"
		return nil
	}
	in.Variables, d.unreadable = facts.Variables(c.registration, c.origin)
	if d.program.UsesOrigin() || in.Metadata.MayReadOrigin() {
		in.Origin = facts.Origin(c.origin)
	}
	in.Releases = assembly.Releases(d.program, d.Namespace, d.Name, live, d.before.Status.Addons)
	print, err := fingerprint(d, in)
	if err != nil {
		return err
	}
	memoryKey, read := client.ObjectKeyFromObject(d), map[render.Ref]string{}
	d.whole = func() (*render.Result, error) {
		return render.Complete(d.program, d.target, in, r.reading(ctx, c, d.Namespace, read))
	}
	lacks, err := r.lacks(ctx, c, d)
	if err != nil {
		return err
	}
	if there := r.memory.get(memoryKey, print, in.Now); there != nil && !lacks && !c.adopting(d, there.Result) {
		known, err := r.documents.Versions(ctx, r.from(), c.key, d.Namespace, there.Refs)
		if err != nil {
			return err
		}
		if slices.Equal(known, there.versions) {
			d.result = there.Result
			return nil
		}
	}
	ctrl.LoggerFrom(ctx).V(1).Info(renderedMessage, logkey.Set, d.SetKey().String())
	result, err := d.whole()
	if err != nil {
		return err
	}
	adopted, err := r.adoptions(ctx, c, d, result, in)
	if err != nil {
		return err
	}
	versions := make([]string, len(result.Refs))
	for i, ref := range result.Refs {
		versions[i] = read[ref]
	}
	maps.Copy(c.objects, adopted)
	d.result = result
	r.memory.put(memoryKey, c.key, print, result, versions)
	return nil
}

// reading returns what reads the documents of a namespace for a rendering. It notes which version each had before: what changes while it is
// rendered must not be taken for what was rendered, or nothing would come of the event that tells of it.
func (r *Reconciler) reading(ctx context.Context, c *cluster, namespace string,
	before map[render.Ref]string) func(render.Ref) (render.Document, error) {
	return func(ref render.Ref) (render.Document, error) {
		doc, version, err := r.documents.Read(ctx, r.from(), c.key, namespace, ref)
		before[ref] = version
		return doc, err
	}
}

// from is where documents are read.
func (r *Reconciler) from() documents.From { return documents.From{Cached: r.Client, Live: r.Live} }

// metadata returns the labels and annotations that the set gives to its objects now, whatever the delivery's revision.
func (d *delivery) metadata() *compile.Metadata {
	if d.set == nil {
		return &compile.Metadata{}
	}
	return compile.MetadataOf(&d.set.Spec)
}

// identityRefusal says why Flux may not log in to the cluster by workload identity for the sets of a namespace; "" if it
// may.
func (r *Reconciler) identityRefusal(c *cluster, namespace string) string {
	if from := c.reach[namespace]; from.ByTeam() {
		return fmt.Sprintf("Flux logs in to the cluster by workload identity, so the hub cannot ask it for a token of Team %s/%s",
			from.Team.Namespace, from.Team.Name)
	}
	return workloadidentity.Refusal(c.key.Namespace, namespace, r.Config.IsPlatform)
}

// lacks returns whether Flux waits for something that an object of a delivery refers to and that does not exist.
// Memory does not hold what is needed to make that again, and the cluster that was woken when it was deleted may not
// need it any more, or be paused. It notes what Flux says of a source that it could not fetch.
func (r *Reconciler) lacks(ctx context.Context, c *cluster, d *delivery) (lacks bool, err error) {
	for k, o := range c.objects {
		if k.Namespace != d.Namespace || o.delivery != d.Name || o.Deleting || o.Suspended || !fluxstate.Waits(o.state) {
			continue
		}
		what, err := r.Shared.Lacks(ctx, o.uses)
		if err != nil {
			return false, err
		}
		if o.lacks, lacks = what, lacks || what != ""; o.refusal == (fluxstate.Refusal{}) {
			if o.refusal, err = r.Shared.Refusal(ctx, o.uses); err != nil {
				return false, err
			}
		}
	}
	return lacks, nil
}

// renderedMessage is logged for each delivery that is rendered, so that a test can count that an event which changes
// none of the input renders nothing.
const renderedMessage = "rendered"

// live returns the hub's objects for the cluster.
func (c *cluster) live() []assembly.Live {
	out := make([]assembly.Live, 0, len(c.objects))
	for k, o := range c.objects {
		l := assembly.Live{
			Key: k, Addon: o.Addon, Set: o.Set, Delivery: o.delivery, Release: o.Release, Kept: o.kept, Content: o.Content,
			Hash: o.Hash, Going: o.Deleting || o.Replaced != "",
		}
		if d := c.delivery(k.Namespace, o.delivery); d != nil {
			state, _ := report.State(was(d, o.Addon), o.state, o.Applied, d.frozen)
			l.Ready = state == hubv1.AddonReady
		}
		out = append(out, l)
	}
	return out
}

// trustFlux has Flux's word alone say whether an object is Ready that stays as it is. A hub that died before it reported has left an older
// generation in the status, no reconcile writes the object again, and what depends on it would wait for ever.
func (c *cluster) trustFlux(in *assembly.Input) {
	for i := range in.Live {
		l := &in.Live[i]
		d := c.delivery(l.Key.Namespace, l.Delivery)
		at := slices.IndexFunc(in.Deliveries, func(a assembly.Delivery) bool { return a.Namespace == l.Key.Namespace && a.Name == l.Delivery })
		if d == nil || at < 0 || !assembly.Held(&in.Deliveries[at], l.Addon) {
			continue
		}
		o := c.objects[l.Key]
		state, _ := report.State(was(d, o.Addon), o.state, o.Applied, true)
		l.Ready = state == hubv1.AddonReady
	}
}

// lives returns whether an add-on of a delivery has its own object.
func (c *cluster) lives(d *delivery, addon string) bool {
	for k, o := range c.objects {
		if o.delivery == d.Name && k.Namespace == d.Namespace && o.Addon == addon {
			return true
		}
	}
	return false
}

// stays names the add-ons of a frozen delivery that have an object. An object that was made for another cluster, or
// is being deleted, does not stay. An add-on that the revision does not have does not stay either: the hub was
// upgraded before that add-on had gone.
func (c *cluster) stays(d *delivery) map[string]bool {
	if !d.frozen || d.leaving {
		return nil
	}
	out := map[string]bool{}
	for k, o := range c.objects {
		if o.delivery == d.Name && k.Namespace == d.Namespace && o.Replaced == "" && !o.Deleting && d.has(o.Addon) {
			out[o.Addon] = true
		}
	}
	return out
}

// over names the add-ons that a delivery does not have yet, if it is about to be withdrawn, with its cluster or
// alone, or a removal guard holds that. What it has stays, and it gets nothing more that another set would have.
func (c *cluster) over(d *delivery) map[string]bool {
	if d.result == nil || d.leaving || !c.unwanted(d) && !(c.registration != nil && status.Unregistered(c.registration)) {
		return nil
	}
	out := map[string]bool{}
	for i := range d.result.Objects {
		if o := &d.result.Objects[i]; !c.lives(d, o.Addon) {
			out[o.Addon] = true
		}
	}
	return out
}

// unwanted returns whether the set of a delivery does not want to deliver to the cluster any more.
func (c *cluster) unwanted(d *delivery) bool {
	return d.set != nil && (d.set.DeletionTimestamp != nil || !status.IsTrue(d.set, hubv1.StalledCondition) && !d.selected)
}

// has returns whether a delivery's revision has an add-on, as far as it can be read.
func (d *delivery) has(addon string) bool { return d.program == nil || d.program.Has(addon) }

// fingerprint covers everything that a result depends on, except time and documents.
func fingerprint(d *delivery, in *render.Input) (string, error) {
	raw, err := json.Marshal([]any{d.Spec.RevisionName, d.target, in.Cluster, in.Origin, in.Identity, in.Variables,
		in.Overrides, in.ServiceAccount, in.Releases, in.Metadata, d.program.Team.Hash(), d.program.Schemas.Hash()})
	if err != nil {
		return "", fmt.Errorf("fingerprint the input: %w", err)
	}
	return identity.Hash(32, string(raw)), nil
}

// pendingSets are the sets that a delivery's own set depends on, that select this cluster, and that have no delivery
// here yet, or one of which it is not known for a moment what it wants.
func (r *Reconciler) pendingSets(ctx context.Context, c *cluster, d *delivery) ([]string, error) {
	if d.program == nil || c.registration == nil {
		return nil, nil
	}
	names := d.program.SetsNamed()
	var out []string
	for _, name := range names {
		there := slices.ContainsFunc(c.deliveries, func(o *delivery) bool {
			return o.Namespace == d.Namespace && o.Spec.AddonSetRef.Name == name && !o.busy()
		})
		if there || slices.Contains(out, name) {
			continue
		}
		set := &hubv1.AddonSet{}
		if err := r.Client.Get(ctx, types.NamespacedName{Namespace: d.Namespace, Name: name}, set); client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("read AddonSet %s: %w", name, err)
		} else if err != nil || set.DeletionTimestamp != nil {
			continue
		}
		selector, err := match.New(c.reach[d.Namespace], &set.Spec)
		if err == nil && selector.Matches(c.registration) {
			out = append(out, name)
		}
	}
	return out, nil
}
