// SPDX-License-Identifier: Apache-2.0

package view

import (
	"slices"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/page"
	"github.com/chandler-hub/chandler/internal/rolloutview"
	"github.com/chandler-hub/chandler/internal/status"
)

// HeldSet is a set whose guard holds removals.
type HeldSet struct {
	Name, URL string
	N         int32
	Since     *Time
	Sample    []string
}

// Holding returns how many sets hold removals.
func (x *Index) Holding() (n int) {
	for _, s := range x.Sets {
		if s.Status.HeldRemovals != nil {
			n++
		}
	}
	return n
}

// HeldSets lists the sets whose guards hold something.
func (x *Index) HeldSets(q Query, now Time) []HeldSet {
	var out []HeldSet
	for _, s := range x.Sets {
		h := s.Status.HeldRemovals
		if h == nil {
			continue
		}
		row := HeldSet{Name: s.Namespace + "/" + s.Name, URL: SetURL(s.Namespace, s.Name, "removals"), N: h.Count}
		if h.Since != nil {
			row.Since = TimeOf(&h.Since.Time, now.Now)
		}
		for _, text := range h.Sample {
			row.Sample = append(row.Sample, excerpt.Line(text))
		}
		out = append(out, row)
	}
	slices.SortFunc(out, func(a, b HeldSet) int { return int(b.N - a.N) })
	return out
}

// Held is what the guard of a set holds.
type Held struct {
	Namespace, Name, URL, Back string
	N                          int32
	Since                      *Time
	Hash                       string
	// Exact is true if Losses are exactly what the hub asks about.
	Exact  bool
	Losses []Loss
	Pager  Pager
	// Undo says how it goes on if it is not intended.
	Undo    string
	Notes   []string
	MayNot  bool
	Given   string
	Problem string
}

// Loss is an add-on that would go from a cluster, or be reinstalled there.
type Loss struct {
	Cluster, URL, Addon, Version, What string
	Class                              Class
	State                              string
}

// NewHeld lists exactly what would go.
func NewHeld(in *rolloutview.Input, q Query, may bool, problem string) *Held {
	set := in.Set
	h := &Held{Namespace: set.Namespace, Name: set.Name, URL: SetURL(set.Namespace, set.Name, "removals"),
		Back:  SetURL(set.Namespace, set.Name),
		Notes: in.Notes, MayNot: !may, Problem: excerpt.Line(problem), Given: excerpt.Line(set.Annotations[hubv1.ApproveRemovalAnnotation])}
	held := set.Status.HeldRemovals
	if held == nil {
		return h
	}
	h.N, h.Hash, h.Undo = held.Count, held.Hash, "undo the edit of the set, or of a cluster's labels, and the hub drops this list"
	if set.DeletionTimestamp != nil {
		h.Undo = "set spec.deletionPolicy to Orphan, and apply the set again when it is gone: it goes on with what runs"
	}
	if held.Since != nil {
		h.Since = TimeOf(&held.Since.Time, in.Now)
	}
	list, exact := rolloutview.Held(in)
	h.Exact = exact
	var all []Loss
	for i := range list {
		l := &list[i]
		key := l.Delivery.Spec.RegistrationRef.Key()
		for _, a := range l.Losses {
			loss := Loss{Cluster: key.String(), URL: ClusterAddonURL(key.Namespace, key.Name, a.Name), Addon: a.Name, Class: ClassOf(a.State),
				Version: page.Dash(excerpt.Line(a.Version)), State: string(a.State), What: excerpt.Cut(excerpt.Line(a.Message), 2*maxWhy)}
			if l.Whole {
				loss.What = "uninstalled: the whole set leaves the cluster"
			}
			all = append(all, loss)
		}
	}
	from, to, pager := q.page(len(all), 4*perPage)
	h.Losses, h.Pager = all[from:to], pager
	return h
}

// Approval writes what approves exactly what is held, if it is what the user has seen.
func Approval(in *rolloutview.Input, seen string) (patch map[string]any, says string, problem string) {
	held := in.Set.Status.HeldRemovals
	switch _, exact := rolloutview.Held(in); {
	case held == nil:
		return nil, "", "the hub holds no removals of this set (any more)"
	case held.Hash != seen:
		return nil, "", "what is held has changed since you looked: nothing is approved. Look again"
	case !exact:
		return nil, "", "this page does not know exactly what is held, so it approves nothing"
	}
	patch = map[string]any{"metadata": map[string]any{"annotations": map[string]any{hubv1.ApproveRemovalAnnotation: held.Hash}}}
	return patch, "the removals from " + status.Count(held.Count, "cluster") + " of AddonSet " + in.Set.Namespace + "/" + in.Set.Name +
		" are approved", ""
}
