// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"strings"

	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/page"
	"github.com/chandler-hub/chandler/internal/status"
)

// colours of a terminal. A word always says the same.
var colours = map[Severity]string{Error: "\x1b[31m", Warning: "\x1b[33m", NotChecked: "\x1b[36m", OK: "\x1b[32m"}

// Page returns the report as text.
func (r Report) Page(colour bool) *page.Page {
	p := &page.Page{}
	for _, g := range r.Checks {
		p.Text(word(g.State, colour) + excerpt.Line(string(g.Check)+": "+g.Summary) + "\n")
		for _, f := range g.Findings {
			head := f.Code + ": "
			if f.Code != string(f.Severity) && f.Severity != g.State { // what is not as bad as the check
				head = string(f.Severity) + " " + head
			}
			if f.Severity == NotChecked {
				head = ""
			}
			p.Text("  " + excerpt.Line(head+f.What) + "\n")
			for _, o := range f.Objects {
				p.Text("    - " + excerpt.Line(o) + "\n")
			}
			if more := f.Count - len(f.Objects); more > 0 && len(f.Objects) > 0 {
				p.Text(fmt.Sprintf("    - and %d more\n", more))
			}
			if f.Remedy != "" {
				p.Text("    > " + excerpt.Line(f.Remedy) + "\n")
			}
		}
	}
	p.Text("\n" + r.verdict() + "\n")
	return p
}

// word is a severity, as wide as the widest.
func word(s Severity, colour bool) string {
	text := fmt.Sprintf("%-*s", len(NotChecked)+2, s)
	if !colour {
		return text
	}
	return colours[s] + strings.TrimRight(text, " ") + "\x1b[0m" + strings.Repeat(" ", len(text)-len(s))
}

func (r Report) verdict() string {
	if r.Errors+r.Warnings+r.NotChecked == 0 {
		return "Nothing is wrong."
	}
	return fmt.Sprintf("%s, %s, %d not checked. docs/doctor.md has every code.", status.Count(r.Errors, "error"),
		status.Count(r.Warnings, "warning"), r.NotChecked)
}
