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

// How long a token lives is what it says of itself, however wrong the clock of the cluster is, and counts only within what it was asked
// for.
func TestExpiry(t *testing.T) {
	asked := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	endOfTime := time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	// at is a token that was issued a while after it was asked for, by the clock of the cluster, and lives for a while.
	at := func(skew, lifetime time.Duration) token.Said {
		return token.Said{Issued: asked.Add(skew), Expires: asked.Add(skew + lifetime)}
	}
	for name, tc := range map[string]struct {
		says token.Said
		want time.Duration
	}{
		"AsAsked":               {at(0, 24*time.Hour), 24 * time.Hour},
		"Shorter":               {at(0, time.Hour), time.Hour},
		"TheShortest":           {at(0, 10*time.Minute), 10 * time.Minute},
		"ClockIsHoursAhead":     {at(3*time.Hour, time.Hour), time.Hour},
		"ClockIsHoursBehind":    {at(-3*time.Hour, time.Hour), time.Hour},
		"ClockIsYearsAhead":     {at(9*8760*time.Hour, time.Hour), time.Hour},
		"Years":                 {at(0, 9*8760*time.Hour), 24 * time.Hour},
		"OverBeforeItBegins":    {at(0, -time.Hour), token.Shortest},
		"EndOfTime":             {token.Said{Issued: asked, Expires: endOfTime}, 24 * time.Hour},
		"SaysNoBeginning":       {token.Said{Expires: asked.Add(time.Hour)}, time.Hour},
		"SaysNoBeginningAndLie": {token.Said{Expires: endOfTime}, 24 * time.Hour},
		"SaysNothing":           {token.Said{}, token.Shortest},
	} {
		expires := token.Expiry(asked, tc.says, 24*time.Hour)
		if got := expires.Sub(asked); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
		if got := token.RenewIn(asked, expires, asked); got != tc.want/3 || got < token.Apart {
			t.Errorf("%s: it is renewed after %s, want a third of %s", name, got, tc.want)
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
