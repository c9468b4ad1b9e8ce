// SPDX-License-Identifier: Apache-2.0

// Package floating finds what changes on clusters without a new revision of their set: charts and sources that follow upstream, and what no
// revision can hold.
package floating

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/expression"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/pin"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/render/flux"
)

// Float is an object that follows upstream: what it gives changes without a new revision of the set.
type Float struct {
	flux.Shared
	// Repository is the set's own HelmRepository that a HelmChart refers to; nil if there is none.
	Repository *flux.Shared
	// What says what it follows, for people.
	What string
	// Needed is true if a cluster gets it, and the set's author has written it down. What only comes of several overlays that meet on
	// a cluster may be a mistake: it concerns that cluster alone.
	Needed bool

	// Got is true if a cluster gets it.
	Got     bool
	written bool
	// Addons names the add-ons that have it, in the order of the alphabet.
	Addons []string
}

// Key is how compile.Pins name it.
func (f *Float) Key() string { return pin.Key(f.Object) }

// Floats are what changes without a new revision of a set.
type Floats struct {
	// Objects follow upstream, and a revision can hold them.
	Objects []Float
	// Loose is what no revision can hold.
	Loose []Loose
	// Fixed is what never changes by itself.
	Fixed []Fixed
}

// Loose is something that changes without a new revision, and that no revision can hold. Text begins with its path. Addon is empty if
// it is about the set as a whole.
type Loose struct{ Addon, Text string }

// Fixed is a chart or a source that an add-on has, and that its author has written down to the version, commit or digest.
type Fixed struct{ Addon, What string }

// Choices are the different choices of overlays that some clusters have, in a fixed order. Two clusters with the same choice follow
// the same upstream.
type Choices struct {
	all []choice
	// More says that there are more than are told apart.
	More bool
	// Key tells these choices from others.
	Key string
}

// choice is the overlays that the labels of a cluster choose, by index, and those that have a condition beside.
type choice struct{ sure, maybe []int }

// maxChoices and maxConditions are how many choices, and how many overlays with conditions in one, are told apart.
const maxChoices, maxConditions = 256, 4

// ChoicesOf returns the choices of clusters with some labels.
func ChoicesOf(p *compile.Program, clusters []labels.Set) Choices {
	found := map[string]choice{}
	for _, set := range clusters {
		var c choice
		for i := range p.Overlays {
			o := &p.Overlays[i]
			switch {
			case o.Selector != nil && !o.Selector.Matches(set):
			case o.When != nil:
				c.maybe = append(c.maybe, i)
			default:
				c.sure = append(c.sure, i)
			}
		}
		found[fmt.Sprint(c.sure, c.maybe)] = c
	}
	var out Choices
	keys := slices.Sorted(maps.Keys(found))
	if out.More = len(keys) > maxChoices; out.More {
		keys = keys[:maxChoices]
	}
	for _, key := range keys {
		out.all = append(out.all, found[key])
	}
	out.Key = strings.Join(keys, ";")
	return out
}

// Find finds what changes without a new revision on clusters with some choices of overlays. configMaps are the data of
// variablesFrom. What a cluster's own overrides and variables decide is none of it: they decide neither charts nor sources.
//
// Beside what the clusters get, it looks at what a cluster would get that has none of the overlays, or only one: that is what the
// set's author has written down, and what most new clusters get.
func Find(p *compile.Program, t render.Target, clusters Choices, configMaps map[string]map[string]string) Floats {
	unpinned := *p
	unpinned.Pins = &compile.Pins{ConfigMaps: configMaps}
	f := finder{sketch: render.NewSketch(&unpinned, t), p: &unpinned, target: t, seen: map[string]bool{}, found: map[string]*Float{},
		loose: map[Loose]bool{}, fixed: map[Fixed]bool{}, plain: map[string][]string{}}
	if clusters.More {
		f.say("overlays", "more than %d choices of them are not told apart", maxChoices)
	}
	f.look(nil, true)
	for i := range p.Overlays {
		f.look([]int{i}, true)
	}
	for _, c := range clusters.all {
		f.layered(c)
	}
	return f.floats()
}

// layered looks at all clusters that surely have some overlays, and maybe others.
func (f *finder) layered(c choice) {
	if len(c.maybe) > maxConditions {
		f.say("overlays", "more than %d with a condition for one cluster", maxConditions)
		c.maybe = nil
	}
	for mask := range 1 << len(c.maybe) {
		overlays := slices.Clone(c.sure)
		for i, overlay := range c.maybe {
			if mask&(1<<i) != 0 {
				overlays = append(overlays, overlay)
			}
		}
		slices.Sort(overlays)
		f.needed = len(c.maybe) == 0
		if key := fmt.Sprint(f.needed, overlays); !f.seen[key] && !f.seen[fmt.Sprint(true, overlays)] {
			f.seen[key] = true
			f.look(overlays, false)
		}
	}
}

