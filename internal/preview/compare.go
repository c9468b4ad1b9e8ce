// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/assembly"
	"github.com/chandler-hub/chandler/internal/match"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/render/document"
	"github.com/chandler-hub/chandler/internal/render/flux"
	"github.com/chandler-hub/chandler/internal/teardown"
)

// Pair is what the hub would do to one cluster if the files became others.
type Pair struct {
	Name types.NamespacedName
	// Before and After are nil if the cluster is not in that fleet.
	Before, After *hubv1.ClusterRegistration
	// Old has what the cluster has, and New what it is to have.
	Old, New *State
	// Steps are the plan that the hub would make if nothing were paused.
	Steps []plan.Step
	// WasPaused and Paused say why what is there stays as it is; empty if it is not so. Ends says when that is over.
	WasPaused, Paused, Ends string
}

// State is what the sets of one fleet make of a cluster.
type State struct {
	// Items are the Flux objects, in the order of the sets and of their add-ons.
	Items []Item
	// Lost are the add-ons that go to another set.
	Lost []Note
	// Failed are the add-ons that cannot be rendered, or whole sets. Nobody knows what they should be.
	Failed []Note
	// Excluded are the add-ons that the cluster does not get.
	Excluded []Note
	// Refused is what the cluster's owner wrote and has no effect, in sentences that do not name the cluster.
	Refused []string
	// Sets are those that select the cluster, as namespace/name.
	Sets []string
	// Refs are the ConfigMaps and Secrets that each of them depends on.
	Refs map[string][]document.Ref

	deliveries []assembly.Delivery
	portions   []assembly.Portion
}

// Item is the Flux object of an add-on, with what its manifest does not show.
type Item struct {
	Rendered
	Key plan.Key
	// Form is the kind of the add-on's body, and Shared are the objects that it refers to.
	Form   string
	Shared []flux.Shared
	// Release and Content say where Flux puts it, and Chart is the chart if Flux reinstalls when that changes.
	Release   hubv1.HelmReleaseIdentity
	Content   plan.Content
	MovedFrom []hubv1.MovedAddon
	Adopt     *flux.Adopt

	wanted   assembly.Wanted
	delivery string
}

// Layer returns who set a field of the object's spec, such as chart.spec.version; the chart counts as a part of it.
func (i *Item) Layer(path []string) string {
	e := explainer{&i.Rendered}
	if isWithin(path, "chart") && i.Form != "" {
		return plainLayer(e.body(path))
	}
	return plainLayer(e.layer(append([]string{"spec"}, path...)))
}

// Reinstall returns from where to where Flux would move the workload of an object that becomes this one.
func (i *Item) Reinstall(old *Item) (from, to plan.Place, anew bool) {
	d, o := i.desired(), old.observed()
	return d.Reinstall(&o)
}

// Follows returns whether this object delivers what another one did.
func (i *Item) Follows(old *Item) bool { return plan.Follows(i.desired(), old.observed()) }

// Find returns the item with a key, or nil.
func (s *State) Find(k plan.Key) *Item {
	for i := range s.Items {
		if s.Items[i].Key == k {
			return &s.Items[i]
		}
	}
	return nil
}

// FailedIn returns the reason for which an add-on of a set could not be rendered.
func (s *State) FailedIn(set, addon string) (reason string, failed bool) {
	for _, n := range s.Failed {
		if n.Set == set && (n.Addon == "" || n.Addon == addon) {
			return n.Reason, true
		}
	}
	return "", false
}

// Comparison is two fleets, of which the first becomes the second.
type Comparison struct {
	before, after *renderer
	// Old and New have what is wrong with the sets and Teams of a fleet, and its warnings.
	Old, New *Report
}

// NewComparison compiles two fleets. The options count for both.
func NewComparison(before, after *Fleet, o Options) *Comparison {
	c := &Comparison{before: newRenderer(before, o), after: newRenderer(after, o)}
	c.Old, c.New = c.before.out, c.after.out
	return c
}

func newRenderer(f *Fleet, o Options) *renderer {
	r := &renderer{fleet: f, options: o, out: &Report{Warnings: slices.Clone(f.warnings)}, shared: map[key]bool{}}
	r.teams()
	r.compile()
	r.out.Errors, r.out.Warnings = r.errors.lines(), append(r.out.Warnings, r.warnings.lines()...)
	return r
}

// SetPair is an AddonSet in both fleets; nil where it is not.
type SetPair struct {
	Name     string
	Old, New *hubv1.AddonSet
	// Reach is that of the new set.
	Reach match.Reach
	// Valid is true if the new set can be rendered.
	Valid bool
}

