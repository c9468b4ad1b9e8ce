// SPDX-License-Identifier: Apache-2.0

package outdated

import (
	"strings"
	"time"

	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/page"
)

// Columns are those of the table.
var Columns = []page.Column{{Name: "Namespace"}, {Name: "Set"}, {Name: "Addon"}, {Name: "State"}, {Name: "Pinned"}, {Name: "Upstream"},
	{Name: "Since"}, {Name: "Wave"}, {Name: "Source", Wide: true}, {Name: "Follows"}, {Name: "Message"}}

// Row returns an item as a row. wide shows commits and digests whole.
func (i *Item) Row(now time.Time, wide bool) page.Row {
	cut, since, wave := short, "", i.Wave
	if wide {
		cut = func(s string) string { return s }
	}
	if i.Since != nil {
		since = page.Since(&i.Since.Time, now)
	}
	if wave == "" && (i.State == Outdated || i.State == Floats) {
		wave = "all at once"
	}
	namespace, name, _ := strings.Cut(i.Set, "/")
	cells := []string{namespace, name, i.Addon, i.State, cut(i.Pinned), cut(i.Upstream), since, wave, i.Source, i.Follows, i.Message}
	for at := range cells {
		cells[at] = excerpt.Line(cells[at])
	}
	return page.Row{Cells: cells, State: 3, Tone: tones[i.State]}
}

var tones = map[string]page.Tone{Outdated: page.Unsettled, Unknown: page.Bad}

// shortened is how much of a commit or digest a table shows.
const shortened = 12

// short returns a version as it is, and the beginning of a commit or digest.
func short(version string) string {
	algorithm, sum, named := strings.Cut(version, ":")
	if !named {
		algorithm, sum = "", version
	}
	if len(sum) < 40 || strings.Trim(sum, "0123456789abcdef") != "" {
		return version
	}
	if named {
		algorithm += ":"
	}
	return algorithm + sum[:shortened]
}
