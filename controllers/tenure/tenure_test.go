// SPDX-License-Identifier: Apache-2.0

package tenure_test

import (
	"testing"
	"time"

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
