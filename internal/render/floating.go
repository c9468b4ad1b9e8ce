// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/expression"
	"github.com/chandler-hub/chandler/internal/fluxspec"
)

// Float is an object that follows upstream: what it gives changes without a new revision of the set.
type Float struct {
	Shared
	// Repository is the set's own HelmRepository that a HelmChart refers to; nil if there is none.
	Repository *Shared
	// What says what it follows, for people.
	What string
	// Needed is true if a cluster gets it.
	Needed bool
}

// Key is how compile.Pins name it.
func (f *Float) Key() string { return pinKey(f.Object) }

func pinKey(u *unstructured.Unstructured) string {
	return compile.SourceKey(u.GetKind(), u.GetNamespace(), u.GetName())
}

// Floats are what changes without a new revision of a set.
type Floats struct {
	// Objects follow upstream, and a revision can hold them.
	Objects []Float
	// Loose names, by their paths, what no revision can hold.
	Loose []string
}

// Floating finds what changes without a new revision on the clusters with some labels. configMaps are the data of
// variablesFrom. What a cluster's own overrides and variables decide is none of it: they decide neither charts nor sources.
//
// Beside what the clusters get, it looks at what a cluster would get that has none of the overlays, or only one: a new cluster
// mostly is one of these, and what it gets is then known before.
func Floating(p *compile.Program, t Target, clusters []labels.Set, configMaps map[string]map[string]string) Floats {
	unpinned := *p
	unpinned.Pins = &compile.Pins{ConfigMaps: configMaps}
	f := finder{program: &unpinned, target: t, seen: map[string]bool{}}
	for _, set := range clusters {
		sure, maybe := layering(p, set)
		f.layered(sure, maybe)
	}
	f.likely = true
	f.layered(nil, nil)
	for i := range p.Overlays {
		f.layered([]int{i}, nil)
	}
	return f.found
}

// layering returns the overlays that the labels of a cluster choose, and those that have a condition beside.
func layering(p *compile.Program, set labels.Set) (sure, maybe []int) {
	for i := range p.Overlays {
		o := &p.Overlays[i]
		switch {
		case o.Selector != nil && !o.Selector.Matches(set):
		case o.When != nil:
			maybe = append(maybe, i)
		default:
			sure = append(sure, i)
		}
	}
	return sure, maybe
}

// maxConditions is how many overlays with conditions of one cluster are told apart.
const maxConditions = 4

// layered looks at all clusters that surely have some overlays, and maybe others.
func (f *finder) layered(sure, maybe []int) {
	if len(maybe) > maxConditions {
		f.say("overlays", "more than %d with a condition for one cluster", maxConditions)
		maybe = nil
	}
	for mask := range 1 << len(maybe) {
		overlays := slices.Clone(sure)
		for i, overlay := range maybe {
			if mask&(1<<i) != 0 {
				overlays = append(overlays, overlay)
			}
		}
		slices.Sort(overlays)
		f.needed = !f.likely && len(maybe) == 0
		if key := fmt.Sprint(f.needed, overlays); !f.seen[key] && !f.seen[fmt.Sprint(true, overlays)] {
			f.seen[key] = true
			f.look(overlays)
		}
	}
}

// look looks at a cluster that has some overlays.
func (f *finder) look(overlays []int) {
	p := f.program
	f.renderer = &renderer{p: p, t: f.target, in: &Input{}, out: &Result{}, sources: map[string]*Shared{}, team: p.Team, budgets: newBudgets()}
	_ = f.readConfigMaps() // what cannot be read makes expressions fail, which is said there
	for _, i := range overlays {
		f.overlays = append(f.overlays, &p.Overlays[i])
	}
	f.own = f.newScope(&f.budgets.own, nil, nil)
	f.scope = f.own
	for i := range p.Addons {
		f.addon(&p.Addons[i])
	}
}

// finder collects what floats.
type finder struct {
	*renderer // of the cluster that it looks at now
	program   *compile.Program
	target    Target
	found     Floats
	// seen are the choices of overlays that it has looked at.
	seen map[string]bool
	// likely is true once the clusters have been looked at. needed is true if a cluster gets what is found now.
	likely, needed bool
}

// say names what no revision can hold, if a cluster may get it.
func (f *finder) say(path, format string, args ...any) {
	text := path + ": " + fmt.Sprintf(format, args...)
	if !slices.Contains(f.found.Loose, text) {
		f.found.Loose = append(f.found.Loose, text)
	}
}

// decisive are the fields of a body that decide which chart or source an add-on has, and how often Flux looks for a new one.
var decisive = []string{"chart", "chartRef", "sourceRef", "interval"}

