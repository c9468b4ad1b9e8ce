// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/assembly"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/facts"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/merge"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/render/document"
	"github.com/chandler-hub/chandler/internal/render/flux"
	"github.com/chandler-hub/chandler/internal/workloadidentity"
)

// delivery is one set on one cluster.
type delivery struct {
	*compiled
	result *render.Result // nil if nothing comes out
}

// cluster renders all sets for one cluster, and assembles the results.
func (r *renderer) cluster(m *member) {
	out := Cluster{Namespace: m.registration.Namespace, Name: m.registration.Name}
	in, unreadable := r.input(m)
	for _, text := range unreadable {
		r.errors.add(m.String(), ": "+text)
		out.Refused = append(out.Refused, Note{Reason: oneLine(text)})
	}
	s := r.standing(m)
	if out.Nothing, out.Paused = oneLine(s.nothing), oneLine(s.paused); s.nothing != "" {
		r.notes.add(m.String(), ": "+s.nothing)
		r.out.Clusters = append(r.out.Clusters, out)
		return
	}
	if s.paused != "" {
		r.notes.add(m.String(), ": "+s.paused+standstill)
	}
	var all []*delivery
	var deliveries []assembly.Delivery
	for _, c := range r.sets {
		if c.selector == nil {
			continue
		}
		if !c.selector.Matches(m.registration) {
			out.NotSelected = append(out.NotSelected, Note{Set: c.String(), Reason: oneLine(c.selector.Why(m.registration))})
			continue
		}
		d := &delivery{compiled: c}
		switch {
		case c.program == nil:
			out.Failed = append(out.Failed, Note{Set: c.String(), Reason: "the set does not compile"})
		default:
			in.Releases = assembly.Releases(c.program, c.set.Namespace, d.name(m), s.live, nil)
			d.result = r.deliver(m, d, s, in, &out)
		}
		all, deliveries = append(all, d), append(deliveries, r.claimant(m, d))
	}
	r.overrides(m, all)
	for i, o := range assembleScopes(deliveries, s, r.scope) {
		r.outcome(m, all[i], s, &o, &out)
	}
	s.left(&out)
	for _, n := range slices.Concat(out.Lost, out.NotOwned) {
		r.warnings.add(m.String(), fmt.Sprintf(", AddonSet %s: add-on %q is not delivered: %s", n.Set, n.Addon, n.Reason))
	}
	if out.empty() && len(r.sets) > 0 { // else a warning says that there is none
		r.notes.add(m.String(), ": "+undelivered)
	}
	r.out.Clusters = append(r.out.Clusters, out)
}

// name returns the name of the AddonDelivery.
func (d *delivery) name(m *member) string { return identity.Delivery(d.set.Name, m.key()) }

func (m *member) key() types.NamespacedName {
	return types.NamespacedName{Namespace: m.registration.Namespace, Name: m.registration.Name}
}

func (r *renderer) claimant(m *member, d *delivery) assembly.Delivery {
	out := assembly.Delivery{
		Namespace: d.set.Namespace, Set: d.set.Name, Name: d.name(m), Platform: d.reach.Platform, Priority: d.set.Spec.Priority, Result: d.result,
	}
	if !r.fleet.dump() { // else the objects say who came first
		out.Since = latest(d.set.CreationTimestamp, m.registration.CreationTimestamp)
	}
	if d.program != nil {
		out.DependsOn, out.Priority = d.program.DependsOn, d.program.Team.Priority(out.Priority)
	}
	return out
}

// input returns what expressions can read about a cluster, and the cluster's own variables and overrides.
func (r *renderer) input(m *member) (in render.Input, unreadable []string) {
	in = render.Input{
		Cluster: facts.Cluster(m.registration, m.origin), Origin: facts.Origin(m.origin), Identity: facts.Identity(m.registration),
		Overrides: m.registration.Spec.Overrides, ServiceAccount: m.registration.Spec.ServiceAccountName, Now: r.options.Now,
		Explain: r.options.Explain, Mark: true,
	}
	facts.InFiles(m.registration, in.Cluster)
	in.Variables, unreadable = facts.Variables(m.registration, m.origin)
	return in, unreadable
}