// look looks at a cluster that has some overlays. written is true if that is what the set's author has written down: none, or one.
func (f *finder) look(overlays []int, written bool) {
	f.sketch.With(overlays)
	f.without, f.written = len(overlays) == 0, written
	named, all := map[string]bool{}, f.without
	for _, i := range overlays {
		o := &f.p.Overlays[i]
		all = all || len(o.Variables) > 0
		for name := range o.Addons {
			named[name] = true
		}
	}
	for i := range f.p.Addons {
		a := &f.p.Addons[i]
		if all || named[a.Name] {
			f.now = a.Name
			f.addon(a)
			continue
		}
		for _, key := range f.plain[a.Name] { // as without overlays, where it was found
			f.found[key].Got = f.found[key].Got || f.needed
		}
	}
}

// finder collects what floats.
type finder struct {
	sketch *render.Sketch // of the cluster that it looks at now, which has none of the overlays if without is true
	p      *compile.Program
	target render.Target
	found  map[string]*Float
	loose  map[Loose]bool
	fixed  map[Fixed]bool
	// plain are the keys of what each add-on follows without overlays; now is the add-on that it looks at.
	plain map[string][]string
	now   string
	// seen are the choices of overlays that it has looked at.
	seen map[string]bool
	// needed is true if a cluster gets what is found now, and written if the set's author has written it down.
	needed, written, without bool
}

// floats returns what was found, in a fixed order: what is needed first.
func (f *finder) floats() Floats {
	out := Floats{Loose: slices.SortedFunc(maps.Keys(f.loose), func(a, b Loose) int { return cmp.Compare(a.Text, b.Text) }),
		Fixed: slices.SortedFunc(maps.Keys(f.fixed), func(a, b Fixed) int {
			return cmp.Or(cmp.Compare(a.Addon, b.Addon), cmp.Compare(a.What, b.What))
		})}
	for _, key := range slices.Sorted(maps.Keys(f.found)) {
		one := f.found[key]
		one.Needed = one.Got && one.written
		out.Objects = append(out.Objects, *one)
	}
	slices.SortStableFunc(out.Objects, func(a, b Float) int { return order(a.Got) - order(b.Got) })
	return out
}

func order(first bool) int {
	if first {
		return 0
	}
	return 1
}

// say names what no revision can hold, if a cluster may get it.
func (f *finder) say(path, format string, args ...any) {
	f.loose[Loose{f.now, path + ": " + fmt.Sprintf(format, args...)}] = true
}

// decisive are the fields of a body that decide which chart or source an add-on has, and how often Flux looks for a new one.
var decisive = []string{"chart", "chartRef", "sourceRef", "interval"}

func (f *finder) addon(a *compile.Addon) {
	path := "addons[" + a.Name + "]." + compile.Field(a.Kind)
	yes, err := f.sketch.When(a)
	if err == nil && !yes {
		return
	}
	if needed := f.needed; err != nil { // it depends on the cluster
		f.needed = false
		defer func() { f.needed = needed }()
	}
	l, errs := f.sketch.Layers(a)
	if l.Excluded != "" {
		return
	}
	if len(errs) > 0 {
		f.say(path, "%s", errs)
		return
	}
	f.references(path, l.Body)
	if a.Kind == fluxspec.ManifestsKind {
		return
	}
	plain := map[string]any{}
	for _, field := range decisive {
		if v, ok := l.Body[field]; ok {
			plain[field] = v
		}
	}
	body, errs := f.sketch.Evaluate(a, plain)
	if len(errs) > 0 {
		for _, e := range errs {
			f.say("addons["+a.Name+"]."+e.Path, "an expression that differs from cluster to cluster, or fails")
		}
		return
	}
	if why := f.refused(a, body); why != "" {
		f.say(path, "%s", why)
		return
	}
	if f.p.UsesOrigin() && differs(plain) {
		f.say(path, "an expression beside others that read the cluster's origin")
		return
	}
	f.sourcesOf(a, path, body)
}

// refused says which source a body may not name, as when it is rendered: expressions and patches may have written what the set could not.
func (f *finder) refused(a *compile.Addon, body map[string]any) string {
	for _, ref := range fluxspec.AllReferences(a.Kind, body) {
		if _, ours := f.p.Own(ref); !ours && f.p.Team.RestrictsSources() {
			return compile.NotOwned(f.p.Team, ref)
		}
		if namespace, said := ref.Ref["namespace"]; said && namespace != f.target.Namespace && !f.p.Platform {
			return fmt.Sprintf("refers to namespace %v, which a set outside the platform namespaces may not", namespace)
		}
	}
	return ""
}

