// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/chandler-hub/chandler/internal/excerpt"
)

// Print writes a report for people, as kubectl does.
func (r *ClusterReport) Print(w io.Writer) error {
	var p printer
	p.lines(r.Header)
	p.notes(r.Notes)
	if len(r.Rows) == 0 {
		p.text("\nNo AddonSet is in reach of this cluster.\n")
	} else {
		p.rows("", r.Rows, r.Now)
	}
	p.overrides(r.Overrides)
	return p.flush(w)
}

// Print writes a report for people, as kubectl does.
func (r *AddonReport) Print(w io.Writer) error {
	var p printer
	p.line(r.Sentence)
	p.text("\n")
	p.lines(r.Header)
	p.notes(r.Notes)
	p.rows("DEPENDENCIES", r.Dependencies, r.Now)
	p.rows("OTHER SETS", r.Others, r.Now)
	p.overrides(r.Overrides)
	if len(r.Errors) > 0 {
		p.text("\nERRORS\n")
	}
	for _, text := range r.Errors {
		p.line(text)
	}
	fields := make([][]string, len(r.Fields))
	for i, f := range r.Fields {
		fields[i] = []string{f.Path, excerpt.Cut(f.Value, maxValue), f.By}
	}
	p.table("FIELDS", []string{"PATH", "VALUE", "SET BY"}, fields)
	variables := make([][]string, len(r.Variables))
	for i, v := range r.Variables {
		variables[i] = []string{v.Name, excerpt.Cut(v.Value, maxValue), v.By}
	}
	p.table("VARIABLES", []string{"NAME", "VALUE", "SET BY"}, variables)
	return p.flush(w)
}

// maxValue is how much of a value is shown.
const maxValue = 60

type printer struct{ out bytes.Buffer }

func (p *printer) text(s string) { p.out.WriteString(s) }

// line writes one line. Here and in tables, every text that other people wrote is made safe.
func (p *printer) line(s string) { p.text(excerpt.Visible(s) + "\n") }

func (p *printer) flush(w io.Writer) error {
	for _, line := range strings.SplitAfter(p.out.String(), "\n") {
		end := ""
		if strings.HasSuffix(line, "\n") {
			end = "\n"
		}
		if _, err := io.WriteString(w, strings.TrimRight(line, " \n")+end); err != nil {
			return fmt.Errorf("write: %w", err)
		}
	}
	return nil
}

func (p *printer) lines(lines []Line) {
	w := tabwriter.NewWriter(&p.out, 0, 8, 2, ' ', 0)
	for _, l := range lines {
		fmt.Fprintf(w, "%s:\t%s\n", l.Name, excerpt.Visible(l.Text))
	}
	_ = w.Flush() // a buffer takes everything
}

func (p *printer) notes(notes []string) {
	for _, n := range notes {
		p.line("Note: " + n)
	}
}

func (p *printer) table(title string, columns []string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	p.text("\n")
	if title != "" {
		p.text(title + "\n")
	}
	w := tabwriter.NewWriter(&p.out, 0, 8, 3, ' ', 0)
	for _, r := range append([][]string{columns}, rows...) {
		for i := range r {
			r[i] = excerpt.Visible(r[i])
		}
		fmt.Fprintln(w, strings.Join(r, "\t"))
	}
	_ = w.Flush() // a buffer takes everything
}

func (p *printer) rows(title string, rows []Row, now time.Time) {
	out := make([][]string, len(rows))
	for i, r := range rows {
		out[i] = []string{dash(r.Addon), r.Set, string(r.State), since(r.Since, now), dash(r.Version), r.Why}
	}
	p.table(title, []string{"ADDON", "SET", "STATE", "SINCE", "VERSION", "WHY"}, out)
}

func (p *printer) overrides(overrides []Override) {
	out := make([][]string, len(overrides))
	for i, o := range overrides {
		out[i] = []string{o.Addon, o.State, o.Why}
	}
	p.table("OVERRIDES", []string{"ADDON", "STATE", "WHY"}, out)
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// since returns for how long something has been true.
func since(t *time.Time, now time.Time) string {
	if t == nil {
		return "-"
	}
	return duration.HumanDuration(max(now.Sub(*t), 0))
}
