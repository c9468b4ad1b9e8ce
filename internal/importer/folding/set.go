// SPDX-License-Identifier: Apache-2.0

package folding

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/expression"
	"github.com/chandler-hub/chandler/internal/fluxspec"
)

// set is the add-ons that the same clusters have.
type set struct {
	home     string
	name     string
	clusters []*Cluster
	groups   []*group
	object   *hubv1.AddonSet
	// wrong are members that cannot be written.
	wrong map[*member]string
}

// build makes sets of the members: one for each list of clusters that has add-ons of its own.
func (f *folder) build(members []*member) []*set {
	found := map[string]*set{}
	var out []*set
	all := groups(members, f.addonsTaken())
	for _, g := range all {
		var clusters []*Cluster
		key := g.home
		for _, m := range g.members {
			clusters = append(clusters, m.cluster)
			key += " " + m.cluster.String()
		}
		s := found[key]
		if s != nil && len(s.groups) == maxAddons {
			s = nil
		}
		if s == nil {
			s = &set{home: g.home, clusters: clusters, wrong: map[*member]string{}}
			found[key], out = s, append(out, s)
		}
		s.groups, g.set = append(s.groups, g), s
	}
	f.nameSets(out)
	of := map[string]*group{}
	for _, g := range all {
		for _, m := range g.members {
			of[m.key()] = g
		}
	}
	for _, s := range out {
		f.write(s, of)
	}
	return out
}

// addonsTaken returns the names of the add-ons of the sets that exist.
func (f *folder) addonsTaken() map[string]bool {
	out := map[string]bool{}
	for i := range f.in.Sets {
		for _, a := range f.in.Sets[i].Spec.Addons {
			out[a.Name] = true
		}
	}
	return out
}

// maxAddons is how many add-ons a set may have.
const maxAddons = 100

// nameSets names sets by what selects their clusters.
func (f *folder) nameSets(sets []*set) {
	taken := map[string]bool{}
	for i := range f.in.Sets {
		taken[f.in.Sets[i].Namespace+"/"+f.in.Sets[i].Name] = true
	}
	for _, s := range sets {
		name := "fleet"
		reached := f.reached(s.home)
		if len(s.clusters) == 1 && len(reached) > 1 {
			name = label(shortName(s.clusters[0]))
		} else if _, value, ok := explains(s.clusters, reached); ok && len(s.clusters) < len(reached) {
			name = cmp.Or(label(value), name)
		}
		s.name = cmp.Or(name, "fleet")
		for i := 2; taken[s.home+"/"+s.name]; i++ {
			s.name = fmt.Sprintf("%s-%d", name, i)
		}
		taken[s.home+"/"+s.name] = true
	}
}

// shortName returns what people call a cluster.
func shortName(c *Cluster) string {
	if short := tokensOf(c)[1].name; short != "" {
		return short
	}
	if strings.HasSuffix(c.Name, "kubeconfig") {
		return c.Namespace
	}
	return c.Name
}

// reached returns the known clusters that the sets of a namespace may select.
func (f *folder) reached(home string) []*Cluster {
	var out []*Cluster
	for _, c := range f.clusters.known() {
		if f.reach(home).To(c.registration()) {
			out = append(out, c)
		}
	}
	return out
}

// explains returns a label that exactly some clusters have, of all that could be selected.
func explains(some, all []*Cluster) (key, value string, ok bool) {
	for _, k := range slices.Sorted(maps.Keys(some[0].Labels)) {
		v := some[0].Labels[k]
		if strings.HasPrefix(k, "chandler.dev/") || len(some) < 2 || v == "" {
			continue
		}
		n := 0
		for _, c := range all {
			if c.Labels[k] == v {
				n++
			}
		}
		has := !slices.ContainsFunc(some, func(c *Cluster) bool { return c.Labels[k] != v })
		if has && n == len(some) {
			return k, v, true
		}
	}
	return "", "", false
}

// selection returns what selects exactly some clusters of all: a label, or their names. when is an expression that has to
// hold as well, since names alone would select more.
func selection(some, all []*Cluster) (selector *metav1.LabelSelector, when string) {
	if k, v, ok := explains(some, all); ok {
		return &metav1.LabelSelector{MatchLabels: map[string]string{k: v}}, ""
	}
	var names, full []string
	long := false
	for _, c := range some {
		names, full = append(names, c.Name), append(full, "'"+c.String()+"'")
		long = long || len(c.Name) > validation.LabelValueMaxLength
	}
	slices.Sort(names)
	names = slices.Compact(names)
	n := 0
	for _, c := range all {
		if slices.Contains(names, c.Name) {
			n++
		}
	}
	if n > len(some) || long {
		when = "<< (cluster.namespace + '/' + cluster.name) in [" + strings.Join(full, ", ") + "] >>"
	}
	switch {
	case long:
		return nil, when
	case len(names) == 1:
		return &metav1.LabelSelector{MatchLabels: map[string]string{hubv1.NameLabel: names[0]}}, when
	}
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: hubv1.NameLabel, Operator: metav1.LabelSelectorOpIn, Values: names}}}, when
}