// differs returns whether a value holds an expression.
func differs(v any) bool {
	switch v := v.(type) {
	case string:
		return expression.Has(v)
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(v)), differs)
	case []any:
		return slices.ContainsFunc(v, differs)
	}
	return false
}

// references names what a body refers to by name, and Flux reads whenever it changes.
func (f *finder) references(path string, body map[string]any) {
	for _, at := range [][]string{{"valuesFrom"}, {"postBuild", "substituteFrom"}, {"manifestsFrom"}} {
		list, _, _ := unstructured.NestedFieldNoCopy(body, at...)
		refs, _ := list.([]any)
		for _, r := range refs {
			ref, _ := r.(map[string]any)
			f.say(path+"."+strings.Join(at, "."), "%v %v", ref["kind"], ref["name"])
		}
	}
}

// sourcesOf looks at the sources and the chart of an add-on.
func (f *finder) sourcesOf(a *compile.Addon, path string, body map[string]any) {
	var repository *flux.Shared
	name, _, _ := unstructured.NestedString(body, "chart", "spec", "sourceRef", "name")
	for _, ref := range fluxspec.AllReferences(a.Kind, body) {
		if s, ours := f.p.Own(ref); ours {
			shared, errs := f.sketch.Source(a, s)
			if len(errs) > 0 {
				f.say(path+"."+ref.Path, "%s", errs)
				return
			}
			f.ownSource(path+"."+ref.Path, s.Name, shared)
			repository = shared
			ref.Ref["kind"], ref.Ref["name"] = s.Kind, shared.Object.GetName()
			continue
		}
		if kind := ref.Ref["kind"]; kind != nil && kind != sourcev1.HelmRepositoryKind {
			f.say(path+"."+ref.Path, "%v %v, which is not one of spec.sources", kind, ref.Ref["name"])
		}
	}
	for _, p := range fluxspec.Check(a.Kind, body, f.sketch.Author()) {
		if field, _, _ := strings.Cut(p.Path, "."); slices.Contains(decisive, field) {
			f.say(path+"."+p.Path, "%s", p.Message)
			return
		}
	}
	if a.Kind != fluxspec.HelmReleaseKind {
		return
	}
	fluxspec.Default(a.Kind, body, a.Name, f.p.Team)
	chart, err := f.sketch.Chart(body)
	if err != nil {
		f.say(path, "%s", err)
	}
	if chart == nil || err != nil {
		return
	}
	spec := chart.Object.Object["spec"].(map[string]any)
	what := fmt.Sprintf("chart %v %v of HelmRepository %s", spec["chart"], spec["version"], name)
	if !pin.Follows(chart.Object) {
		if kind, _, _ := unstructured.NestedString(spec, "sourceRef", "kind"); kind == sourcev1.HelmRepositoryKind {
			f.fixed[Fixed{f.now, what}] = true // another source says itself what it follows
		}
		return
	}
	f.add(Float{Shared: *chart, Repository: repository, What: what})
}

func (f *finder) add(one Float) {
	there := f.found[one.Key()]
	if there == nil {
		there = &one
		f.found[one.Key()] = there
	}
	if f.without {
		f.plain[f.now] = append(f.plain[f.now], one.Key())
	}
	there.Got, there.written = there.Got || f.needed, there.written || f.written
	if at, found := slices.BinarySearch(there.Addons, f.now); !found {
		there.Addons = slices.Insert(there.Addons, at, f.now)
	}
}

// ownSource looks at one of the set's own sources.
func (f *finder) ownSource(path, name string, s *flux.Shared) {
	if include, _, _ := unstructured.NestedSlice(s.Object.Object, "spec", "include"); len(include) > 0 {
		f.say(path, "%s %s, which includes others", s.Object.GetKind(), name)
	}
	what := fmt.Sprintf("%s %s", s.Object.GetKind(), name)
	if !pin.Follows(s.Object) {
		if s.Object.GetKind() != sourcev1.HelmRepositoryKind {
			f.fixed[Fixed{f.now, pin.Reference(s.Object) + " of " + what}] = true
		}
		return
	}
	if why := pin.Unpinnable(s.Object); why != "" {
		f.say(path, "%s, %s", what, why)
		return
	}
	f.add(Float{Shared: *s, What: pin.Reference(s.Object) + " of " + what})
}
