// SPDX-License-Identifier: Apache-2.0

package rolloutview

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/page"
	"github.com/chandler-hub/chandler/internal/rollout"
)

// HistoryOf lists the revisions of a set, and how many clusters have each.
func HistoryOf(in *Input) *HistoryDocument {
	has, ready := map[string]int{}, map[string]int{}
	for i := range in.Deliveries {
		d := &in.Deliveries[i]
		if d.SetKey().String() != in.key() || d.Withdrawn() {
			continue
		}
		has[d.Spec.RevisionName]++
		if d.Status.ReadyRevision == d.Spec.RevisionName {
			ready[d.Spec.RevisionName]++
		}
	}
	out := &HistoryDocument{Set: in.key(), Revisions: []RevisionDocument{}, Notes: in.Notes}
	for i := range in.Revisions {
		r := &in.Revisions[i]
		out.Revisions = append(out.Revisions, RevisionDocument{Name: r.Name, Number: r.Revision, Created: &r.CreationTimestamp,
			Clusters: has[r.Name], Ready: ready[r.Name], Marks: in.marks(r.Name)})
		delete(has, r.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(has)) {
		out.Revisions = append(out.Revisions, RevisionDocument{Name: name, Clusters: has[name], Ready: ready[name],
			Marks: []string{"does not exist any more"}})
	}
	return out
}

// History is HistoryOf as a page.
func History(in *Input) *page.Page {
	p, d := &page.Page{}, HistoryOf(in)
	p.Line(fmt.Sprintf("AddonSet %s", d.Set))
	p.Notes(d.Notes)
	if len(d.Revisions) == 0 {
		p.Text("\nThe set has no revision yet.\n")
	}
	var rows [][]string
	for _, r := range d.Revisions {
		number, age := "-", "-"
		if r.Created != nil {
			number, age = strconv.FormatInt(r.Number, 10), page.Since(&r.Created.Time, in.Now)
		}
		rows = append(rows, []string{number, r.Name, age, strconv.Itoa(r.Clusters), strconv.Itoa(r.Ready), strings.Join(r.Marks, ", ")})
	}
	p.Table("", []string{"NUMBER", "REVISION", "AGE", "CLUSTERS", "READY", "MARKS"}, rows)
	return p
}

// marks says what a revision is.
func (in *Input) marks(name string) []string {
	var out []string
	is := in.state()
	orders := rollout.Read(in.Set.Annotations)
	for _, m := range []struct {
		mark string
		is   bool
	}{
		{"newest", name == in.Set.Status.Revision},
		{"completed", is.CompletedRevision == name},
		{"failed", rollout.Listed(name, is.FailedRevisions)},
		{"being rolled out", is.Phase != "" && !complete(&is) && is.Revision == name},
		{"what the newest is undone to", identity.SameContent(orders.Undone(in.Set.Status.Revision), name)},
	} {
		if m.is {
			out = append(out, m.mark)
		}
	}
	return out
}
