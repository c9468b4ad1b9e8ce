// SPDX-License-Identifier: Apache-2.0

package tenure_test

import (
	"testing"
	"time"

	"github.com/chandler-hub/chandler/controllers/tenure"
)

func TestAlone(t *testing.T) {
	begin := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		renewed []time.Duration // after the beginning
		asked   time.Duration
		want    bool
	}{
		"NotBegun":       {nil, time.Hour, false},
		"JustBegun":      {[]time.Duration{0}, time.Second, false},
		"AsLongAsItMay":  {[]time.Duration{0, 28 * time.Second}, tenure.Overlap, false},
		"ForAWhile":      {[]time.Duration{0, 28 * time.Second}, tenure.Overlap + time.Second, true},
		"ForADay":        {[]time.Duration{0, 24 * time.Hour}, 24*time.Hour + 9*time.Second, true},
		"ItStoodStill":   {[]time.Duration{0, 24 * time.Hour}, 24*time.Hour + 10*time.Second, false},
		"AndGoesOnAgain": {[]time.Duration{0, 24 * time.Hour, 25 * time.Hour}, 25*time.Hour + time.Second, true},
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
