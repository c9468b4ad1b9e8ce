// SPDX-License-Identifier: Apache-2.0

package tenure_test

import (
	"testing"
	"time"
	"unsafe"

	"github.com/chandler-hub/chandler/controllers/tenure"
)

func TestAlone(t *testing.T) {
	begin := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	every := func(until time.Duration) (out []time.Duration) {
		for at := time.Duration(0); at <= until; at += 2 * time.Second {
			out = append(out, at)
		}
		return out
	}
	for name, tc := range map[string]struct {
		renewed []time.Duration // after the beginning
		asked   time.Duration
		want    bool
	}{
		"NotBegun":       {nil, time.Hour, false},
		"JustBegun":      {every(0), time.Second, false},
		"AsLongAsItMay":  {every(28 * time.Second), tenure.Overlap, false},
		"ForAWhile":      {every(28 * time.Second), tenure.Overlap + time.Second, true},
		"ForADay":        {every(24 * time.Hour), 24*time.Hour + 9*time.Second, true},
		"ItStoodStill":   {every(24 * time.Hour), 24*time.Hour + 10*time.Second, false},
		"AndGoesOnAgain": {append(every(time.Hour), time.Hour+time.Minute), time.Hour + time.Minute + time.Second, false},
		"AndHasGoneOn":   {append(every(time.Hour), time.Hour+time.Minute, time.Hour+time.Minute+9*time.Second), time.Hour + time.Minute + 10*time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			var led tenure.Tenure
			for _, at := range tc.renewed {
				led.Renew(begin.Add(at))
			}
			if got := led.Alone(begin.Add(tc.asked)); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
	if (*tenure.Tenure)(nil).Alone(begin) {
		t.Error("of none, it says that no other process is at work")
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
				if got := led.Alone(next); got == tc.anew {
					t.Errorf("renewed since: %t; alone: %t", renewed, got)
				}
			}
		})
	}
}
