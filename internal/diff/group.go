// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/chandler-hub/chandler/internal/status"
)

// groups are clusters by what they have in common.
type groups struct {
	by map[[32]byte]*group
	// total is how many clusters there are, and labels how many of them have a label with a value.
	total  int
	labels map[label]int
}

type label struct{ name, value string }

type group struct {
	kind, text string
	changes    []Change
	clusters   []string
	// common are the labels that all of them have.
	common map[string]string
}

func newGroups() *groups { return &groups{by: map[[32]byte]*group{}, labels: map[label]int{}} }

// know counts a cluster.
func (g *groups) know(labels map[string]string) {
	g.total++
	for k, v := range labels {
		g.labels[label{k, v}]++
	}
}

// add adds a cluster to its group. What is a text, or changes.
func (g *groups) add(kind string, what any, cluster string, labels map[string]string) {
	raw, err := json.Marshal([]any{kind, what})
	if err != nil {
		panic(err) // texts, and JSON
	}
	key := sha256.Sum256(raw)
	one := g.by[key]
	if one == nil {
		one = &group{kind: kind, common: maps.Clone(labels)}
		switch what := what.(type) {
		case string:
			one.text = what
		case []Change:
			one.changes = what
		}
		g.by[key] = one
	}
	one.clusters = append(one.clusters, cluster)
	for k, v := range one.common {
		if there, ok := labels[k]; !ok || there != v {
			delete(one.common, k)
		}
	}
}

// sorted returns the groups, the biggest first.
func (g *groups) sorted() []*group {
	return slices.SortedFunc(maps.Values(g.by), func(a, b *group) int {
		return cmp.Or(cmp.Compare(len(b.clusters), len(a.clusters)), cmp.Compare(a.clusters[0], b.clusters[0]), cmp.Compare(a.kind, b.kind),
			cmp.Compare(a.text, b.text))
	})
}

// where says which clusters a group has, if one label says exactly that: that of people rather than that of the hub, and a short one
// rather than a long one.
func (g *groups) where(one *group) string {
	if len(one.clusters) == g.total {
		return "all"
	}
	if len(one.clusters) == 1 {
		return ""
	}
	var fit []string
	for k, v := range one.common {
		if g.labels[label{k, v}] == len(one.clusters) {
			fit = append(fit, k+"="+v)
		}
	}
	if len(fit) == 0 {
		return ""
	}
	return slices.MinFunc(fit, func(a, b string) int {
		return cmp.Or(cmp.Compare(strings.Count(a, "/"), strings.Count(b, "/")), cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	})
}

// name says which clusters a group has.
func (g *groups) name(one *group) string { return named(one.clusters, g.where(one)) }

// few is how many clusters a text names.
const few = 3

// named says which clusters these are, in one line.
func named(clusters []string, where string) string {
	n := status.Count(len(clusters), "cluster")
	switch {
	case len(clusters) == 1:
		return "cluster " + clusters[0]
	case where == "all":
		return fmt.Sprintf("all %s", n)
	case where != "":
		return fmt.Sprintf("%s (%s)", n, where)
	}
	return fmt.Sprintf("%s (%s)", n, list(clusters))
}

func list(clusters []string) string {
	if len(clusters) <= few {
		return strings.Join(clusters, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(clusters[:few], ", "), len(clusters)-few)
}
