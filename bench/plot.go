// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"math"
	"os"
	"slices"
)

// panel is one curve, or several, over the size of the fleet.
type panel struct {
	title  string
	curves []curve
}

type curve struct {
	name  string
	value func(*Result) float64
}

var panels = []panel{
	{"one more cluster, ms", []curve{
		{"p50", func(r *Result) float64 { return r.NewClusterP50 }}, {"p99", func(r *Result) float64 { return r.NewClusterP99 }},
	}},
	{"fan-out and change, over a bare client", []curve{
		{"fan-out", func(r *Result) float64 { return r.FanoutRatio }}, {"all writes", func(r *Result) float64 { return r.WritesRatio }},
		{"change", func(r *Result) float64 { return r.ChangeWritesRatio }},
	}},
	{"memory, KiB for each Flux object", []curve{
		{"live heap", func(r *Result) float64 { return r.KiBPerObject }}, {"resident", func(r *Result) float64 { return r.RSSKiBPerObject }},
	}},
	{"CPU for an idle event, ms", []curve{{"idle", func(r *Result) float64 { return r.IdleCPU }}}},
}

const (
	panelWidth, panelHeight = 360, 220
	left, right, top, below = 48, 16, 34, 30
)

var colors = []string{"#1f6feb", "#d1570a", "#2da44e"}

// readResults reads lines of JSON as a bench prints them.
func readResults(in io.Reader) ([]Result, error) {
	var out []Result
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var r Result
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("read a result: %w", err)
		}
		out = append(out, r)
	}
	return out, lines.Err()
}

// readFile reads a file of recorded runs.
func readFile(file string) ([]Result, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return readResults(f)
}

// history returns what was recorded of one size, one result for each commit, in the order in which they were recorded.
func history(results []Result, p Parameters) (out []Result) {
	for begin := 0; begin < len(results); {
		end := begin + 1
		for end < len(results) && sameHub(results[begin], results[end]) {
			end++
		}
		of := slices.DeleteFunc(slices.Clone(results[begin:end]), func(r Result) bool { return r.Parameters != p })
		if begin = end; len(of) > 0 {
			out = append(out, median(of))
		}
	}
	return out
}

// bySize returns the newest result of each size of the fleet without Flux. It takes only those with as many add-ons as the smallest
// fleet.
func bySize(results []Result) []Result {
	newest := newest(results)
	var out []Result
	for _, p := range sizes(results) {
		out = append(out, newest[p])
	}
	slices.SortStableFunc(out, func(a, b Result) int { return cmp.Compare(a.Clusters, b.Clusters) })
	return slices.DeleteFunc(out, func(r Result) bool { return r.Addons != out[0].Addons })
}

// axis is where a picture has a result, from 0 to 1, and what stands below it.
type axis func(results []Result, i int) (at float64, label string)

// size is the axis of the size of the fleet, by its logarithm.
func size(results []Result, i int) (at float64, label string) {
	first, last := math.Log(float64(results[0].Clusters)), math.Log(float64(results[len(results)-1].Clusters))
	label = fmt.Sprint(results[i].Clusters)
	if last == first {
		return 0.5, label
	}
	return (math.Log(float64(results[i].Clusters)) - first) / (last - first), label
}

// when is the axis of what was recorded one after the other.
func when(results []Result, i int) (at float64, label string) {
	if len(results) == 1 {
		return 0.5, results[i].Date
	}
	return float64(i) / float64(len(results)-1), results[i].Date
}

// plot draws results along an axis, as SVG. The same results give the same bytes.
func plot(out io.Writer, results []Result, along axis) error {
	var b bytes.Buffer
	rows := (len(panels) + 1) / 2
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="11">`+"\n",
		2*panelWidth, rows*panelHeight)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="white"/>`+"\n")
	for i, p := range panels {
		fmt.Fprintf(&b, `<g transform="translate(%d,%d)">`+"\n", i%2*panelWidth, i/2*panelHeight)
		p.draw(&b, results, along)
		fmt.Fprintln(&b, "</g>")
	}
	fmt.Fprintln(&b, "</svg>")
	_, err := out.Write(b.Bytes())
	return err
}

func (p panel) draw(b *bytes.Buffer, results []Result, along axis) {
	fmt.Fprintf(b, `<text x="%d" y="16" font-size="13">%s</text>`+"\n", left, html.EscapeString(p.title))
	most := 0.0
	for i := range results {
		for _, c := range p.curves {
			most = max(most, c.value(&results[i]))
		}
	}
	most = nice(most)
	for i := range 3 {
		v := most * float64(i) / 2
		y := height(v, most)
		fmt.Fprintf(b, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%.3g</text>`+"\n",
			left, panelWidth-right, y, y, left-6, y+4, v)
	}
	for i := range results {
		x, label := across(results, i, along)
		fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", x, panelHeight-below+16, html.EscapeString(label))
	}
	for n, c := range p.curves {
		fmt.Fprintf(b, `<text x="%d" y="29" fill="%s">%s</text>`+"\n", left+n*90, colors[n], html.EscapeString(c.name))
		fmt.Fprintf(b, `<polyline fill="none" stroke="%s" stroke-width="2" points="`, colors[n])
		for i := range results {
			x, _ := across(results, i, along)
			fmt.Fprintf(b, "%.1f,%.1f ", x, height(c.value(&results[i]), most))
		}
		fmt.Fprintln(b, `"/>`)
	}
}

// across returns the horizontal position of a result, and what stands below it.
func across(results []Result, i int, along axis) (x float64, label string) {
	at, label := along(results, i)
	return left + 10 + float64(panelWidth-left-right-20)*at, label
}

// height returns the vertical position of a value.
func height(v, most float64) float64 {
	return top + float64(panelHeight-top-below)*(1-max(v, 0)/most)
}

// nice returns the next larger number that is easy to read.
func nice(v float64) float64 {
	if v <= 0 {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(v)))
	for _, n := range []float64{1, 2, 4, 6, 8, 10} {
		if v <= n*unit {
			return n * unit
		}
	}
	return v
}
