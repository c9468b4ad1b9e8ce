// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"io"
	"time"

	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/page"
)

// Print writes a report for people, as kubectl does.
func (r *ClusterReport) Print(w io.Writer) error {
	var p printer
	p.header(r.Header)
	p.Notes(r.Notes)
	if len(r.Rows) == 0 {
		p.Text("\nNo AddonSet is in reach of this cluster.\n")
	} else {
		p.rows("", r.Rows, r.Now)
	}
	p.overrides(r.Overrides)
	return p.Flush(w)
}

// Print writes a report for people, as kubectl does.
func (r *AddonReport) Print(w io.Writer) error {
	var p printer
	p.Line(r.Sentence)
	p.Text("\n")
	p.header(r.Header)
	p.Notes(r.Notes)
	p.rows("DEPENDENCIES", r.Dependencies, r.Now)
	p.rows("OTHER SETS", r.Others, r.Now)
	p.overrides(r.Overrides)
	if len(r.Errors) > 0 {
		p.Text("\nERRORS\n")
	}
	for _, text := range r.Errors {
		p.Line(text)
	}
	fields := make([][]string, len(r.Fields))
	for i, f := range r.Fields {
		fields[i] = []string{f.Path, excerpt.Cut(f.Value, maxValue), f.By}
	}
	p.Table("FIELDS", []string{"PATH", "VALUE", "SET BY"}, fields)
	variables := make([][]string, len(r.Variables))
	for i, v := range r.Variables {
		variables[i] = []string{v.Name, excerpt.Cut(v.Value, maxValue), v.By}
	}
	p.Table("VARIABLES", []string{"NAME", "VALUE", "SET BY"}, variables)
	return p.Flush(w)
}

// maxValue is how much of a value is shown.
const maxValue = 60

type printer struct{ page.Page }

func (p *printer) header(lines []Line) {
	fields := make([]page.Field, len(lines))
	for i, l := range lines {
		fields[i] = page.Field{Name: l.Name, Text: l.Text}
	}
	p.Fields(fields)
}

func (p *printer) rows(title string, rows []Row, now time.Time) {
	out := make([][]string, len(rows))
	for i, r := range rows {
		out[i] = []string{page.Dash(r.Addon), r.Set, string(r.State), page.Since(r.Since, now), page.Dash(r.Version), r.Why}
	}
	p.Table(title, []string{"ADDON", "SET", "STATE", "SINCE", "VERSION", "WHY"}, out)
}

func (p *printer) overrides(overrides []Override) {
	out := make([][]string, len(overrides))
	for i, o := range overrides {
		out[i] = []string{o.Addon, o.State, o.Why}
	}
	p.Table("OVERRIDES", []string{"ADDON", "STATE", "WHY"}, out)
}