// deliver renders one set, and reports the add-ons that cannot be rendered.
func (r *renderer) deliver(m *member, d *delivery, s *standing, in render.Input, out *Cluster) *render.Result {
	about := d.about()
	target := render.Target{
		HubID: r.options.HubID, Namespace: d.set.Namespace, Set: d.set.Name, Delivery: d.name(m),
		Registration: m.key(), Chart: r.options.Chart, FluxShards: r.options.ShardsFor(m.registration.Namespace),
	}
	if why := workloadidentity.Refusal(m.registration.Namespace, d.set.Namespace, r.isPlatform); in.Identity != "" && why != "" {
		r.refuseOn(m.String(), about, errors.New(why))
		out.Failed = append(out.Failed, Note{Set: d.String(), Reason: oneLine(why)})
		return nil
	}
	in.Documents = nil // another set's are in another namespace, perhaps
	whole := func() (*render.Result, error) {
		return render.Complete(d.program, target, &in, func(ref document.Ref) (document.Document, error) {
			return r.fleet.document(target.Namespace, ref), nil
		})
	}
	result, err := whole()
	if err == nil {
		result, err = r.adopt(m, d, s.live, &in, result, whole)
	}
	if compile.Waits(err) {
		r.waits(m, d, "", err, out)
		return nil
	}
	if err != nil {
		r.refuseOn(m.String(), about, err)
		out.Failed = append(out.Failed, Note{Set: d.String(), Reason: oneLine(err.Error())})
		return nil
	}
	for _, refused := range result.Refused {
		r.errors.add(m.String(), fmt.Sprintf("%s: %s", about, refused))
		n := Note{Set: d.String(), Addon: refused.Addon}
		refused.Why.Addon = ""
		n.Reason = oneLine(refused.String())
		out.Refused = append(out.Refused, n)
	}
	for _, e := range result.Omitted {
		text := fmt.Sprintf("%s: %s; it is left out here, and nothing waits for it", about, e)
		if e.Fact != "" { // which comes by itself
			r.warnings.add(m.String(), text)
			continue
		}
		r.errors.add(m.String(), text)
	}
	d.result = result
	r.fleet.copied(target.Namespace, result)
	r.unknown(m, d, out)
	for _, a := range d.program.Addons {
		r.failed(m, d, a.Name, result, out)
		if why, ok := result.Excluded[a.Name]; ok {
			out.Excluded = append(out.Excluded, Note{Set: d.String(), Addon: a.Name, Reason: oneLine(why)})
		}
	}
	out.Variables = append(out.Variables, variables(d.String(), result)...)
	return result
}

func errorOf(errs compile.Errors) error {
	if len(errs) == 0 {
		return nil
	}
	return errs
}

// overrides rejects overrides for add-ons that no set has for the cluster, and warns of those that have ended.
func (r *renderer) overrides(m *member, all []*delivery) {
	var known []string
	for _, d := range all {
		for i := range d.set.Spec.Addons {
			known = append(known, d.set.Spec.Addons[i].Name)
		}
	}
	slices.Sort(known)
	known = slices.Compact(known)
	for i := range m.registration.Spec.Overrides {
		o := &m.registration.Spec.Overrides[i]
		switch {
		case o.Until != nil && !r.options.Now.Before(o.Until.Time):
			r.warnings.add(m.String(), fmt.Sprintf(": the override of add-on %q is over since %s", o.Name,
				o.Until.UTC().Format("2006-01-02T15:04:05Z")))
		case slices.Contains(known, o.Name), r.options.Incomplete:
		case len(known) == 0:
			r.errors.add(m.String(), fmt.Sprintf(": override of add-on %q: no AddonSet delivers anything to this cluster", o.Name))
		default:
			r.errors.add(m.String(), fmt.Sprintf(": override of add-on %q: no AddonSet delivers one of that name to this cluster; there are %s",
				o.Name, strings.Join(known, ", ")))
		}
	}
}

