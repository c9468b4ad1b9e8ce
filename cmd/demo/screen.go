// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"golang.org/x/term"
)

// screen prints lines and a table. On a terminal the table updates in place; elsewhere it is printed again when it
// changes.
type screen struct {
	mu    sync.Mutex
	out   io.Writer
	live  bool
	drawn int    // lines of the table that are on the screen
	last  string // the table
}

func newScreen(out io.Writer) *screen {
	f, ok := out.(*os.File)
	return &screen{out: out, live: ok && term.IsTerminal(int(f.Fd()))}
}

func (s *screen) line(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drawn = 0 // what is above stays
	_, _ = fmt.Fprintln(s.out, text)
}

func (s *screen) linef(format string, args ...any) { s.line(fmt.Sprintf(format, args...)) }

// done prints that a part is up, and how long it took.
func (s *screen) done(what string, since time.Time) {
	s.linef("  %-42s up after %4.1fs", what, time.Since(since).Seconds())
}

// table prints rows. The first row is the header.
func (s *screen) table(rows [][]string) {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		_, _ = fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	_ = w.Flush()
	text := b.String()
	s.mu.Lock()
	defer s.mu.Unlock()
	if text == s.last {
		return
	}
	s.last = text
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if s.live {
		if s.drawn > 0 {
			_, _ = fmt.Fprintf(s.out, "\x1b[%dA\x1b[J", s.drawn)
		}
	} else if s.drawn > 0 {
		_, _ = fmt.Fprintln(s.out)
	}
	for _, l := range lines {
		_, _ = fmt.Fprintln(s.out, strings.TrimRight(l, " "))
	}
	s.drawn = len(lines)
}
