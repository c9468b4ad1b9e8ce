// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/status"
)

// AddonStory is what is told of one add-on everywhere.
type AddonStory struct {
	Addon string
	Query Query
	// Everywhere is the page of the clusters that have it.
	Everywhere string
	N          int
	Bar        Bar
	Sets       []Link
	Versions   []Version
	Overlays   []Overlay
	// Different are the clusters on which something is otherwise than on most.
	Different []Different
	Pager     Pager
	Notes     []string
}

// Link leads somewhere.
type Link struct{ Text, URL string }

// Version is a version, and how many clusters have it.
type Version struct {
	Version, URL string
	N            int
	Most         bool
	Bar          Bar
}

// Overlay is one that changes the add-on.
type Overlay struct {
	Set, Name, Selects string
	Excludes           bool
	// N is how many of the set's clusters it selects by their labels; Known is false if an expression decides.
	N     int
	Known bool
	URL   string
}

// Different is a cluster, and what is otherwise there.
type Different struct {
	Namespace, Name, URL string
	Class                Class
	State, Version, Set  string
	What                 []string
}

// site is a place where the add-on is.
type site struct {
	*cluster
	cell *cell
}

// Addon tells the story of an add-on; nil if no set has it and it is nowhere.
func (x *Index) Addon(name string, q Query) *AddonStory {
	s := &AddonStory{Addon: name, Query: q, Everywhere: Query{path: "/", Addon: name}.URL(), Notes: x.Notes}
	sites := x.sites(name)
	for _, set := range x.Sets {
		if slices.ContainsFunc(set.Spec.Addons, func(a hubv1.Addon) bool { return a.Name == name }) {
			s.Sets = append(s.Sets, Link{set.Namespace + "/" + set.Name, SetURL(set.Namespace, set.Name)})
			s.overlays(set, name, sites)
		}
	}
	if len(s.Sets) == 0 && len(sites) == 0 {
		return nil
	}
	slices.SortFunc(s.Sets, func(a, b Link) int { return cmp.Compare(a.Text, b.Text) })
	var counts [Off + 1]int
	for _, at := range sites {
		counts[ClassOf(at.cell.State)]++
	}
	s.N, s.Bar = len(sites), bar(counts, len(sites))
	most := s.versions(sites)
	s.different(x, sites, most)
	return s
}

func (x *Index) sites(addon string) []site {
	var out []site
	for _, c := range x.clusters {
		for i := range c.cells {
			if c.cells[i].Name == addon {
				out = append(out, site{c, &c.cells[i]})
			}
		}
	}
	return out
}

// versions counts them, and returns the one that most have.
func (s *AddonStory) versions(sites []site) string {
	type count struct {
		version string
		n       int
		classes [Off + 1]int
	}
	counts := map[string]*count{}
	var all []*count
	for _, at := range sites {
		class := ClassOf(at.cell.State)
		if class == Off {
			continue
		}
		n := counts[at.cell.Version]
		if n == nil {
			n = &count{version: at.cell.Version}
			counts[n.version], all = n, append(all, n)
		}
		n.n++
		n.classes[class]++
	}
	slices.SortFunc(all, func(a, b *count) int { return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.version, b.version)) })
	most := ""
	for _, n := range all {
		if n.version != "" {
			most = n.version
			break
		}
	}
	for _, n := range all[:min(perPage, len(all))] {
		v := Version{Version: excerpt.Cut(excerpt.Line(n.version), maxWhy), N: n.n,
			Most: n.version == most && most != "", Bar: bar(n.classes, n.n)}
		if n.version != "" {
			v.URL = Query{path: "/", Addon: s.Addon, Version: n.version}.URL()
		}
		s.Versions = append(s.Versions, v)
	}
	return most
}