// Sets returns all sets of both fleets by their names, those that the hub makes for Teams among them.
func (c *Comparison) Sets() []SetPair {
	var out []SetPair
	for _, s := range c.after.sets {
		out = append(out, SetPair{Name: s.String(), Old: c.before.find(s.String()), New: s.set, Reach: s.reach,
			Valid: s.selector != nil && s.program != nil})
	}
	for _, s := range c.before.sets {
		if c.after.find(s.String()) == nil {
			out = append(out, SetPair{Name: s.String(), Old: s.set})
		}
	}
	slices.SortFunc(out, func(a, b SetPair) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// Changed returns whether a ConfigMap or Secret is not the same in both fleets.
func (c *Comparison) Changed(namespace string, ref document.Ref) bool {
	return c.before.fleet.document(namespace, ref).Version != c.after.fleet.document(namespace, ref).Version
}

// SecretChanged returns whether both files have a Secret, and not with the same content.
func (c *Comparison) SecretChanged(namespace, name string) bool {
	content := func(f *Fleet) string { return f.contents[f.original("Secret", namespace, name)] }
	old, next := content(c.before.fleet), content(c.after.fleet)
	return old != "" && next != "" && old != next
}

// Registrations returns those of the clusters of the new fleet.
func (c *Comparison) Registrations() []hubv1.ClusterRegistration {
	return c.after.fleet.registrations()
}

// Each calls a function for every cluster of either fleet, by namespace and name. What it gets is not kept.
func (c *Comparison) Each(each func(*Pair)) {
	before, after := c.before.fleet.members, c.after.fleet.members
	for len(before)+len(after) > 0 {
		var old, next *member
		switch {
		case len(after) == 0 || len(before) > 0 && before[0].before(after[0]):
			old, before = before[0], before[1:]
		case len(before) == 0 || after[0].before(before[0]):
			next, after = after[0], after[1:]
		default:
			old, next, before, after = before[0], after[0], before[1:], after[1:]
		}
		each(c.pair(old, next))
	}
}

// One returns the pair of the cluster with a namespace/name; nil if neither fleet has it.
func (c *Comparison) One(cluster string) *Pair {
	var found [2]*member
	for i, members := range [][]*member{c.before.fleet.members, c.after.fleet.members} {
		if at := slices.IndexFunc(members, func(m *member) bool { return m.key().String() == cluster }); at >= 0 {
			found[i] = members[at]
		}
	}
	if found[0] == nil && found[1] == nil {
		return nil
	}
	return c.pair(found[0], found[1])
}

// ByTeam returns whether a Team governs the sets of a namespace: then Flux comes to their clusters with a token of the Team's.
func (c *Comparison) ByTeam(namespace string) bool { return c.scope(namespace) != "" }

func (m *member) before(o *member) bool {
	if m.registration.Namespace != o.registration.Namespace {
		return m.registration.Namespace < o.registration.Namespace
	}
	return m.registration.Name < o.registration.Name
}

// pair compares what one cluster has with what it is to have. One of the two may be nil.
func (c *Comparison) pair(old, next *member) *Pair {
	p := &Pair{Old: &State{}, New: &State{}}
	old, next = known(old, next)
	if old != nil {
		p.Name, p.Before = old.key(), old.registration
		p.Old = c.before.state(old, nil, c.scope, nil)
		p.WasPaused, p.Ends = c.before.paused(old)
		p.Paused = p.WasPaused // what leaves the fleet leaves as it was
	}
	if next != nil {
		p.Name, p.After = next.key(), next.registration
		p.New = c.after.state(next, p.Old.live(), c.scope, p.Old.Sets)
		p.Paused, p.Ends = c.after.paused(next)
	}
	c.plan(p)
	return p
}

// known gives a registration of a file what the other one says that the hub has found out about the cluster.
func known(old, next *member) (*member, *member) {
	if old == nil || next == nil {
		return old, next
	}
	switch {
	case probed(old) && !probed(next):
		next = learn(next, old)
	case probed(next) && !probed(old):
		old = learn(old, next)
	}
	return old, next
}

func probed(m *member) bool { return m.registration.Status.ClusterUID != "" }

func learn(m, from *member) *member {
	out := &member{registration: m.registration.DeepCopy(), origin: m.origin}
	out.registration.Status = *from.registration.Status.DeepCopy()
	if minor := from.registration.Labels[hubv1.KubernetesMinorLabel]; minor != "" {
		setLabel(out.registration, hubv1.KubernetesMinorLabel, minor)
	}
	if out.origin == nil {
		out.origin = from.origin
	}
	return out
}

// scope returns the namespace if a Team governs it: what its sets deliver is assembled and planned apart from all else.
func (c *Comparison) scope(namespace string) string {
	if s := c.before.scope(namespace); s != "" {
		return s
	}
	return c.after.scope(namespace)
}

// live returns the objects of a state as those that are there.
func (s *State) live() []assembly.Live {
	out := make([]assembly.Live, 0, len(s.Items))
	for i := range s.Items {
		o := &s.Items[i]
		l := assembly.Live{Key: o.Key, Addon: o.wanted.Addon, Set: o.label(), Delivery: o.delivery, Release: o.Release, Content: o.Content,
			Hash: o.wanted.Hash, Ready: true}
		if !o.wanted.DefaultRelease {
			l.Kept = o.Release
		}
		out = append(out, l)
	}
	return out
}

// plan makes the plan of a cluster that answers, for each scope.
func (c *Comparison) plan(p *Pair) {
	inputs := map[string]*plan.Input{}
	var scopes []string
	input := func(namespace string) *plan.Input {
		scope := c.scope(namespace)
		if inputs[scope] == nil {
			inputs[scope] = &plan.Input{MayCreate: true, Frozen: map[plan.Key]bool{}, Platform: c.after.isPlatform,
				Removal: func(o plan.Observed) teardown.Decision { return c.removal(p, o) }}
			scopes = append(scopes, scope)
		}
		return inputs[scope]
	}
	for i := range p.New.Items {
		in := input(p.New.Items[i].Key.Namespace)
		in.Desired = append(in.Desired, p.New.Items[i].desired())
	}
	for i := range p.Old.Items {
		o := &p.Old.Items[i]
		in := input(o.Key.Namespace)
		in.Observed = append(in.Observed, o.observed())
		in.Frozen[o.Key] = p.New.holds(o)
	}
	slices.Sort(scopes)
	for _, s := range scopes {
		p.Steps = append(p.Steps, plan.Compute(*inputs[s])...)
	}
}

// holds returns whether an object that is there stays as it is: its set still selects the cluster, and nobody knows what the object
// should be.
func (s *State) holds(o *Item) bool {
	for i := range s.deliveries {
		d := &s.deliveries[i]
		if d.Namespace == o.Key.Namespace && d.Name == o.delivery {
			return assembly.Held(d, o.wanted.Addon) && !s.portions[i].Yields[o.Key]
		}
	}
	return false
}

// removal says how an object leaves a cluster that answers, if the removal guard has granted nothing.
func (c *Comparison) removal(p *Pair, o plan.Observed) teardown.Decision {
	now := c.after.options.Now
	f := teardown.Facts{RegistrationFound: true, Reachable: true, Guarded: true, Now: now, Since: now.Add(-time.Hour)}
	item := p.Old.Find(o.Key)
	f.Orphan = item.Manifest.GetAnnotations()[hubv1.DeletionPolicyAnnotation] == string(hubv1.DeletionPolicyOrphan)
	set := c.after.find(item.Set)
	if set == nil {
		set = c.before.find(item.Set)
	}
	f.Orphan = f.Orphan || set != nil && set.Spec.DeletionPolicy == hubv1.DeletionPolicyOrphan
	reg := p.After
	if reg == nil {
		reg = p.Before
	}
	f.Orphan = f.Orphan || reg.Spec.DeletionPolicy == hubv1.DeletionPolicyOrphan
	return teardown.Addon(f)
}

func (r *renderer) find(set string) *hubv1.AddonSet {
	for _, s := range r.all {
		if s.Namespace+"/"+s.Name == set {
			return s
		}
	}
	return nil
}

func (i *Item) desired() plan.Desired {
	w := &i.wanted
	return plan.Desired{Key: i.Key, Addon: w.Addon, Hash: w.Hash, Labels: i.Manifest.GetLabels(), Release: i.Release, Recorded: true,
		Predecessors: w.Predecessors, Gate: w.Gate, Once: w.Once, Content: i.Content, Chart: w.Chart}
}

func (i *Item) observed() plan.Observed {
	w := &i.wanted
	return plan.Observed{Key: i.Key, Addon: w.Addon, Set: i.label(), Hash: w.Hash, Labels: i.Manifest.GetLabels(), Release: i.Release,
		Content: i.Content, Chart: w.Chart, Generation: 1, Applied: 1}
}

// label is the set's name as labels have it.
func (i *Item) label() string { return i.Manifest.GetLabels()[hubv1.AddonSetLabel] }
