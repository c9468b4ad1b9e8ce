// SPDX-License-Identifier: Apache-2.0

package token_test

import (
	"testing"
	"time"

	"github.com/chandler-hub/chandler/internal/token"
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
		if got := token.RenewIn(issued, issued.Add(tc.lifetime), issued.Add(tc.ago)); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// What a cluster says of its token counts only within what it was asked for.
func TestExpiry(t *testing.T) {
	issued := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		says time.Time
		want time.Duration
	}{
		"AsAsked":   {issued.Add(24 * time.Hour), 24 * time.Hour},
		"Shorter":   {issued.Add(time.Hour), time.Hour},
		"Years":     {issued.AddDate(9, 0, 0), 24 * time.Hour},
		"LongOver":  {issued.AddDate(-9, 0, 0), token.Shortest},
		"EndOfTime": {time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), 24 * time.Hour},
	} {
		if got := token.Expiry(issued, tc.says, 24*time.Hour).Sub(issued); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// Notes count for the kubeconfig that they are about, and if they can be true.
func TestNotes(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	written := token.Notes{Issued: now.Add(-time.Hour), Expires: now.Add(time.Hour), Fingerprint: "f"}
	for name, tc := range map[string]struct {
		change      func(map[string]string)
		fingerprint string
		want        bool
	}{
		"AsWritten":     {nil, "f", true},
		"OfAnother":     {nil, "g", false},
		"NoTime":        {func(a map[string]string) { a["chandler.dev/token-issued"] = "yesterday" }, "f", false},
		"NoEnd":         {func(a map[string]string) { delete(a, "chandler.dev/token-expires") }, "f", false},
		"FromTheFuture": {func(a map[string]string) { a["chandler.dev/token-issued"] = now.Add(time.Minute).Format(time.RFC3339) }, "f", false},
	} {
		annotations := written.Annotations()
		if tc.change != nil {
			tc.change(annotations)
		}
		got, ok := token.NotesOf(annotations, tc.fingerprint, now)
		if ok != tc.want || ok && got != written {
			t.Errorf("%s: %+v, %t", name, got, ok)
		}
	}
}

func TestLifetime(t *testing.T) {
	for value, want := range map[string]bool{"720h": true, "10m": true, "8760h": true, "": false, "30d": false, "9m": false, "8761h": false, "-1h": false} {
		if _, ok := token.Lifetime(value); ok != want {
			t.Errorf("%q: %t, want %t", value, ok, want)
		}
	}
}