// overlays are those of a set that change the add-on.
func (s *AddonStory) overlays(set *hubv1.AddonSet, addon string, sites []site) {
	for i := range set.Spec.Overlays {
		o := &set.Spec.Overlays[i]
		at := slices.IndexFunc(o.Addons, func(a hubv1.AddonOverlay) bool { return a.Name == addon })
		if at < 0 {
			continue
		}
		out := Overlay{Set: set.Namespace + "/" + set.Name, Name: o.Name, Excludes: o.Addons[at].Exclude != nil && *o.Addons[at].Exclude}
		selector := labels.Everything()
		if o.ClusterSelector != nil {
			var err error
			if selector, err = metav1.LabelSelectorAsSelector(o.ClusterSelector); err != nil {
				selector = labels.Nothing() // the hub says so of the set
			}
			out.Selects = selector.String()
			out.URL = Query{path: "/", Set: out.Set, Labels: out.Selects}.URL()
		}
		if out.Known = o.When == ""; !out.Known {
			out.Selects = excerpt.Cut(excerpt.Line(out.Selects+" when "+o.When), maxWhy)
		}
		for _, site := range sites {
			if site.reg != nil && site.cell.delivery.SetKey().String() == out.Set && selector.Matches(labels.Set(site.reg.Labels)) {
				out.N++
			}
		}
		s.Overlays = append(s.Overlays, out)
	}
}

// different finds the clusters on which something is otherwise, the worst first.
func (s *AddonStory) different(x *Index, sites []site, most string) {
	var all []Different
	revisions := revisions(sites)
	for _, at := range sites {
		key := at.cell.delivery.SetKey()
		d := Different{Namespace: at.key.Namespace, Name: at.key.Name, URL: ClusterAddonURL(at.key.Namespace, at.key.Name, s.Addon),
			Class: ClassOf(at.cell.State), State: string(at.cell.State), Version: excerpt.Cut(excerpt.Line(at.cell.Version), maxWhy),
			Set: key.String()}
		if d.Class != Ready {
			d.What = append(d.What, cmp.Or(excerpt.Cut(excerpt.Line(at.cell.Message), maxWhy), d.State))
		}
		if d.Class != Off && at.cell.Version != most {
			d.What = append(d.What, fmt.Sprintf("most have version %s", excerpt.Line(most)))
		}
		if usual := revisions[key]; at.cell.delivery.Spec.RevisionName != usual {
			d.What = append(d.What, fmt.Sprintf("it has revision %s, and most have %s", at.cell.delivery.Spec.RevisionName, usual))
		}
		if text := overridden(at.reg, s.Addon); text != "" {
			d.What = append(d.What, text)
		}
		if len(d.What) > 0 {
			all = append(all, d)
		}
	}
	slices.SortStableFunc(all, func(a, b Different) int { return cmp.Compare(a.Class, b.Class) })
	from, to, pager := s.Query.page(len(all), perPage)
	s.Different, s.Pager = all[from:to], pager
}

// revisions are those that most clusters of each set have.
func revisions(sites []site) map[types.NamespacedName]string {
	counts := map[types.NamespacedName]map[string]int{}
	for _, at := range sites {
		key := at.cell.delivery.SetKey()
		if counts[key] == nil {
			counts[key] = map[string]int{}
		}
		counts[key][at.cell.delivery.Spec.RevisionName]++
	}
	out := map[types.NamespacedName]string{}
	for key, names := range counts {
		best := 0
		for name, n := range names {
			if n > best || n == best && name > out[key] {
				out[key], best = name, n
			}
		}
	}
	return out
}

func overridden(reg *hubv1.ClusterRegistration, addon string) string {
	if reg == nil {
		return ""
	}
	for i := range reg.Spec.Overrides {
		o := &reg.Spec.Overrides[i]
		if o.Name != addon {
			continue
		}
		text := "its cluster overrides it"
		if o.Exclude {
			text = "its cluster excludes it"
		}
		if c := status.Find(reg, hubv1.OverridesRefusedCondition); c != nil {
			text += ", and an override of this cluster was refused"
		}
		if o.Reason != "" {
			text += ": " + excerpt.Cut(excerpt.Line(o.Reason), maxWhy)
		}
		return text
	}
	return ""
}
