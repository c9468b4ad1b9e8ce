// SPDX-License-Identifier: Apache-2.0

package planned

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/logkey"
	"github.com/chandler-hub/chandler/internal/assembly"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/facts"
	"github.com/chandler-hub/chandler/internal/fluxstate"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/match"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/render/document"
	"github.com/chandler-hub/chandler/internal/report"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/internal/workloadidentity"
)

// Render renders every delivery, and assembles the results.
func (r *Planner) Render(ctx context.Context, c *Cluster) error {
	in := assembly.Input{Foreign: c.Foreign, Live: c.live()}
	for _, d := range c.Deliveries {
		if d.Program != nil && !d.Leaving && c.Registration != nil {
			if err := r.renderDelivery(ctx, c, d, in.Live); err != nil {
				r.Memory.Drop(c.Key, client.ObjectKeyFromObject(d))
				d.fail(err)
			}
		}
		pending, err := r.pendingSets(ctx, c, d)
		if err != nil {
			d.fail(err)
		}
		d.Stays = c.stays(d)
		a := assembly.Delivery{
			Namespace: d.Namespace, Set: d.Spec.AddonSetRef.Name, Name: d.Name, Platform: r.Config.IsPlatform(d.Namespace),
			Leaving: d.Leaving, Result: d.Result, Stays: d.Stays, Over: c.over(d), Pending: pending,
			Latched: d.Status.ObservedRevision == d.Spec.RevisionName,
			Ready:   d.Status.ReadyRevision == d.Spec.RevisionName && !d.ReadyBefore(c.Since()),
		}
		a.Returns = d.Leaving && c.WantsAgain(d.Delivery)
		switch {
		case a.Returns:
			a.Moves = compile.Moves(&d.Set.Spec, c.Reach[d.Namespace].Author(d.Set.Name))
		case d.Program != nil:
			a.DependsOn, a.Moves = d.Program.DependsOn, d.Program.Moves()
		case d.Unread(): // what it is to take over stays
			a.Moves = compile.Moves(&d.Set.Spec, c.Reach[d.Namespace].Author(d.Set.Name))
		}
		if d.Set != nil {
			a.Ends = d.Set.DeletionTimestamp != nil
			a.Priority = c.Reach[d.Namespace].Author("").Team.Priority(d.Set.Spec.Priority)
		}
		in.Deliveries = append(in.Deliveries, a)
	}
	in.Adopted = map[plan.Key]bool{}
	for k, o := range c.Objects {
		in.Adopted[k] = o.Foreign
	}
	if !slices.ContainsFunc(c.Deliveries, func(d *Delivery) bool { return d.Failed != nil }) {
		// What could not be read is read again, and until then all that was read before is noted.
		r.Documents.Prune(c.Key)
	}
	c.trustFlux(&in)
	c.Yields = map[plan.Key]bool{}
	for i, out := range c.assemble(in) {
		c.Deliveries[i].Portion = out
		maps.Copy(c.Yields, out.Yields)
	}
	return ctx.Err() // else all that could not be read for that would look like a failure of each delivery
}

