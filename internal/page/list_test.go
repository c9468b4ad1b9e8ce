// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"strings"
	"testing"

	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/page"
)

// TestList: what comes later stands below what came first, the colour is that of the cell that says the state, and nobody else's text
// reaches the terminal as it is.
func TestList(t *testing.T) {
	l := &page.List{Columns: []page.Column{{Name: "Name"}, {Name: "Wide", Wide: true}, {Name: "State"}, {Name: "Message"}}, Colour: true}
	var b strings.Builder
	for _, rows := range [][]page.Row{
		{{Cells: []string{"Failed", "w", "Failed", "Failed\x1b[2J"}, State: 2, Tone: page.Bad}, {Cells: []string{"b", "w", "Ready", ""}, State: 2}},
		nil,
		{{Cells: []string{"c", "w", "", "waits"}, State: 2, Tone: page.Unsettled}},
	} {
		if err := l.Write(&b, rows); err != nil {
			t.Fatal(err)
		}
	}
	want := "NAME     STATE    MESSAGE\nFailed   \x1b[31mFailed\x1b[0m   Failed [2J\nb        Ready\nc        \x1b[33m-\x1b[0m        waits\n"
	must.Equal(t, want, b.String())
}
