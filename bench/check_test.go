// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// recordedRun is a run that was recorded, with a ratio and the writes of an idle minute.
func recordedRun(commit string, ratio, idle float64) Result {
	return Result{Parameters: checkedSize, Commit: commit, Date: "2026-11-25", Objects: 1000, RawPerSecond: 200, FanoutRatio: ratio, WritesRatio: 1,
		ChangeWritesRatio: 0.7, NewClusterP50: 100, NewCluster10P50: 300, RestartSeconds: 2, WritesPerChangedCluster: 3, StatusWrites: 2,
		IdleWrites: idle, ResidentMiB: 70}
}

func TestCheck(t *testing.T) {
	recorded := []Result{recordedRun("old", 2, 0), recordedRun("new", 0.5, 0), recordedRun("new", 0.6, 0), recordedRun("new", 0.9, 0)}
	slow := recordedRun("now", 0.6, 0)
	slow.NewClusterP50 = 130
	slower := slow
	slower.RawPerSecond = 100 // so is the bare client
	for name, tc := range map[string]struct {
		runs []Result
		want []string
	}{
		"AsBefore":         {[]Result{recordedRun("now", 0.6, 0)}, nil},
		"ALittleLess":      {[]Result{recordedRun("now", 0.46, 0)}, nil},
		"AQuarterIsLost":   {[]Result{recordedRun("now", 0.44, 0)}, []string{"fan-out, over the bare client's"}},
		"OneOfThreeIsSlow": {[]Result{recordedRun("now", 0.1, 0), recordedRun("now", 0.6, 0), recordedRun("now", 0.7, 0)}, nil},
		"WritesWhereNone":  {[]Result{recordedRun("now", 0.6, 1)}, []string{"writes in Flux's status noise"}},
		"ItTakesLonger":    {[]Result{slow}, []string{"one more cluster, p50, in writes of the bare client"}},
		"OnASlowerMachine": {[]Result{slower}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			worse, err := check(&out, recorded, tc.runs)
			if err != nil || !slices.Equal(worse, tc.want) {
				t.Errorf("lost %q, want %q (%v)\n%s", worse, tc.want, err, out.String())
			}
			if !strings.Contains(out.String(), "AT new, 2026-11-25") || strings.Count(out.String(), "a quarter or more") != len(tc.want) {
				t.Errorf("it prints\n%s", out.String())
			}
		})
	}
	other := recordedRun("now", 0.6, 0)
	other.Clusters = 7
	if _, err := check(&bytes.Buffer{}, recorded, []Result{other}); err == nil || !strings.Contains(err.Error(), "-record") {
		t.Errorf("of a size that nobody has recorded: %v", err)
	}
}

// TestCheckedRunsAgain: a loss must show in the median of three runs, and a good run ends it.
func TestCheckedRunsAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "runs.json")
	for _, r := range []Result{recordedRun("a", 0.6, 0), recordedRun("b", 0.6, 0)} {
		if err := record(file, &r); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		ratios []float64
		fails  bool
	}{"Good": {[]float64{0.6}, false}, "BusyOnce": {[]float64{0.1, 0.6, 0.6}, false}, "Lost": {[]float64{0.1, 0.2, 0.3}, true}} {
		t.Run(name, func(t *testing.T) {
			n := 0
			err := checked(&bytes.Buffer{}, file, func() (Result, error) {
				n++
				return recordedRun("now", tc.ratios[n-1], 0), nil
			})
			if (err != nil) != tc.fails || n != len(tc.ratios) {
				t.Errorf("after %d runs: %v", n, err)
			}
		})
	}
	broken := errors.New("the hub did not start")
	if err := checked(&bytes.Buffer{}, file, func() (Result, error) { return Result{}, broken }); !errors.Is(err, broken) {
		t.Errorf("of a run that fails: %v", err)
	}
}

// TestNewestAndHistory: of one size, the median of the newest commit counts, and the history has one point for each.
func TestNewestAndHistory(t *testing.T) {
	runs := []Result{recordedRun("a", 0.5, 0), recordedRun("b", 0.6, 0), recordedRun("b", 0.8, 0), recordedRun("b", 0.7, 0)}
	large := recordedRun("b", 0.3, 0)
	large.Clusters = 5000
	runs = append(runs, large)
	if n := newest(runs); len(n) != 2 || n[checkedSize].FanoutRatio != 0.7 || n[large.Parameters].FanoutRatio != 0.3 {
		t.Errorf("the newest are %+v", n)
	}
	h := history(runs, checkedSize)
	if len(h) != 2 || h[0].Commit != "a" || h[1].FanoutRatio != 0.7 {
		t.Errorf("the history is %+v", h)
	}
	probed, flux := recordedRun("c", 0.4, 0), recordedRun("c", 0.1, 0)
	probed.ProbeInterval.Duration *= 5
	flux.Flux = true
	for range 20 { // the order of a map must not show
		s := bySize(append(slices.Clone(runs), probed, flux))
		if len(s) != 2 || s[0].FanoutRatio != 0.4 || s[1].Clusters != 5000 {
			t.Fatalf("by size they are %+v", s)
		}
	}
}