// renderDelivery renders one delivery, or returns the last result if the input is the same.
func (r *Planner) renderDelivery(ctx context.Context, c *Cluster, d *Delivery, live []assembly.Live) error {
	d.target = render.Target{
		HubID: r.Config.HubID, Namespace: d.Namespace, Set: d.Spec.AddonSetRef.Name, Delivery: d.Name, Registration: c.Key, Chart: r.Config.Chart,
		FluxShards: r.Config.ShardsFor(c.Key.Namespace),
	}
	if why := c.Originless(); why != "" {
		d.UnrenderableReason, d.Unrenderable = hubv1.OriginMissingReason, why
		return nil
	}
	in := &render.Input{Cluster: facts.Cluster(c.Registration, c.Origin), Identity: facts.Identity(c.Registration),
		Overrides: c.Registration.Spec.Overrides, ServiceAccount: c.Registration.Spec.ServiceAccountName, Now: c.Now,
		Metadata: d.metadata()}
	if why := r.identityRefusal(c, d.Namespace); in.Identity != "" && why != "" {
		d.UnrenderableReason, d.Unrenderable = hubv1.IdentityForbiddenReason, why+"; what is delivered stays as it is"
		return nil
	}
	in.Variables, d.Unreadable = facts.Variables(c.Registration, c.Origin)
	if d.Program.UsesOrigin() || in.Metadata.MayReadOrigin() {
		in.Origin = facts.Origin(c.Origin)
	}
	in.Releases = assembly.Releases(d.Program, d.Namespace, d.Name, live, d.Before.Status.Addons)
	print, err := fingerprint(d, in)
	if err != nil {
		return err
	}
	memoryKey, read := client.ObjectKeyFromObject(d), map[document.Ref]string{}
	d.whole = func() (*render.Result, error) {
		return render.Complete(d.Program, d.target, in, r.reading(ctx, c, d.Namespace, read))
	}
	lacks, err := r.lacks(ctx, c, d)
	if err != nil {
		return err
	}
	if there := r.Memory.get(c.Key, memoryKey, print, in.Now); there != nil && !lacks && !c.adopting(d, there.Result) {
		known, err := r.Documents.Versions(ctx, r.Reader.From(), c.Key, d.Namespace, there.Refs)
		if err != nil {
			return err
		}
		if slices.Equal(known, there.versions) {
			d.Result = there.Result
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
	maps.Copy(c.Objects, adopted)
	d.Result = result
	r.Memory.put(c.Key, memoryKey, print, result, versions)
	return nil
}

// reading returns what reads the documents of a namespace for a rendering. It notes which version each had before: what changes while it is
// rendered must not be taken for what was rendered, or nothing would come of the event that tells of it.
func (r *Planner) reading(ctx context.Context, c *Cluster, namespace string,
	before map[document.Ref]string) func(document.Ref) (document.Document, error) {
	return func(ref document.Ref) (document.Document, error) {
		doc, version, err := r.Documents.Read(ctx, r.Reader.From(), c.Key, namespace, ref)
		before[ref] = version
		return doc, err
	}
}

// metadata returns the labels and annotations that the set gives to its objects now, whatever the delivery's revision.
func (d *Delivery) metadata() *compile.Metadata {
	if d.Set == nil {
		return &compile.Metadata{}
	}
	return compile.MetadataOf(&d.Set.Spec)
}

// identityRefusal says why Flux may not log in to the cluster by workload identity for the sets of a namespace; "" if it
// may.
func (r *Planner) identityRefusal(c *Cluster, namespace string) string {
	if from := c.Reach[namespace]; from.ByTeam() {
		return fmt.Sprintf("Flux logs in to the cluster by workload identity, so the hub cannot ask it for a token of Team %s/%s",
			from.Team.Namespace, from.Team.Name)
	}
	return workloadidentity.Refusal(c.Key.Namespace, namespace, r.Config.IsPlatform)
}

// lacks returns whether Flux waits for something that an object of a delivery refers to and that does not exist.
// Memory does not hold what is needed to make that again, and the cluster that was woken when it was deleted may not
// need it any more, or be paused. It notes what Flux says of a source that it could not fetch.
func (r *Planner) lacks(ctx context.Context, c *Cluster, d *Delivery) (lacks bool, err error) {
	for k, o := range c.Objects {
		if k.Namespace != d.Namespace || o.Delivery != d.Name || o.Deleting || o.Suspended || !fluxstate.Waits(o.State) {
			continue
		}
		what, err := r.Shared.Lacks(ctx, o.Uses)
		if err != nil {
			return false, err
		}
		if o.Lacks, lacks = what, lacks || what != ""; o.Refusal == (fluxstate.Refusal{}) {
			if o.Refusal, err = r.Shared.Refusal(ctx, o.Uses); err != nil {
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
func (c *Cluster) live() []assembly.Live {
	out := make([]assembly.Live, 0, len(c.Objects))
	for k, o := range c.Objects {
		l := assembly.Live{
			Key: k, Addon: o.Addon, Set: o.Set, Delivery: o.Delivery, Release: o.Release, Kept: o.Kept, Content: o.Content,
			Hash: o.Hash, Going: o.Deleting || o.Replaced != "",
		}
		if d := c.Delivery(k.Namespace, o.Delivery); d != nil {
			state, _ := report.State(d.Was(o.Addon), o.State, o.Applied, d.Frozen)
			l.Ready = state == hubv1.AddonReady
		}
		out = append(out, l)
	}
	return out
}

// trustFlux has Flux's word alone say whether an object is Ready that stays as it is. A hub that died before it reported has left an older
// generation in the status, no reconcile writes the object again, and what depends on it would wait for ever.
func (c *Cluster) trustFlux(in *assembly.Input) {
	for i := range in.Live {
		l := &in.Live[i]
		d := c.Delivery(l.Key.Namespace, l.Delivery)
		at := slices.IndexFunc(in.Deliveries, func(a assembly.Delivery) bool { return a.Namespace == l.Key.Namespace && a.Name == l.Delivery })
		if d == nil || at < 0 || !assembly.Held(&in.Deliveries[at], l.Addon) {
			continue
		}
		o := c.Objects[l.Key]
		state, _ := report.State(d.Was(o.Addon), o.State, o.Applied, true)
		l.Ready = state == hubv1.AddonReady
	}
}

// stays names the add-ons of a frozen delivery that have an object. An object that was made for another cluster, or
// is being deleted, does not stay. An add-on that the revision does not have does not stay either: the hub was
// upgraded before that add-on had gone.
func (c *Cluster) stays(d *Delivery) map[string]bool {
	if !d.Frozen || d.Leaving {
		return nil
	}
	out := map[string]bool{}
	for k, o := range c.Objects {
		if o.Delivery == d.Name && k.Namespace == d.Namespace && o.Replaced == "" && !o.Deleting && d.Has(o.Addon) {
			out[o.Addon] = true
		}
	}
	return out
}

// over names the add-ons that a delivery does not have yet, if it is about to be withdrawn, with its cluster or
// alone, or a removal guard holds that. What it has stays, and it gets nothing more that another set would have.
func (c *Cluster) over(d *Delivery) map[string]bool {
	if d.Result == nil || d.Leaving || !c.Unwanted(d.Delivery) && !(c.Registration != nil && status.Unregistered(c.Registration)) {
		return nil
	}
	out := map[string]bool{}
	for i := range d.Result.Objects {
		if o := &d.Result.Objects[i]; !c.Lives(d.Delivery, o.Addon) {
			out[o.Addon] = true
		}
	}
	return out
}

// fingerprint covers everything that a result depends on, except time and documents.
func fingerprint(d *Delivery, in *render.Input) (string, error) {
	raw, err := json.Marshal([]any{d.Spec.RevisionName, d.target, in.Cluster, in.Origin, in.Identity, in.Variables,
		in.Overrides, in.ServiceAccount, in.Releases, in.Metadata, d.Program.Team.Hash(), d.Program.Schemas.Hash()})
	if err != nil {
		return "", fmt.Errorf("fingerprint the input: %w", err)
	}
	return identity.Hash(32, string(raw)), nil
}

// pendingSets are the sets that a delivery's own set depends on, that select this cluster, and that have no delivery
// here yet, or one whose program is not compiled yet.
func (r *Planner) pendingSets(ctx context.Context, c *Cluster, d *Delivery) ([]string, error) {
	if d.Program == nil || c.Registration == nil {
		return nil, nil
	}
	names := d.Program.SetsNamed()
	var out []string
	for _, name := range names {
		there := slices.ContainsFunc(c.Deliveries, func(o *Delivery) bool {
			return o.Namespace == d.Namespace && o.Spec.AddonSetRef.Name == name && !o.Busy()
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
		selector, err := match.New(c.Reach[d.Namespace], &set.Spec)
		if err == nil && selector.Matches(c.Registration) {
			out = append(out, name)
		}
	}
	return out, nil
}
