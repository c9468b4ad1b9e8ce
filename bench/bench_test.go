// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandler-hub/chandler/internal/must"
)

var update = flag.Bool("update", false, "make the pictures and the table of docs/growth.json again")

// checkedSize is the fleet of make bench-check.
var checkedSize = Parameters{Clusters: 200, Addons: 5, Dead: 0.1, ProbeInterval: metav1.Duration{Duration: time.Minute}}

// The pictures in docs are what the recorded runs give.
func TestGrowth(t *testing.T) {
	results := must.Get(readFile(filepath.Join("..", "docs", "growth.json"))).Or(t)
	for name, picture := range map[string]struct {
		results []Result
		along   axis
	}{"growth.svg": {bySize(results), size}, "growth-history.svg": {history(results, checkedSize), when}} {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			if err := plot(&got, picture.results, picture.along); err != nil || len(picture.results) == 0 {
				t.Fatalf("of %d results: %v", len(picture.results), err)
			}
			golden(t, filepath.Join("..", "docs", name), got.Bytes())
			for d := xml.NewDecoder(&got); ; {
				if _, err := d.Token(); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatalf("the picture is no XML: %v", err)
				}
			}
		})
	}
}

// The table in docs/performance.md is what the newest runs of each size give.
func TestTable(t *testing.T) {
	results := must.Get(readFile(filepath.Join("..", "docs", "growth.json"))).Or(t)
	file := filepath.Join("..", "docs", "performance.md")
	page := must.Read(t, file)
	before, rest, found := bytes.Cut(page, []byte(tableBegin))
	_, after, closed := bytes.Cut(rest, []byte(tableEnd))
	if !found || !closed {
		t.Fatalf("%s has no %q and %q", file, tableBegin, tableEnd)
	}
	golden(t, file, slices.Concat(before, []byte(tableBegin), table(results), []byte(tableEnd), after))
}

func TestTableOfRuns(t *testing.T) {
	size := Parameters{Clusters: 1000, Addons: 5}
	of := func(commit, date string, rate, first float64) Result {
		return Result{Parameters: size, Commit: commit, Date: date, RawPerSecond: rate, RestartFirst: first}
	}
	// The run of an older commit does not count, and midnight parts no runs.
	got := string(table([]Result{of("a", "2026-01-01", 900, 1), of("b", "2026-01-02", 210, 0), of("b", "2026-01-03", 190.4, 3), of("b", "2026-01-03", 200, 0)}))
	for _, want := range []string{"| 1,000 × 5 |", "| 2026-01-03 (3) |", "| 200 (190–210) |", "`restart_first_s`, from its start", "| ≤ 10 | 3 |", "| ≥ 0.6, × 10: 0.65 | 0 |", "that before | ≤ 1.3 | – |"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if got := spanned([]float64{2, 1}); got != "1–2" {
		t.Errorf("of two runs the table has %s", got)
	}
}

// golden compares with a file, or writes it.
func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		must.Do(t, os.WriteFile(file, got, 0o644))
	}
	want, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(want, got) {
		t.Errorf("%s is not what docs/growth.json gives (%v): go test ./bench -update", file, err)
	}
}

func TestWrite(t *testing.T) {
	r := &Result{Parameters: Parameters{Clusters: 500, Addons: 5}, FanoutRatio: 0.6, NewClusterP99: 1200, IdleWrites: 0, RestartWrites: 2}
	var out bytes.Buffer
	must.Do(t, r.Write(&out))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	for field, want := range map[string]string{
		"fanout_ratio": "at least 0.6 yes", "new_cluster_ms_p99": "at most 1000 NO", "idle_writes": "at most 0 yes", "restart_writes": "at most 0 NO", "writes_ratio": "at least 0.8 NO",
	} {
		found := false
		for _, l := range lines {
			fields := strings.Fields(l)
			found = found || fields[0] == field && strings.Contains(strings.Join(fields, " "), want)
		}
		if !found {
			t.Errorf("%s is not %q in\n%s", field, want, out.String())
		}
	}
	var back Result
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &back); err != nil || back != *r {
		t.Errorf("the last line gives %+v, %v", back, err)
	}
	r.Addons = 10
	out.Reset()
	if err := r.Write(&out); err != nil || !strings.Contains(out.String(), "at least 0.65") {
		t.Errorf("with 10 add-ons more is to be reached: %v\n%s", err, out.String())
	}
}

func TestPercentile(t *testing.T) {
	values := []float64{5, 1, 4, 2, 3}
	if p50, p99, none := percentile(values, 0.5), percentile(values, 0.99), percentile(nil, 0.5); p50 != 3 || p99 != 5 || none != 0 {
		t.Errorf("%g, %g, %g", p50, p99, none)
	}
}
