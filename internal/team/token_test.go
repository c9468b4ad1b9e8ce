// SPDX-License-Identifier: Apache-2.0

package team_test

import (
	"testing"
	"time"

	"github.com/chandler-hub/chandler/internal/team"
)

// A token is renewed after a third of its time, and one of a few seconds not all the time.
func TestRenewIn(t *testing.T) {
	issued := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		lifetime, ago, want time.Duration
	}{
		"Fresh":         {24 * time.Hour, 0, 8 * time.Hour},
		"JustBefore":    {24 * time.Hour, 8*time.Hour - time.Second, time.Second},
		"AThirdIsOver":  {24 * time.Hour, 8 * time.Hour, 0},
		"Expired":       {24 * time.Hour, 48 * time.Hour, 0},
		"OfAFewSeconds": {10 * time.Second, 0, time.Minute},
		"FromTheFuture": {time.Hour, -time.Minute, 21 * time.Minute},
		"OfTenMinutes":  {10 * time.Minute, time.Minute, 2*time.Minute + 20*time.Second},
	} {
		if got := team.RenewIn(issued, issued.Add(tc.lifetime), issued.Add(tc.ago)); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}
