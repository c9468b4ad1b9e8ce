// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/status"
)

// SetBar is the state of a set.
type SetBar struct {
	Name, URL string
	// Short is the name without its namespace, if all sets are in one.
	Short string
	Phase string
	Says  string
	Bar   Bar
	// Class is how it stands, and Attention whether its rollout waits for a person.
	Class     Class
	Attention bool
	// Failed is of how many clusters.
	Failed int
	Held   bool
}

// sets counts for each set the clusters by the worst state of its add-ons.
func (b *Board) sets(x *Index) {
	counts := map[types.NamespacedName]*[Off + 1]int{}
	for _, d := range x.Deliveries {
		n := counts[d.SetKey()]
		if n == nil {
			n = &[Off + 1]int{}
			counts[d.SetKey()] = n
		}
		n[classOf(d)]++
	}
	for _, s := range x.Sets {
		if b.Query.Set != "" && b.Query.Set != s.Namespace+"/"+s.Name {
			continue
		}
		b.Sets = append(b.Sets, b.setBar(s, counts[types.NamespacedName{Namespace: s.Namespace, Name: s.Name}]))
	}
	slices.SortFunc(b.Sets, func(a, b SetBar) int {
		return cmp.Or(cmp.Compare(a.Class, b.Class), cmp.Compare(b.Failed, a.Failed), cmp.Compare(a.Name, b.Name))
	})
	if !slices.ContainsFunc(x.Sets, func(s *hubv1.AddonSet) bool { return s.Namespace != x.Sets[0].Namespace }) {
		for i := range b.Sets {
			_, b.Sets[i].Short, _ = strings.Cut(b.Sets[i].Name, "/")
		}
	}
	b.allSets = b.Sets
	b.MoreSets = max(0, len(b.Sets)-maxSets)
	b.Sets = b.Sets[:len(b.Sets)-b.MoreSets]
}

// classOf returns the class of the worst add-on of a delivery.
func classOf(d *hubv1.AddonDelivery) Class {
	if d.DeletionTimestamp != nil || len(d.Status.Addons) == 0 {
		return Busy
	}
	class := Off
	for i := range d.Status.Addons {
		class = min(class, ClassOf(d.Status.Addons[i].State))
	}
	return class
}

func (b *Board) setBar(s *hubv1.AddonSet, counts *[Off + 1]int) SetBar {
	if counts == nil {
		counts = &[Off + 1]int{}
	}
	n := 0
	for _, k := range counts {
		n += k
	}
	if c := s.Status.Clusters; c != nil && int(c.Matched) > n {
		counts[Busy] += int(c.Matched) - n
		n = int(c.Matched)
	}
	name := s.Namespace + "/" + s.Name
	out := SetBar{Name: name, Short: name, URL: SetURL(s.Namespace, s.Name), Bar: bar(*counts, n), Failed: counts[Failed], Class: Ready}
	if r := s.Status.Rollout; r != nil {
		if out.Phase, out.Class = string(r.Phase), ClassOfPhase(r.Phase); r.WaitingFor != "" {
			out.Says = excerpt.Cut(excerpt.Line("waits for "+strings.ReplaceAll(r.WaitingFor, "`", "")), maxWhy) // a page shows no backticks
		}
	}
	if c := status.Find(s, hubv1.StalledCondition); c != nil {
		out.Phase, out.Says, out.Class = "Stalled", excerpt.Cut(excerpt.Line(c.Message), maxWhy), Failed
	}
	out.Attention = out.Class <= Trouble
	if h := s.Status.HeldRemovals; h != nil {
		out.Held, out.Class = true, min(out.Class, Trouble)
		out.Says = excerpt.Line("Removals from " + status.Count(h.Count, "cluster") + " need approval. " + out.Says)
	}
	return out
}
