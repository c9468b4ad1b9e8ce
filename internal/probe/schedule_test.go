// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/must"
)

var t0 = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// steady is the default timing without jitter.
var steady = timing{
	interval: DefaultInterval, retry: DefaultRetry, authRetry: DefaultAuthRetry, maxRetry: DefaultMaxRetry,
	slow: DefaultSlow, jitter: func() float64 { return 0.5 },
}

func testConfig(tb testing.TB, token string) *kubeconfig.Config {
	tb.Helper()
	c, err := kubeconfig.Parse(fmt.Appendf(nil, "contexts: [{name: c, context: {cluster: c, user: c}}]\nusers: [{name: c, user: {token: %q}}]\n"+
		"clusters: [{name: c, cluster: {server: \"https://a.b\"}}]\n", token), kubeconfig.Rules{AllowMissingCA: true})
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func failed(reason string) Result { return Result{Err: &Failure{Reason: reason}} }

func TestTiming(t *testing.T) {
	cases := map[string]struct {
		reason string
		why    string
		jitter float64
		want   []time.Duration // after 0, 1, 2, … failures in a row
	}{
		"Dead":      {reason: "2 s, doubled up to 5 min", why: ReasonDialTimeout, jitter: 0.5, want: seconds(60, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300)},
		"Young":     {reason: "403 passes within a second on Kamaji", why: ReasonForbidden, jitter: 0.5, want: seconds(60, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300)},
		"YoungAuth": {reason: "401 is as quick", why: ReasonUnauthorized, jitter: 0.5, want: seconds(60, 1, 2)},
		"Booting":   {reason: "so is a missing kube-system", why: ReasonNotReady, jitter: 0.5, want: seconds(60, 1, 2)},
		"Earliest":  {reason: "10 % early", why: ReasonTimedOut, jitter: 0, want: seconds(54, 1.8, 3.6)},
		"Latest":    {reason: "10 % late", why: ReasonTimedOut, jitter: 1, want: seconds(66, 2.2, 4.4)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			timing := steady
			timing.jitter = func() float64 { return tc.jitter }
			var got []time.Duration
			for streak := range tc.want {
				got = append(got, timing.after(streak, tc.why).Round(time.Millisecond))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
	if got := steady.after(1_000_000, ReasonTimedOut); got != DefaultMaxRetry {
		t.Errorf("after a million failures: %s", got)
	}
}

func seconds(values ...float64) []time.Duration {
	out := make([]time.Duration, len(values))
	for i, v := range values {
		out[i] = time.Duration(v * float64(time.Second))
	}
	return out
}

// run drives a schedule with one key through results and returns when each probe started, relative to t0, and which results
// were reported as new.
func run(t *testing.T, s *schedule, results ...Result) (starts []time.Duration, reported []bool) {
	t.Helper()
	now := t0
	for _, result := range results {
		wait, ok := s.wait(now)
		if !ok {
			t.Fatal("nothing is scheduled")
		}
		now = now.Add(wait)
		j := s.next(t.Context(), now)
		if j == nil {
			t.Fatalf("nothing is due at %s", now)
		}
		starts = append(starts, now.Sub(t0))
		result.Time = now
		reported = append(reported, s.finish(j, result, now))
	}
	return starts, reported
}

func TestScheduleReports(t *testing.T) {
	ok := Result{Version: "v1.34.1", ClusterUID: "u", Nodes: 3, NodesKnown: true}
	with := func(change func(*Result)) Result { r := ok; change(&r); return r }
	cases := map[string]struct {
		reason   string
		results  []Result
		starts   []time.Duration
		reported []bool
	}{
		"Steady":    {reason: "only the first answer is news", results: []Result{ok, ok, ok}, starts: seconds(0, 60, 120), reported: []bool{true, false, false}},
		"Facts":     {reason: "each fact is news", results: []Result{ok, with(func(r *Result) { r.Version = "v1.34.2" }), with(func(r *Result) { r.ClusterUID = "w" }), with(func(r *Result) { r.Nodes = 4 }), with(func(r *Result) { r.NodesKnown = false })}, starts: seconds(0, 60, 120, 180, 240), reported: []bool{true, true, true, true, true}},
		"Down":      {reason: "the first failure and the threshold are news", results: []Result{ok, failed(ReasonDialTimeout), failed(ReasonDialTimeout), failed(ReasonDialTimeout), failed(ReasonDialTimeout)}, starts: seconds(0, 60, 62, 66, 74), reported: []bool{true, true, false, true, false}},
		"Other":     {reason: "another reason is news", results: []Result{failed(ReasonDialTimeout), failed(ReasonUnauthorized)}, starts: seconds(0, 2), reported: []bool{true, true}},
		"Back":      {reason: "an answer ends the back-off", results: []Result{failed(ReasonDialTimeout), failed(ReasonDialTimeout), ok, failed(ReasonDialTimeout), ok}, starts: seconds(0, 2, 6, 66, 68), reported: []bool{true, false, true, true, true}},
		"Kamaji403": {reason: "a second after Ready it answers", results: []Result{failed(ReasonForbidden), ok}, starts: seconds(0, 1), reported: []bool{true, true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newSchedule(4, steady)
			s.set("a", testConfig(t, "1"), laneNew, t0)
			starts, reported := run(t, s, tc.results...)
			if diff := cmp.Diff(tc.starts, starts); diff != "" {
				t.Errorf("%s: starts: -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.reported, reported); diff != "" {
				t.Errorf("%s: reported: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestScheduleCountsFailures(t *testing.T) {
	s := newSchedule(4, steady)
	s.set("a", testConfig(t, "1"), laneNew, t0)
	run(t, s, Result{}, failed(ReasonDialTimeout), failed(ReasonTimedOut))
	got := s.targets["a"].result
	if got.Failures != 2 || !got.FailingSince.Equal(t0.Add(time.Minute)) {
		t.Errorf("got %d failures since %s", got.Failures, got.FailingSince)
	}
	// A rotated credential starts a fresh back-off, but the cluster has not answered since.
	s.set("a", testConfig(t, "2"), laneNew, t0.Add(70*time.Second))
	j := s.next(t.Context(), t0.Add(70*time.Second))
	if j == nil || j.lane != laneNew {
		t.Fatal("the changed kubeconfig is not probed at once")
	}
	if !s.finish(j, failed(ReasonTimedOut), t0.Add(70*time.Second)) {
		t.Error("the first result with another kubeconfig is news, even if it is the same")
	}
	if got := s.targets["a"]; got.result.Failures != 3 || got.streak != 1 || !got.result.FailingSince.Equal(t0.Add(time.Minute)) {
		t.Errorf("got %d failures, %d in a row with this kubeconfig, since %s", got.result.Failures, got.streak, got.result.FailingSince)
	}
}

func TestScheduleChangesWhileProbing(t *testing.T) {
	cases := map[string]struct {
		reason   string
		change   func(s *schedule, now time.Time)
		canceled bool
		wait     time.Duration // from the end of the running probe to the next; -1 if there is none
		known    bool
	}{
		"Nothing":  {reason: "the usual", change: func(*schedule, time.Time) {}, wait: time.Minute, known: true},
		"SetSame":  {reason: "the same kubeconfig changes nothing", change: func(s *schedule, now time.Time) { s.set("a", testConfig(t, "1"), laneNew, now) }, wait: time.Minute, known: true},
		"SetOther": {reason: "the old one's result no longer counts", change: func(s *schedule, now time.Time) { s.set("a", testConfig(t, "2"), laneNew, now) }, canceled: true},
		"Remove":   {reason: "nobody wants the result", change: func(s *schedule, _ time.Time) { s.remove("a") }, canceled: true, wait: -1},
		"Now":      {reason: "what runs may have missed the cause", change: func(s *schedule, now time.Time) { s.hurry("a", now) }, known: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newSchedule(4, steady)
			s.set("a", testConfig(t, "1"), laneNew, t0)
			j := s.next(t.Context(), t0)
			tc.change(s, t0)
			if got := j.ctx.Err() != nil; got != tc.canceled {
				t.Errorf("%s: canceled is %t, want %t", tc.reason, got, tc.canceled)
			}
			if got := s.finish(j, Result{}, t0); got != tc.known {
				t.Errorf("%s: reported is %t, want %t", tc.reason, got, tc.known)
			}
			wait, ok := s.wait(t0)
			if !ok {
				wait = -1
			}
			if wait != tc.wait {
				t.Errorf("%s: next in %s, want %s", tc.reason, wait, tc.wait)
			}
			if s.running != [lanes]int{} {
				t.Errorf("%s: still running: %v", tc.reason, s.running)
			}
		})
	}
}

func TestScheduleNow(t *testing.T) {
	s := newSchedule(4, steady)
	s.hurry("unknown", t0)
	s.set("a", testConfig(t, "1"), laneNew, t0)
	run(t, s, Result{})
	s.hurry("a", t0.Add(time.Second))
	if wait, ok := s.wait(t0.Add(time.Second)); !ok || wait != 0 {
		t.Errorf("wait is %s, %t", wait, ok)
	}
}

// TestScheduleNowForgetsFailures: a cluster with news is not made to wait as a dead one is.
func TestScheduleNowForgetsFailures(t *testing.T) {
	s := newSchedule(4, steady)
	s.set("a", testConfig(t, "1"), laneNew, t0)
	now := t0
	for range 6 {
		s.finish(s.next(t.Context(), now), failed(ReasonConnectionRefused), now)
		wait, _ := s.wait(now)
		now = now.Add(wait)
	}
	s.hurry("a", now)
	s.finish(s.next(t.Context(), now), failed(ReasonForbidden), now)
	if wait, ok := s.wait(now); !ok || wait != steady.authRetry {
		t.Errorf("wait is %s, %t, want %s", wait, ok, steady.authRetry)
	}
	if got := s.targets["a"].result.Failures; got != 7 {
		t.Errorf("%d failures in a row, want 7: they are counted all the same", got)
	}
}

func TestScheduleLanes(t *testing.T) {
	cases := map[string]struct {
		reason  string
		workers int
		running [lanes]int // healthy, new, failing, slow
		free    [lanes]bool
	}{
		"Idle":        {reason: "all may start", workers: 8, free: [lanes]bool{true, true, true, true}},
		"Full":        {reason: "none may", workers: 8, running: [lanes]int{8}},
		"HalfFailing": {reason: "failing ones get half", workers: 8, running: [lanes]int{0, 0, 4}, free: [lanes]bool{true, true, false, false}},
		"HalfSlow":    {reason: "slow ones get no more", workers: 8, running: [lanes]int{0, 0, 0, 4}, free: [lanes]bool{true, true, false, false}},
		"HalfBoth":    {reason: "both have the same half", workers: 8, running: [lanes]int{0, 0, 1, 3}, free: [lanes]bool{true, true, false, false}},
		"NewOnes":     {reason: "new ones leave a quarter", workers: 8, running: [lanes]int{0, 6, 0}, free: [lanes]bool{true, false, false, false}},
		"Together":    {reason: "new and failing ones together as well", workers: 8, running: [lanes]int{0, 2, 4}, free: [lanes]bool{true, false, false, false}},
		"AndSlow":     {reason: "and slow ones", workers: 8, running: [lanes]int{0, 3, 1, 2}, free: [lanes]bool{true, false, false, false}},
		"OneWorker":   {reason: "one worker takes turns", workers: 1, free: [lanes]bool{true, true, true, true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newSchedule(tc.workers, steady)
			s.running = tc.running
			got := [lanes]bool{s.free(laneHealthy), s.free(laneNew), s.free(laneFailing), s.free(laneSlow)}
			if diff := cmp.Diff(tc.free, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestScheduleSlow: an answer that took long changes the lane and nothing else, until many have come quickly.
func TestScheduleSlow(t *testing.T) {
	s := newSchedule(4, steady)
	s.set("a", testConfig(t, "1"), laneNew, t0)
	now := t0
	for _, tc := range []struct {
		took time.Duration
		err  *Failure
		lane lane
		wait time.Duration
	}{
		{took: DefaultSlow, lane: laneHealthy, wait: DefaultInterval},
		{took: DefaultSlow + 1, lane: laneSlow, wait: DefaultInterval},
		{took: DefaultTotal - 1, lane: laneSlow, wait: DefaultInterval},
		{took: DefaultTotal, err: &Failure{Reason: ReasonTimedOut}, lane: laneFailing, wait: DefaultRetry},
		{took: time.Millisecond, lane: laneSlow, wait: DefaultInterval},
	} {
		j := s.next(t.Context(), now)
		now = now.Add(tc.took)
		s.finish(j, Result{Err: tc.err}, now)
		wait, _ := s.wait(now)
		if got := s.targets["a"].lane; got != tc.lane || s.members[tc.lane] != 1 || wait != tc.wait {
			t.Errorf("after %s: lane %d, members %v, next in %s; want lane %d, next in %s", tc.took, got, s.members, wait, tc.lane, tc.wait)
		}
		now = now.Add(wait)
	}
}

// TestScheduleAlternates: a cluster that is slow now and then, or lets a probe time out, is not healthy in between. It is after slowProbes quick
// answers in a row.
func TestScheduleAlternates(t *testing.T) {
	for name, err := range map[string]*Failure{"Answers": nil, "TimesOut": {Reason: ReasonTimedOut}} {
		t.Run(name, func(t *testing.T) {
			s := newSchedule(4, steady)
			s.set("a", testConfig(t, "1"), laneNew, t0)
			now := t0
			probed := func(took time.Duration, err *Failure) lane {
				j := s.next(t.Context(), now)
				now = now.Add(took)
				s.finish(j, Result{Err: err}, now)
				wait, _ := s.wait(now)
				now = now.Add(wait)
				return s.targets["a"].lane
			}
			if got := probed(time.Millisecond, nil); got != laneHealthy {
				t.Fatalf("one that was never slow is in lane %d", got)
			}
			for i := range 6 {
				probed(DefaultTotal-1, err)
				if got := probed(time.Millisecond, nil); got != laneSlow {
					t.Errorf("after %d slow probes, a quick answer brings lane %d", i+1, got)
				}
			}
			for i := range slowProbes - 1 {
				want := laneSlow
				if i == slowProbes-2 {
					want = laneHealthy
				}
				if got := probed(time.Millisecond, nil); got != want {
					t.Errorf("after %d quick answers it is in lane %d, want %d", i+2, got, want)
				}
			}
			s.set("a", testConfig(t, "2"), laneNew, now)
			if got := probed(time.Millisecond, nil); got != laneHealthy {
				t.Errorf("with another kubeconfig it is in lane %d", got)
			}
		})
	}
}

// TestScheduleRetriesBesideSlow: a cluster that has just failed for the first time is probed again on time, however many slow and dead ones are
// overdue. One that was slow before has no such turn.
func TestScheduleRetriesBesideSlow(t *testing.T) {
	for name, wasSlow := range map[string]bool{"Quick": false, "WasSlow": true} {
		t.Run(name, func(t *testing.T) {
			s := newSchedule(8, steady)
			now := t0
			once := func(key string, took time.Duration, err *Failure) {
				s.set(key, testConfig(t, key), laneNew, now)
				s.finish(s.next(t.Context(), now), Result{Err: err}, now.Add(took))
			}
			for i := range 20 {
				once(fmt.Sprint("slow", i), DefaultTotal-1, nil)
			}
			now = now.Add(time.Hour)
			took := time.Millisecond
			if wasSlow {
				took = DefaultTotal - 1
			}
			for s.next(t.Context(), now) != nil { // the slow ones have all that they may
			}
			once("failed", took, nil)
			s.hurry("failed", now)
			if j := s.next(t.Context(), now); (j == nil) != wasSlow {
				t.Fatalf("its probe is %v", j)
			} else if j != nil {
				s.finish(j, failed(ReasonConnectionLost), now)
			}
			now = now.Add(steady.retry)
			j := s.next(t.Context(), now)
			if got := j != nil && j.target.key == "failed"; got == wasSlow {
				t.Fatalf("it is probed again: %t", got)
			}
			if j == nil {
				return
			}
			s.finish(j, failed(ReasonConnectionLost), now)
			if got := s.targets["failed"].lane; got != laneFailing {
				t.Errorf("after its second failure it is in lane %d", got)
			}
		})
	}
}

// TestScheduleFailingDoNotBlock: a backlog of failing targets waits, a healthy one that is due later does not.
func TestScheduleFailingDoNotBlock(t *testing.T) {
	s := newSchedule(2, steady)
	now := t0
	for i := range 3 {
		key := fmt.Sprint("dead", i)
		s.set(key, testConfig(t, key), laneNew, now)
		s.finish(s.next(context.Background(), now), failed(ReasonTimedOut), now)
	}
	s.set("healthy", testConfig(t, "h"), laneNew, now)
	s.finish(s.next(context.Background(), now), Result{}, now)
	now = now.Add(2 * time.Minute) // all are due
	var order []string
	for j := s.next(context.Background(), now); j != nil; j = s.next(context.Background(), now) {
		order = append(order, j.target.key[:4])
	}
	must.Equal(t, []string{"dead", "heal"}, order)
	if _, ok := s.wait(now); ok {
		t.Error("with both workers busy there is nothing to wait for but them")
	}
}
