// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/utils/ptr"
)

// Head is the head of a column that a table can be sorted by.
type Head struct {
	Text, URL string
	// Order is ascending or descending if the table is sorted by it, and empty if not.
	Order string
}

// Head returns the head of a column. A click sorts by it, the next one the other way round.
func (q Query) Head(key, text string) Head {
	h := Head{Text: text}
	to := key
	switch q.Sort {
	case key:
		h.Order, to = "ascending", "-"+key
	case "-" + key:
		h.Order, to = "descending", ""
	}
	h.URL = q.with(func(q *Query) { q.Sort = to })
	return h
}

// sorted sorts by a key, as an address says it. What it does not know it leaves as it is: the worst first.
func sorted[T any](rows []T, by string, keys map[string]func(a, b T) int) {
	name, reverse := strings.CutPrefix(by, "-")
	compare := keys[name]
	if compare == nil {
		return
	}
	slices.SortStableFunc(rows, func(a, b T) int {
		if reverse {
			a, b = b, a
		}
		return compare(a, b)
	})
}

func sortClusters(rows []*cluster, by string) {
	versions := map[string]*version.Version{}
	parsed := func(c *cluster) *version.Version {
		text := ""
		if c.reg != nil {
			text = c.reg.Status.KubernetesVersion
		}
		v, ok := versions[text]
		if !ok {
			if v, _ = version.ParseGeneric(text); v == nil {
				v = version.MajorMinor(0, 0)
			}
			versions[text] = v
		}
		return v
	}
	sorted(rows, by, map[string]func(a, b *cluster) int{
		"name":  func(a, b *cluster) int { return compareKeys(a.key, b.key) },
		"state": func(a, b *cluster) int { return cmp.Compare(a.class, b.class) },
		// What is not known is the zero time, and comes last.
		"since": func(a, b *cluster) int {
			return ptr.Deref(b.since, metav1.Time{}).Compare(ptr.Deref(a.since, metav1.Time{}).Time)
		},
		"ready": func(a, b *cluster) int {
			aReady, aTotal := a.counts()
			bReady, bTotal := b.counts()
			return cmp.Compare(bTotal-bReady, aTotal-aReady)
		},
		"version": func(a, b *cluster) int {
			switch {
			case parsed(a).LessThan(parsed(b)):
				return -1
			case parsed(b).LessThan(parsed(a)):
				return 1
			}
			return 0
		},
	})
}

// sortGroups sorts groups: those with most failures first, unless the reader wants another order.
func sortGroups(all []*Group, by string) {
	slices.SortFunc(all, func(a, b *Group) int {
		return cmp.Or(cmp.Compare(b.counts[Failed], a.counts[Failed]), cmp.Compare(a.Class, b.Class), cmp.Compare(a.Value, b.Value))
	})
	sorted(all, by, map[string]func(a, b *Group) int{
		"name":     func(a, b *Group) int { return cmp.Compare(a.Value, b.Value) },
		"clusters": func(a, b *Group) int { return cmp.Compare(b.N, a.N) },
	})
}

const (
	// maxValues is how many values a label may have for each of them to be suggested.
	maxValues = 12
	// maxTerms is how many beginnings of selectors are suggested.
	maxTerms = 150
)

// suggest counts labels and add-ons, for those who choose from them.
func (x *Index) suggest() {
	keys, values := map[string]int{}, map[string]map[string]bool{}
	for _, reg := range x.Registrations {
		for k, v := range reg.Labels {
			if keys[k]++; values[k] == nil {
				values[k] = map[string]bool{}
			}
			if len(values[k]) <= maxValues {
				values[k][v] = true
			}
		}
	}
	// Those of most clusters come first: one cluster with many labels takes no place in the choice from the others.
	x.labels = slices.SortedFunc(maps.Keys(keys), func(a, b string) int {
		return cmp.Or(cmp.Compare(keys[b], keys[a]), cmp.Compare(a, b))
	})
	for _, k := range x.labels[:min(maxLabels, len(x.labels))] {
		x.terms = append(x.terms, k)
		if len(values[k]) > maxValues {
			continue
		}
		for _, v := range slices.Sorted(maps.Keys(values[k])) {
			x.terms = append(x.terms, fmt.Sprintf("%s=%s", k, v))
		}
	}
	x.terms = x.terms[:min(maxTerms, len(x.terms))]
	names := map[string]bool{}
	for _, s := range x.Sets {
		for i := range s.Spec.Addons {
			names[s.Spec.Addons[i].Name] = true
		}
	}
	x.addons = slices.Sorted(maps.Keys(names))
	x.addons = x.addons[:min(maxTerms, len(x.addons))]
}
