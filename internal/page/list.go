// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/chandler-hub/chandler/internal/excerpt"
)

// Column is a column of a list. A wide one is shown only if somebody wants everything.
type Column struct {
	Name string
	Wide bool
}

// Tone says how a row is coloured on a terminal. What it says stands in the row too.
type Tone int

// The tones.
const (
	Plain Tone = iota
	// Unsettled is not as it should be yet.
	Unsettled
	// Bad has failed.
	Bad
)

var colours = map[Tone]string{Unsettled: "33", Bad: "31"}

// Row is one line of a list.
type Row struct {
	Cells []string
	// State is the column that has the colour.
	State int
	Tone  Tone
}

// List writes a long table piece by piece, so that nobody has to hold all of it: columns that were wide once stay wide.
type List struct {
	Columns []Column
	// Without names a column that is left out.
	Without string
	// Wide, NoHeaders and Colour say how it is written.
	Wide, NoHeaders, Colour bool

	printer printers.ResourcePrinter
	tabs    interface {
		io.Writer
		Flush() error
	}
	buffer bytes.Buffer
}

// Write writes rows.
func (l *List) Write(w io.Writer, rows []Row) error {
	if len(rows) == 0 {
		return nil
	}
	headers := !l.NoHeaders && l.printer == nil
	if l.printer == nil {
		l.printer = printers.NewTablePrinter(printers.PrintOptions{Wide: true, NoHeaders: l.NoHeaders})
		l.tabs = printers.GetNewTabWriter(&l.buffer)
	}
	table := &metav1.Table{}
	for _, c := range l.Columns {
		if l.shows(c) {
			table.ColumnDefinitions = append(table.ColumnDefinitions, metav1.TableColumnDefinition{Name: c.Name, Type: "string"})
		}
	}
	for _, r := range rows {
		var cells []any
		for i, text := range r.Cells {
			if l.shows(l.Columns[i]) {
				cells = append(cells, Dash(excerpt.Visible(text)))
			}
		}
		if cells[len(cells)-1] == "-" {
			cells[len(cells)-1] = "" // nothing comes after it that could be taken for it
		}
		table.Rows = append(table.Rows, metav1.TableRow{Cells: cells})
	}
	if err := l.printer.PrintObj(table, l.tabs); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	if err := l.tabs.Flush(); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	defer l.buffer.Reset()
	return l.lines(w, rows, headers)
}

// lines writes what the printer has made. No line ends with blanks.
func (l *List) lines(w io.Writer, rows []Row, headers bool) error {
	for i, line := range strings.Split(strings.TrimSuffix(l.buffer.String(), "\n"), "\n") {
		line = strings.TrimRight(line, " ")
		if headers {
			i--
		}
		if l.Colour && i >= 0 && i < len(rows) {
			line = l.paint(line, &rows[i])
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return fmt.Errorf("write: %w", err)
		}
	}
	return nil
}

// paint colours the cell of a line that says the state. Between cells there are only blanks, so each is found after the one before.
func (l *List) paint(line string, r *Row) string {
	at := 0
	for i, text := range r.Cells {
		if text = excerpt.Visible(text); !l.shows(l.Columns[i]) {
			continue
		}
		text = strings.TrimSpace(Dash(text))
		next := strings.Index(line[at:], text)
		if next < 0 {
			return line
		}
		at += next
		if i == r.State {
			if colours[r.Tone] == "" {
				return line
			}
			return line[:at] + "\x1b[" + colours[r.Tone] + "m" + text + "\x1b[0m" + line[at+len(text):]
		}
		at += len(text)
	}
	return line
}

func (l *List) shows(c Column) bool { return c.Name != l.Without && (l.Wide || !c.Wide) }
