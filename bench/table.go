// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// What stands around the table in docs/performance.md.
const (
	tableBegin = "<!-- This table is made of growth.json: go test ./bench -update -->\n"
	tableEnd   = "<!-- until here -->\n"
)

// table returns the newest runs of each size without Flux as a table in Markdown: what is to be reached, and what that needs to be
// understood (`shown`). Of three runs or more it has the median, with the least and the most
// behind it, and of two it has both. What no run has measured is a dash.
func table(results []Result) []byte {
	runs := newestRuns(results)
	sizes := sizes(results)
	var out bytes.Buffer
	row := func(first, reach string, cell func(Parameters) string) {
		fmt.Fprintf(&out, "| %s | %s |", first, reach)
		for _, p := range sizes {
			fmt.Fprintf(&out, " %s |", cell(p))
		}
		out.WriteByte('\n')
	}
	row("clusters × add-ons", "to reach", func(p Parameters) string { return thousands(p.Clusters) + " × " + strconv.Itoa(p.Addons) })
	row("---", "---", func(Parameters) string { return "---" })
	row("day (runs)", "", func(p Parameters) string {
		day := runs[p][len(runs[p])-1].Date
		if n := len(runs[p]); n > 1 {
			return fmt.Sprintf("%s (%d)", day, n)
		}
		return day
	})
	fields := reflect.TypeFor[Result]()
	for i := range fields.NumField() {
		f := fields.Field(i)
		what, ok := f.Tag.Lookup("what")
		if !ok {
			continue
		}
		goal := reach(f.Tag)
		if _, shown := f.Tag.Lookup("shown"); goal == "" && !shown {
			continue
		}
		name, _, optional := strings.Cut(f.Tag.Get("json"), ",")
		row("`"+name+"`, "+what, goal, func(p Parameters) string {
			values := make([]float64, 0, len(runs[p]))
			for _, r := range runs[p] {
				if v := reflect.ValueOf(r).Field(i).Float(); v != 0 || !optional {
					values = append(values, v)
				}
			}
			return spanned(values)
		})
	}
	return out.Bytes()
}

// sizes returns the sizes of which there are runs without Flux, by add-ons and clusters. Of runs of one size that differ by something
// else, such as how often clusters are probed, it returns what the newest was run with.
func sizes(results []Result) []Parameters {
	newest := map[[2]int]Parameters{}
	for _, r := range results {
		if !r.Flux && !r.Rollout {
			newest[[2]int{r.Clusters, r.Addons}] = r.Parameters
		}
	}
	return slices.SortedFunc(maps.Values(newest), func(a, b Parameters) int {
		return cmp.Or(cmp.Compare(a.Addons, b.Addons), cmp.Compare(a.Clusters, b.Clusters))
	})
}

// reach returns what is to be reached for a field.
func reach(tag reflect.StructTag) string {
	if most, ok := tag.Lookup("atMost"); ok {
		return "≤ " + most
	}
	if least, ok := tag.Lookup("atLeast"); ok {
		least, ten, more := strings.Cut(least, " at 5 add-ons, ")
		if more {
			return "≥ " + least + ", × 10: " + strings.TrimSuffix(ten, " at 10")
		}
		return "≥ " + least
	}
	return ""
}

// spanned returns the median of values, with the least and the most behind it if they differ; two it returns as they are.
func spanned(values []float64) string {
	if len(values) == 0 {
		return "–"
	}
	slices.Sort(values)
	least, middle, most := short(values[0]), short(values[(len(values)-1)/2]), short(values[len(values)-1])
	switch {
	case least == most:
		return middle
	case len(values) == 2:
		return least + "–" + most
	}
	return middle + " (" + least + "–" + most + ")"
}

// short returns a number with about three digits.
func short(v float64) string {
	digits := 2
	switch {
	case v >= 100 || v == float64(int(v)):
		digits = 0
	case v >= 10:
		digits = 1
	}
	return strconv.FormatFloat(v, 'f', digits, 64)
}

func thousands(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}
