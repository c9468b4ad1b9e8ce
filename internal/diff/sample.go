// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/inflate"
	"github.com/chandler-hub/chandler/internal/preview"
	"github.com/chandler-hub/chandler/internal/status"
)

// Pick is a cluster that the change is tried on.
type Pick struct {
	Cluster string
	// Clusters is how many clusters it stands for, itself among them. Where is as that of their group.
	Clusters int
	Where    string
	// Changes are those of its group.
	Changes []Change
}

// Sample chooses the clusters that the change is tried on: those that are named, or one of each group, and one of all groups that differ in
// values alone. Of equal clusters it prefers one that answers and is Ready, and then the first name. It returns at most so many, those of
// the biggest groups first; left says what is not tried for that.
func (r *Result) Sample(names []string, most int) (picks []Pick, left string, err error) {
	if len(names) == 0 {
		picks = r.oneOfEach()
	} else if picks, err = r.named(names); err != nil {
		return nil, "", err
	}
	if len(picks) <= most {
		return picks, "", nil
	}
	clusters := 0
	for _, p := range picks[most:] {
		clusters += p.Clusters
	}
	left = fmt.Sprintf("only the first %d clusters of the sample are tried, and %s, which stand for %s, are not: name clusters by --cluster",
		most, status.Count(len(picks)-most, "other"), status.Count(clusters, "cluster"))
	return picks[:most], left, nil
}

func (r *Result) oneOfEach() []Pick {
	var out []Pick
	for _, alike := range r.folds() {
		var all []string
		for _, g := range alike {
			all = append(all, g.Clusters...)
		}
		best := slices.MinFunc(all, func(a, b string) int { return cmp.Or(cmp.Compare(r.standing[a], r.standing[b]), cmp.Compare(a, b)) })
		g := alike[slices.IndexFunc(alike, func(g *Group) bool { return slices.Contains(g.Clusters, best) })]
		p := Pick{Cluster: best, Clusters: len(all), Where: g.Where, Changes: g.Changes}
		if len(alike) > 1 {
			p.Where = fmt.Sprintf("%d groups that differ in values", len(alike))
		}
		out = append(out, p)
	}
	return out
}

// named returns the clusters with these names, which are NAME or NAMESPACE/NAME. A cluster on which nothing changes has no changes.
func (r *Result) named(names []string) ([]Pick, error) {
	var out []Pick
	for _, name := range names {
		var found []string
		for _, c := range r.clusters {
			if c == name || !strings.Contains(name, "/") && strings.HasSuffix(c, "/"+name) {
				found = append(found, c)
			}
		}
		switch {
		case len(found) == 0:
			return nil, fmt.Errorf("--cluster: there is no cluster %q on either side", name)
		case len(found) > 1:
			return nil, fmt.Errorf("--cluster: there are %d clusters called %q: write one of %s", len(found), name, list(found))
		case slices.ContainsFunc(out, func(p Pick) bool { return p.Cluster == found[0] }):
			continue
		}
		p := Pick{Cluster: found[0], Clusters: 1}
		if g := slices.IndexFunc(r.Groups, func(g Group) bool { return slices.Contains(g.Clusters, found[0]) }); g >= 0 {
			p.Clusters, p.Where, p.Changes = len(r.Groups[g].Clusters), r.Groups[g].Where, r.Groups[g].Changes
		}
		out = append(out, p)
	}
	if len(out) == 0 {
		return nil, errors.New("--cluster: write the names of clusters")
	}
	return out, nil
}

// Move is a change of one cluster, with the Flux object before and after; nil where there is none.
type Move struct {
	Change
	Old, New *preview.Item
	pair     *preview.Pair
}

// Object returns one of the two with all that belongs to it.
func (m *Move) Object(item *preview.Item) *inflate.Object { return object(m.pair, item) }

// Moves computes once more what changes on one cluster and does something to its objects.
func (r *Result) Moves(cluster string) (out []Move) {
	p := r.Pair(cluster)
	if p == nil {
		return nil
	}
	for _, one := range r.computing.changes(p) {
		if one.touches() {
			out = append(out, Move{Change: one, Old: one.old, New: one.next, pair: p})
		}
	}
	return out
}

// Pair computes once more what one cluster has, and what it is to have; nil if it is not known.
func (r *Result) Pair(cluster string) *preview.Pair { return r.computing.cmp.One(cluster) }

// ByTeam returns whether a Team governs the sets of a namespace.
func (r *Result) ByTeam(namespace string) bool { return r.computing.cmp.ByTeam(namespace) }

// How well a cluster stands, as far as the files say it. Those that say nothing are between those that answer and those that do not.
const (
	standsWell = iota - 1
	standsUnknown
	standsPaused
	standsBad
)

// standingOf says how likely a cluster is to answer.
func standingOf(p *preview.Pair) int {
	reg := p.After
	if reg == nil {
		reg = p.Before
	}
	reachable, ready := status.Find(reg, hubv1.ReachableCondition), status.Find(reg, hubv1.ReadyCondition)
	switch {
	case reachable != nil && reachable.Status != "True":
		return standsBad
	case p.Paused != "":
		return standsPaused
	case reachable == nil || ready == nil || ready.Status != "True":
		return standsUnknown
	}
	return standsWell
}
