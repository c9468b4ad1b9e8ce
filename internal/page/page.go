// SPDX-License-Identifier: Apache-2.0

// Package page writes what a command shows as kubectl does: lines with a name, and tables. Every text that other people wrote
// is made safe for a terminal.
package page

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/chandler-hub/chandler/internal/excerpt"
)

// Page is what is going to be written.
type Page struct{ out bytes.Buffer }

// Field is a line with a name.
type Field struct {
	Name string `json:"name"`
	Text string `json:"text"`
	// Command is true if the text is a command that Chandler makes, for a terminal. What others wrote may look like one.
	Command bool `json:"-"`
}

// Text adds a text of our own as it is.
func (p *Page) Text(s string) { p.out.WriteString(s) }

// Line adds one line.
func (p *Page) Line(s string) { p.Text(excerpt.Visible(s) + "\n") }

// Fields adds lines with names, one below the other.
func (p *Page) Fields(fields []Field) {
	w := tabwriter.NewWriter(&p.out, 0, 8, 2, ' ', 0)
	for _, f := range fields {
		fmt.Fprintf(w, "%s:\t%s\n", f.Name, excerpt.Visible(f.Text))
	}
	_ = w.Flush() // a buffer takes everything
}

// Notes adds notes.
func (p *Page) Notes(notes []string) {
	for _, n := range notes {
		p.Line("Note: " + n)
	}
}

// Table adds a table, as kubectl writes it, after an empty line; nothing if it has no rows. The title may be empty.
func (p *Page) Table(title string, columns []string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	p.Text("\n")
	if title != "" {
		p.Text(title + "\n")
	}
	table := &metav1.Table{}
	for _, c := range columns {
		table.ColumnDefinitions = append(table.ColumnDefinitions, metav1.TableColumnDefinition{Name: c, Type: "string"})
	}
	for _, r := range rows {
		cells := make([]any, len(r))
		for i := range r {
			cells[i] = excerpt.Visible(r[i])
		}
		table.Rows = append(table.Rows, metav1.TableRow{Cells: cells})
	}
	_ = printers.NewTablePrinter(printers.PrintOptions{}).PrintObj(table, &p.out) // a buffer takes everything
}

// Flush writes the page. No line ends with blanks.
func (p *Page) Flush(w io.Writer) error {
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

// Dash returns a text, or - if it is empty.
func Dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// Since says for how long something has been true.
func Since(t *time.Time, now time.Time) string {
	if t == nil {
		return "-"
	}
	return duration.HumanDuration(max(now.Sub(*t), 0))
}