// write makes the AddonSet.
func (f *folder) write(s *set, of map[string]*group) {
	s.object = &hubv1.AddonSet{}
	s.object.APIVersion, s.object.Kind = hubv1.GroupVersion.String(), "AddonSet"
	s.object.Namespace, s.object.Name = s.home, s.name
	spec := &s.object.Spec
	var when string
	if spec.ClusterSelector, when = selection(s.clusters, f.reached(s.home)); spec.ClusterSelector == nil {
		spec.SelectAll = true
	}
	o := overlays{of: map[string][]located{}, clusters: map[string][]*Cluster{}}
	for _, g := range s.groups {
		addon := hubv1.Addon{Name: g.name, When: when, DependsOn: s.dependencies(g, of)}
		if !f.in.NotHere {
			addon.Adopt = s.adoption(g)
		}
		n := g.base()
		setBody(&addon.AddonBody, g.kind, n.write())
		addon.Metadata = g.metadata()
		for i, m := range g.members {
			o.add(g, m.cluster, n.changes(i, value{true, m.body}, nil))
		}
		spec.Addons = append(spec.Addons, addon)
	}
	s.keepMetadata(f.author(s))
	spec.Overlays = o.write(s)
	spec.Variables = s.variables(f.words)
	for i := range spec.Overlays {
		for _, a := range spec.Overlays[i].Addons {
			if len(a.Patches) > maxOverlays {
				s.blame(fmt.Sprintf("overlay %q of its set would need %d patches, and %d are the most", spec.Overlays[i].Name, len(a.Patches),
					maxOverlays))
			}
		}
		when = cmp.Or(when, spec.Overlays[i].When)
		if len(spec.Overlays[i].When) > maxWhen {
			when = spec.Overlays[i].When
		}
	}
	if len(when) > maxWhen {
		s.blame("names alone do not tell its clusters from others, and there are too many of them to name them with their namespaces: give " +
			"them a label")
	}
	if len(spec.Overlays) > maxOverlays {
		s.blame(fmt.Sprintf("its set %q would need %d overlays, and %d are the most", s.name, len(spec.Overlays), maxOverlays))
	}
}

// maxWhen is how long a condition may be.
const maxWhen = 4096

// maxOverlays is how many overlays a set may have, and how many patches an add-on in one.
const maxOverlays = 100

func (s *set) blame(why string) {
	for _, g := range s.groups {
		g.blame(why)
	}
}

func (g *group) blame(why string) {
	for _, m := range g.members {
		if g.set.wrong[m] == "" {
			g.set.wrong[m] = why
		}
	}
}

func (g *group) base() *node {
	values, tokens := make([]value, len(g.members)), tokensOfAll(g.members)
	for i, m := range g.members {
		values[i] = value{true, m.body}
	}
	if len(values) == 1 {
		return whole(values[0].v)
	}
	return fields(values, tokens)
}

// dependencies returns the add-ons that those of a group wait for.
func (s *set) dependencies(g *group, of map[string]*group) []hubv1.AddonReference {
	refs := func(m *member) []hubv1.AddonReference {
		var out []hubv1.AddonReference
		for _, need := range m.needs {
			other := of[need]
			ref := hubv1.AddonReference{Name: other.name}
			if other.set != s {
				ref.AddonSet = other.set.name
			}
			out = append(out, ref)
		}
		slices.SortFunc(out, func(a, b hubv1.AddonReference) int {
			return cmp.Or(cmp.Compare(a.AddonSet, b.AddonSet), cmp.Compare(a.Name, b.Name))
		})
		return out
	}
	first := refs(g.members[0])
	for _, m := range g.members {
		if !slices.Equal(first, refs(m)) {
			s.wrong[m] = "spec.dependsOn names objects that are other add-ons than on other clusters: write the add-on by hand"
		}
		if len(first) > maxDependencies {
			s.wrong[m] = fmt.Sprintf("spec.dependsOn names %d objects, and an add-on waits for %d at the most", len(first), maxDependencies)
		}
	}
	return first
}

const maxDependencies = 16

// adoption returns what names the object of each cluster.
func (s *set) adoption(g *group) *hubv1.Adoption {
	out := &hubv1.Adoption{Name: s.each(g, func(m *member) string { return m.GetName() })}
	if slices.ContainsFunc(g.members, func(m *member) bool { return m.GetNamespace() != s.home }) {
		out.Namespace = s.each(g, func(m *member) string { return m.GetNamespace() })
	}
	return out
}

// maxExpression is how long a name that holds expressions may be.
const maxExpression = 1024