// outcome copies what one delivery won and lost into the report.
func (r *renderer) outcome(m *member, d *delivery, s *standing, o *assembly.Portion, out *Cluster) {
	for i := range o.Wanted {
		w := &o.Wanted[i]
		if why, there := s.unmade(w); why != "" {
			n := stays(d.String(), w.Addon, assembly.Key(&w.Object), why)
			if there {
				out.Stays = append(out.Stays, n)
			} else {
				out.Later = append(out.Later, n.Note)
			}
			s.told(assembly.Key(&w.Object))
			continue
		}
		s.told(assembly.Key(&w.Object))
		one := Rendered{Set: d.String(), Addon: w.Addon, Remarks: remarks(&w.Object), Manifest: w.Manifest(), form: w.Form, trace: w.Trace}
		if base, ok := strings.CutSuffix(w.Addon, compile.CRDSuffix); ok && !d.has(w.Addon) {
			one.Addon, one.CRDs, one.trace = base, true, d.trace(base)
		}
		for _, s := range w.Shared {
			r.share(&s)
			if s.Object.GetKind() == sourcev1.HelmChartKind {
				one.chart, _ = s.Object.Object["spec"].(map[string]any)
			}
		}
		r.wanted.note(d.String(), one.Addon, one.Manifest, w.Shared)
		out.Objects = append(out.Objects, one)
	}
	s.held(m, d, o, out)
	out.Lost = append(out.Lost, notes(d.String(), o.Lost)...)
	out.NotOwned = append(out.NotOwned, notes(d.String(), o.NotOwned)...)
}

// trace returns who set the fields of an add-on's body. If the add-on has several objects, the last one has it.
func (d *delivery) trace(addon string) *merge.Trace {
	for i := range d.result.Objects {
		if o := &d.result.Objects[i]; o.Addon == addon {
			return o.Trace
		}
	}
	return nil
}

func (c *compiled) has(addon string) bool {
	return slices.ContainsFunc(c.set.Spec.Addons, func(a hubv1.Addon) bool { return a.Name == addon })
}

// share adds an object that clusters share, unless it is in the report already.
func (r *renderer) share(s *flux.Shared) {
	k := key{s.Object.GroupVersionKind().GroupKind(), s.Object.GetNamespace(), s.Object.GetName()}
	if !r.shared[k] {
		r.shared[k] = true
		r.out.Shared = append(r.out.Shared, s.Object)
	}
}

func notes(set string, why map[string]string) []Note {
	var out []Note
	for _, addon := range slices.Sorted(maps.Keys(why)) {
		out = append(out, Note{Set: set, Addon: addon, Reason: oneLine(why[addon])})
	}
	return out
}

// remarks returns facts about an object that its manifest does not show.
func remarks(o *flux.Object) []string {
	var out []string
	for _, m := range o.MovedFrom {
		out = append(out, fmt.Sprintf("takes over from add-on %s of AddonSet %s/%s, where that is still there", m.Name, m.Namespace, m.AddonSet))
	}
	if a := o.Adopt; a != nil {
		out = append(out, fmt.Sprintf("takes over from %s %s/%s, where that is still there", a.Kind, a.Namespace, a.Name))
	}
	if o.Once {
		out = append(out, "made once, and then left alone")
	}
	for i := range out {
		out[i] = oneLine(out[i])
	}
	return out
}

func variables(set string, result *render.Result) []Variable {
	var out []Variable
	for _, name := range slices.Sorted(maps.Keys(result.VarLayers)) {
		v := Variable{Set: set, Name: name, Layer: result.VarLayers[name]}
		if value, ok := result.Vars[name]; ok {
			v.Value = inline(value)
		}
		out = append(out, v)
	}
	return out
}
