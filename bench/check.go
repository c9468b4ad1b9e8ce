// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"text/tabwriter"
)

// mark is a figure that a change of the hub must not worsen. It hardly depends on the machine: it is a count, or over what the bare
// client made in the same run.
type mark struct {
	name   string
	higher bool // is better
	value  func(*Result) float64
}

// In place of milliseconds, what takes time counts what the bare client would have written meanwhile.
var marks = []mark{
	{"fan-out, over the bare client's", true, func(r *Result) float64 { return r.FanoutRatio }},
	{"all writes of it, over the bare client's", true, func(r *Result) float64 { return r.WritesRatio }},
	{"a change everywhere, over the bare client's", true, func(r *Result) float64 { return r.ChangeWritesRatio }},
	{"one more cluster, p50, in writes of the bare client", false, func(r *Result) float64 { return r.NewClusterP50 / 1000 * r.RawPerSecond }},
	{"the same with ten a second", false, func(r *Result) float64 { return r.NewCluster10P50 / 1000 * r.RawPerSecond }},
	{"restart, for each Flux object, in writes of the bare client", false, func(r *Result) float64 {
		return r.RestartSeconds * r.RawPerSecond / float64(max(r.Objects, 1))
	}},
	{"writes for each changed cluster", false, func(r *Result) float64 { return r.WritesPerChangedCluster }},
	{"statuses for each delivery", false, func(r *Result) float64 { return r.StatusWrites }},
	{"writes in Flux's status noise", false, func(r *Result) float64 { return r.IdleWrites }},
	{"writes of a restart", false, func(r *Result) float64 { return r.RestartWrites }},
	{"resident memory, MiB", false, func(r *Result) float64 { return r.ResidentMiB }},
}

const (
	// lost is the share of a mark by which a run may be worse than what is recorded.
	lost = 0.25
	// tries is how many runs, at most, a loss is looked for in. The machine may have been busy during one: the median of them counts.
	tries = 3
)

// worse returns whether a value is worse than what was recorded, by more than is allowed.
func (m mark) worse(was, is float64) bool {
	if m.higher {
		return is < was*(1-lost)
	}
	return is > was*(1+lost)
}

// check compares runs with what is recorded of the same size, and prints a table. It returns the names of the marks that were lost.
func check(out io.Writer, recorded []Result, runs []Result) (worse []string, err error) {
	was, ok := newest(recorded)[runs[0].Parameters]
	if !ok {
		return nil, fmt.Errorf("no run with %+v is recorded: record one with -record", runs[0].Parameters)
	}
	is := median(runs)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(w, "MARK\tAT %s, %s\tNOW\tLOST\n", orUnknown(was.Commit), was.Date)
	for _, m := range marks {
		before, now := m.value(&was), m.value(&is)
		sign := ""
		if m.worse(before, now) {
			sign = "a quarter or more"
			worse = append(worse, m.name)
		}
		_, _ = fmt.Fprintf(w, "%s\t%.3g\t%.3g\t%s\n", m.name, before, now, sign)
	}
	return worse, w.Flush()
}

func orUnknown(commit string) string {
	if commit == "" {
		return "an older commit"
	}
	return commit
}

// newest returns the median of the runs of the newest commit, for each size. Results are in the order in which they were recorded.
func newest(results []Result) map[Parameters]Result {
	out := map[Parameters]Result{}
	for p, runs := range newestRuns(results) {
		out[p] = median(runs)
	}
	return out
}

// newestRuns returns the runs of the newest commit, for each size.
func newestRuns(results []Result) map[Parameters][]Result {
	out := map[Parameters][]Result{}
	for _, r := range results {
		runs := out[r.Parameters]
		if len(runs) > 0 && !sameHub(runs[0], r) {
			runs = nil
		}
		out[r.Parameters] = append(runs, r)
	}
	return out
}

// sameHub returns whether two runs measured the same hub: the same commit, or of the oldest runs, which name none, the same day.
func sameHub(a, b Result) bool {
	return a.Commit == b.Commit && (a.Commit != "" || a.Date == b.Date)
}

// median returns the median of each figure of runs, the lower one of two; the rest is the first run's.
func median(runs []Result) Result {
	out := runs[0]
	v := reflect.ValueOf(&out).Elem()
	for i := range v.NumField() {
		if v.Field(i).Kind() != reflect.Float64 {
			continue
		}
		values := make([]float64, 0, len(runs))
		for _, r := range runs {
			values = append(values, reflect.ValueOf(r).Field(i).Float())
		}
		slices.Sort(values)
		v.Field(i).SetFloat(values[(len(values)-1)/2])
	}
	return out
}

// checked runs the bench until it has lost nothing against what is recorded in a file, a few times at most.
func checked(out io.Writer, file string, run func() (Result, error)) error {
	recorded, err := readFile(file)
	if err != nil {
		return err
	}
	var runs []Result
	for {
		r, err := run()
		if err != nil {
			return err
		}
		runs = append(runs, r)
		worse, err := check(out, recorded, runs)
		switch {
		case err != nil || len(worse) == 0:
			return err
		case len(runs) == tries:
			return fmt.Errorf("in %d runs, worse than what %s records by a quarter or more: %q", len(runs), file, worse)
		}
		_, _ = fmt.Fprintln(out, "The machine may have been busy: once more, and the median counts.")
	}
}

// record appends a run to a file, as a line of JSON.
func record(file string, r *Result) (err error) {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return r.line(f)
}