// each returns a text that is what each member says: the same, or with the cluster's name in it, or else by a table.
func (s *set) each(g *group, text func(*member) string) string {
	values, tokens := make([]value, len(g.members)), make([][]token, len(g.members))
	for i, m := range g.members {
		values[i], tokens[i] = value{true, text(m)}, tokensOf(m.cluster)
	}
	if all(values, func(v value) bool { return v.v == values[0].v }) {
		return expression.Escape(text(g.members[0]))
	}
	if out, ok := common(values, tokens); ok {
		return out.(string) //nolint:forcetypeassert // the template of a text is one
	}
	names := map[string]bool{}
	for _, m := range g.members {
		names[m.cluster.Name] = true
	}
	key, of := "cluster.name", func(c *Cluster) string { return c.Name }
	if len(names) < len(g.members) {
		key, of = "cluster.namespace + '/' + cluster.name", (*Cluster).String
	}
	var rows []string
	for _, m := range g.members {
		rows = append(rows, fmt.Sprintf("'%s': '%s'", of(m.cluster), text(m)))
	}
	out := "<< {" + strings.Join(rows, ", ") + "}[" + key + "] >>"
	if len(out) > maxExpression {
		g.blame("the objects of this add-on are called otherwise on each cluster, and adopt has no room for so many names: write their " +
			"sets by hand")
		return "x"
	}
	return out
}

func setBody(b *hubv1.AddonBody, kind string, v any) {
	raw, err := json.Marshal(v)
	if err != nil { // it was read from JSON
		panic(err)
	}
	raw = filled(raw)
	if kind == fluxspec.HelmReleaseKind {
		b.HelmRelease = &apiextensionsv1.JSON{Raw: raw}
		return
	}
	b.Kustomization = &apiextensionsv1.JSON{Raw: raw}
}

// located is a change of an add-on.
type located struct {
	*group
	change
}

// overlays collects what differs, by the clusters that it is the same on.
type overlays struct {
	order    []string
	of       map[string][]located // by what it is
	clusters map[string][]*Cluster
}

func (o *overlays) add(g *group, c *Cluster, changes []change) {
	for _, x := range changes {
		id := g.name + " " + x.id()
		if o.of[id] == nil {
			o.order, o.of[id] = append(o.order, id), []located{{g, x}}
		}
		o.clusters[id] = append(o.clusters[id], c)
	}
}

// write returns one overlay for each list of clusters.
func (o *overlays) write(s *set) []hubv1.Overlay {
	type entry struct {
		clusters []*Cluster
		changes  []located
	}
	found := map[string]*entry{}
	var order []string
	for _, id := range o.order {
		key := fmt.Sprint(o.clusters[id])
		if found[key] == nil {
			found[key] = &entry{clusters: o.clusters[id]}
			order = append(order, key)
		}
		found[key].changes = append(found[key].changes, o.of[id]...)
	}
	var out []hubv1.Overlay
	taken := map[string]bool{}
	for _, key := range order {
		e := found[key]
		overlay := hubv1.Overlay{Name: overlayName(e.clusters, s.clusters, taken)}
		overlay.ClusterSelector, overlay.When = selection(e.clusters, s.clusters)
		overlay.Addons = addonOverlays(e.changes)
		out = append(out, overlay)
	}
	slices.SortStableFunc(out, func(a, b hubv1.Overlay) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

func overlayName(some, all []*Cluster, taken map[string]bool) string {
	name := "some"
	if _, value, ok := explains(some, all); ok {
		name = cmp.Or(label(value), name)
	} else if len(some) == 1 {
		name = cmp.Or(label(shortName(some[0])), name)
	}
	out := name
	for i := 2; taken[out]; i++ {
		out = fmt.Sprintf("%s-%d", name, i)
	}
	taken[out] = true
	return out
}

// addonOverlays writes changes as merges, and as patches where a merge cannot: within Helm values a null is a value.
func addonOverlays(changes []located) []hubv1.AddonOverlay {
	var out []hubv1.AddonOverlay
	for i := 0; i < len(changes); {
		g := changes[i].group
		a := hubv1.AddonOverlay{Name: g.name}
		body := map[string]any{}
		for ; i < len(changes) && changes[i].group == g; i++ {
			c := changes[i].change
			inValues := g.kind == fluxspec.HelmReleaseKind && len(c.path) > 1 && c.path[0] == "values"
			switch {
			case c.remove && inValues:
				a.Patches = append(a.Patches, hubv1.PatchOperation{Op: "remove", Path: pointer(c.path)})
			case c.remove:
				_ = unstructured.SetNestedField(body, nil, c.path...) // its parents are objects here
			default:
				_ = unstructured.SetNestedField(body, expression.EscapeAll(c.value), c.path...) // the same
			}
		}
		if len(body) > 0 {
			setBody(&a.AddonBody, g.kind, body)
		}
		out = append(out, a)
	}
	return out
}

// pointer writes a path as RFC 6901 does.
func pointer(path []string) string {
	var b strings.Builder
	for _, p := range path {
		b.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(p))
	}
	return b.String()
}

// author returns who writes the sets of a namespace.
func (f *folder) author(s *set) compile.Author { return f.reach(s.home).Author(s.name) }
