// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// TestOpenIsCheap: a tenant may write a window that opens every minute and stays open for a lifetime. It costs no more than another.
func TestOpenIsCheap(t *testing.T) {
	var windows []window
	for range 16 {
		w, err := newWindow(hubv1.RolloutWindow{Schedule: "* * * * *", Duration: metav1.Duration{Duration: 2000000 * time.Hour}, TimeZone: "Europe/Berlin"})
		if err != nil {
			t.Fatal(err)
		}
		windows = append(windows, w)
	}
	done := make(chan bool, 1)
	go func() {
		isOpen, _ := open(windows, time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC))
		done <- isOpen
	}()
	select {
	case isOpen := <-done:
		if !isOpen {
			t.Error("it is not open")
		}
	case <-time.After(5 * time.Second):
		t.Fatal("it takes more than five seconds")
	}
}

// TestEveryIsNoWindow: "@every 1h" counts from when it is asked, and so it would never come.
func TestEveryIsNoWindow(t *testing.T) {
	_, err := newWindow(hubv1.RolloutWindow{Schedule: "@every 1h", Duration: metav1.Duration{Duration: time.Minute}})
	if err == nil || !strings.Contains(err.Error(), "schedule") {
		t.Error(err)
	}
}

// TestWindowCloses: a window that is open says when it closes, however often it opens.
func TestWindowCloses(t *testing.T) {
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	for schedule, want := range map[string]struct {
		duration time.Duration
		until    string
	}{
		"0 10 * * *":    {4 * time.Hour, "2026-12-01T13:00:00Z"},
		"* * * 1-6 *":   {8760 * time.Hour, "2027-06-30T21:59:00Z"}, // a minute before midnight of a summer day
		"* * * * *":     {2000000 * time.Hour, now.Add(2000000 * time.Hour).Format(time.RFC3339)},
		"0 10,11 1 * *": {4 * time.Hour, "2026-12-01T14:00:00Z"},
		"0 14 * * *":    {time.Hour, ""},
	} {
		s, err := New(&hubv1.Rollout{Windows: []hubv1.RolloutWindow{{Schedule: schedule, Duration: metav1.Duration{Duration: want.duration}, TimeZone: "Europe/Berlin"}}})
		if err != nil {
			t.Fatal(err)
		}
		if _, isOpen, until := s.Windows(now); isOpen && until.Format(time.RFC3339) != want.until || isOpen != (want.until != "") {
			t.Errorf("%s: open %t, %s; want %s", schedule, isOpen, until, want.until)
		}
	}
}

// asked counts how often a schedule is asked.
type asked struct {
	cron.Schedule
	n *int
}

func (a asked) Next(t time.Time) time.Time {
	*a.n++
	return a.Schedule.Next(t)
}

// TestWindowsAreAskedOnce: however many clusters start, or wait for a window.
func TestWindowsAreAskedOnce(t *testing.T) {
	for _, hour := range []int{12, 20} {
		s, err := New(&hubv1.Rollout{Waves: []hubv1.Wave{{Name: "all"}}, Windows: []hubv1.RolloutWindow{{Schedule: "0 12 * * *", Duration: metav1.Duration{Duration: time.Hour}}}})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		s.windows[0].opens = asked{s.windows[0].opens, &n}
		in := Input{Set: "a/b", Strategy: s, Revision: "r2", Exists: func(string) bool { return true }, Same: func(*Cluster, string) bool { return false },
			Now: time.Date(2026, 6, 1, hour, 30, 0, 0, time.UTC)}
		for i := range 20 {
			in.Clusters = append(in.Clusters, Cluster{Key: types.NamespacedName{Namespace: "a", Name: fmt.Sprint(i)}, Revision: "r1", Ready: true, Healthy: i%2 == 0})
		}
		if out := Decide(in); n != 1 || len(out.Starts) != map[int]int{12: 20, 20: 0}[hour] {
			t.Errorf("at %d:30 the window is asked %d times, and %d clusters start", hour, n, len(out.Starts))
		}
	}
}
