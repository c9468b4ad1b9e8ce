// SPDX-License-Identifier: Apache-2.0

package course

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

// History lists the revisions of a set, and how many clusters have each.
func History(in *Input) *page.Page {
	p := &page.Page{}
	has, ready := map[string]int{}, map[string]int{}
	for i := range in.Deliveries {
		d := &in.Deliveries[i]
		if d.SetKey().String() != in.key() || d.Withdrawn() {
			continue
		}
		has[d.Spec.RevisionName]++
		if identity.SameContent(d.Status.ReadyRevision, d.Spec.RevisionName) {
			ready[d.Spec.RevisionName]++
		}
	}
	var rows [][]string
	row := func(name, number, age, marks string) {
		rows = append(rows, []string{number, name, age, strconv.Itoa(has[name]), strconv.Itoa(ready[name]), marks})
		delete(has, name)
	}
	for i := range in.Revisions {
		r := &in.Revisions[i]
		row(r.Name, strconv.FormatInt(r.Revision, 10), page.Since(&r.CreationTimestamp.Time, in.Now), strings.Join(in.marks(r.Name), ", "))
	}
	for _, name := range slices.Sorted(maps.Keys(has)) {
		row(name, "-", "-", "does not exist any more")
	}
	p.Line(fmt.Sprintf("AddonSet %s", in.key()))
	p.Notes(in.Notes)
	if len(rows) == 0 {
		p.Text("\nThe set has no revision yet.\n")
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
		{"completed", identity.SameContent(is.CompletedRevision, name)},
		{"failed", rollout.Listed(name, is.FailedRevisions)},
		{"being rolled out", is.Phase != "" && !complete(&is) && identity.SameContent(is.Revision, name)},
		{"what the newest is undone to", identity.SameContent(orders.Undone(in.Set.Status.Revision), name)},
	} {
		if m.is {
			out = append(out, m.mark)
		}
	}
	return out
}
