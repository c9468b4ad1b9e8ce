// SPDX-License-Identifier: Apache-2.0

package tenure_test

import (
	"testing"
	"time"
	"unsafe"

	"github.com/chandler-hub/chandler/controllers/tenure"
)

// TestSince: a tenure begins with the first renewal, and anew if the process stood still since the last one.
func TestSince(t *testing.T) {
	begin := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	var led tenure.Tenure
	if !led.Since(begin).IsZero() || !(*tenure.Tenure)(nil).Since(begin).IsZero() || (*tenure.Tenure)(nil).Holds(begin) {
		t.Error("one that has not begun says since when")
	}
	at := begin
	for ; at.Before(begin.Add(time.Hour)); at = at.Add(9 * time.Second) {
		led.Renew(at)
	}
	if got := led.Since(at); !got.Equal(begin) {
		t.Errorf("renewed all the time, it leads since %s, want %s", got, begin)
	}
	for after, want := range map[time.Duration]bool{0: true, 20 * time.Second: true, 21 * time.Second: false, time.Hour: false} {
		if got := led.Holds(at.Add(after)); got != want { // the last renewal was nine seconds before
			t.Errorf("%s after it has its Lease: %v, want %v", after, got, want)
		}
	}
	led.Lose()
	if led.Holds(at) {
		t.Error("it has its Lease, and another one has it too")
	}
	if led.Renew(at); !led.Holds(at) || !led.Since(at).Equal(begin) {
		t.Error("it has renewed its Lease, and does not have it, or since another time")
	}
	later := at.Add(time.Minute)
	led.Renew(later)
	if got := led.Since(later); !got.Equal(later) {
		t.Errorf("after it stood still it leads since %s, want %s", got, later)
	}
}

// stepped returns a time as time.Now() gives it after the wall clock was set: the monotonic reading does not change. In a time.Time with
// a monotonic reading, the seconds of the wall clock begin at bit 30 of its first word.
func stepped(t time.Time, by time.Duration) time.Time {
	*(*int64)(unsafe.Pointer(&t)) += int64(by/time.Second) << 30 //nolint:gosec // package time has no way to set the two clocks apart
	return t
}

// TestTheClockIsSet: the wall clock is set while the lease is renewed all the time, by NTP or since the virtual machine was suspended. Between the
// step and the next renewal nothing passes either.
func TestTheClockIsSet(t *testing.T) {
	for name, tc := range map[string]struct {
		by   time.Duration
		anew bool
	}{
		"Ahead":    {2 * time.Hour, true},
		"Back":     {-2 * time.Hour, true},
		"ALittle":  {6 * time.Second, true},
		"IsSlewed": {2 * time.Second, false},
		"NotAtAll": {0, false},
	} {
		t.Run(name, func(t *testing.T) {
			var led tenure.Tenure
			began := time.Now()
			for s := 0; s <= 60; s += 5 {
				led.Renew(began.Add(time.Duration(s) * time.Second))
			}
			missing := time.Unix(began.Add(50*time.Second).Unix(), 0) // as the API server stores it
			next := stepped(began.Add(62*time.Second), tc.by)
			if wall := next.Round(0).Sub(began.Round(0)); (wall-tc.by-62*time.Second).Abs() > time.Second || next.Sub(began) != 62*time.Second {
				t.Fatalf("the step is not as time.Now() gives it: %s, %s", wall, next.Sub(began))
			}
			for _, renewed := range []bool{false, true} {
				if renewed {
					led.Renew(next)
				}
				if got := led.Worked(missing, next); got > 15*time.Second { // a clock that is set back makes a delay longer
					t.Errorf("renewed since: %t; it has worked for %s since a time twelve seconds ago", renewed, got)
				}
				if got := !led.Since(next).Equal(began); got != tc.anew {
					t.Errorf("renewed since: %t; begun anew: %t", renewed, got)
				}
			}
		})
	}
}