func (f *finder) addon(a *compile.Addon) {
	path := "addons[" + a.Name + "]." + compile.Field(a.Kind)
	l, errs := f.layers(a, nil)
	if l.excluded != "" {
		return
	}
	if len(errs) > 0 {
		f.say(path, "%s", errs)
		return
	}
	f.references(path, l.body)
	if a.Kind == fluxspec.ManifestsKind {
		return
	}
	plain := map[string]any{}
	for _, field := range decisive {
		if v, ok := l.body[field]; ok {
			plain[field] = v
		}
	}
	body, _, errs := f.evaluate(a, layered{body: plain})
	if len(errs) > 0 {
		for _, e := range errs {
			f.say("addons["+a.Name+"]."+e.Path, "an expression that differs from cluster to cluster, or fails")
		}
		return
	}
	if f.p.UsesOrigin() && differs(plain) {
		f.say(path, "an expression beside others that read the cluster's origin")
		return
	}
	f.sourcesOf(a, path, body)
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
	var repository *Shared
	name, _, _ := unstructured.NestedString(body, "chart", "spec", "sourceRef", "name")
	for _, ref := range fluxspec.AllReferences(a.Kind, body) {
		if s, ours := f.p.Own(ref); ours {
			shared, errs := f.source(a, s)
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
	if a.Kind != fluxspec.HelmReleaseKind {
		return
	}
	fluxspec.Default(a.Kind, body, a.Name, f.team)
	chart, err := f.shareChart(body)
	if err != nil {
		f.say(path, "%s", err)
	}
	if chart == nil || err != nil || !follows(chart.Object) {
		return
	}
	spec := chart.Object.Object["spec"].(map[string]any)
	what := fmt.Sprintf("chart %v %v of HelmRepository %s", spec["chart"], spec["version"], name)
	f.add(Float{Shared: *chart, Repository: repository, What: what})
}

func (f *finder) add(one Float) {
	one.Needed = f.needed
	at := slices.IndexFunc(f.found.Objects, func(o Float) bool { return o.Key() == one.Key() })
	if at < 0 {
		f.found.Objects = append(f.found.Objects, one)
		return
	}
	f.found.Objects[at].Needed = f.found.Objects[at].Needed || f.needed
}

// ownSource looks at one of the set's own sources.
func (f *finder) ownSource(path, name string, s *Shared) {
	if !follows(s.Object) {
		return
	}
	what := fmt.Sprintf("%s %s", s.Object.GetKind(), name)
	if why := unpinnable(s.Object); why != "" {
		f.say(path, "%s, %s", what, why)
		return
	}
	f.add(Float{Shared: *s, What: reference(s.Object) + " of " + what})
}

// reference says what a source follows.
func reference(u *unstructured.Unstructured) string {
	ref, _, _ := unstructured.NestedMap(u.Object, "spec", "ref")
	for _, field := range []string{"name", "semver", "tag", "branch"} { // the order in which Flux reads them, but for OCI's tag
		if v, ok := ref[field]; ok {
			return fmt.Sprintf("%s %v", field, v)
		}
	}
	if u.GetKind() == sourcev1.OCIRepositoryKind {
		return "tag latest"
	}
	return "branch " + defaultBranch
}

// defaultBranch is what Flux follows in a GitRepository without ref (fluxcd/pkg/git, DefaultBranch).
const defaultBranch = "master"

// follows returns whether what an object gives may change while its spec stays.
func follows(u *unstructured.Unstructured) bool {
	text := func(path ...string) string {
		s, _, _ := unstructured.NestedString(u.Object, append([]string{"spec"}, path...)...)
		return s
	}
	switch u.GetKind() {
	case sourcev1.HelmChartKind:
		return text("sourceRef", "kind") == sourcev1.HelmRepositoryKind && !exact(text("version"))
	case sourcev1.GitRepositoryKind:
		return text("ref", "commit") == ""
	case sourcev1.OCIRepositoryKind:
		return text("ref", "digest") == ""
	case sourcev1.BucketKind:
		return true
	}
	return false // a HelmRepository is an index: what a chart's version follows, the HelmChart does
}

// exact returns whether a chart version names one version. Charts write it with and without a v.
func exact(version string) bool {
	_, err := semver.StrictNewVersion(strings.TrimPrefix(version, "v"))
	return err == nil
}

// unpinnable says why a source that follows upstream cannot be held at what it has; "" if it can.
func unpinnable(u *unstructured.Unstructured) string {
	switch u.GetKind() {
	case sourcev1.BucketKind:
		return "which has no revisions to go back to"
	case sourcev1.GitRepositoryKind:
		mode, _, _ := unstructured.NestedString(u.Object, "spec", "verify", "mode")
		if mode != "" && !strings.EqualFold(mode, string(sourcev1.ModeGitHEAD)) {
			return "whose verified signature is that of a tag, and a commit has none"
		}
		name, _, _ := unstructured.NestedString(u.Object, "spec", "ref", "name")
		if name != "" && !strings.HasPrefix(name, branches) && !strings.HasPrefix(name, "refs/tags/") {
			return "whose ref.name is neither a branch nor a tag: Flux cannot fetch a commit from there"
		}
	}
	return ""
}

const branches = "refs/heads/"

// pinned returns the spec of a copy of an object that is held at a version, commit or digest.
//
// Flux takes the commit first, and the branch only says where to look for it; without a branch it fetches all of them
// (fluxcd/pkg/git/gogit, cloneCommit). It fetches them again at each interval, though nothing can change: so the copy has
// a long one. It looks at the digest of an OCIRepository first, too (source-controller, getArtifactRef).
func pinned(kind string, spec map[string]any, to string) map[string]any {
	out := maps.Clone(spec)
	ref, _ := spec["ref"].(map[string]any)
	switch kind {
	case sourcev1.HelmChartKind:
		out["version"] = to
	case sourcev1.OCIRepositoryKind:
		out["ref"] = map[string]any{"digest": to}
	case sourcev1.GitRepositoryKind:
		at := map[string]any{"commit": to}
		name, _ := ref["name"].(string)
		switch {
		case strings.HasPrefix(name, branches):
			at["branch"] = strings.TrimPrefix(name, branches)
		case name != "" || ref["tag"] != nil || ref["semver"] != nil: // on any branch
		case ref["branch"] != nil:
			at["branch"] = ref["branch"]
		default:
			at["branch"] = defaultBranch
		}
		out["ref"], out["interval"] = at, pinnedInterval
	}
	return out
}

const pinnedInterval = "1h"
