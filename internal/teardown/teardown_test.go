// SPDX-License-Identifier: Apache-2.0

package teardown_test

import (
	"strings"
	"testing"
	"time"

	"github.com/chandler-hub/chandler/internal/teardown"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// Every state of an origin, alone and with everything that may come on top.
func TestRegistration(t *testing.T) {
	const (
		recreate, release, uninstall, hold = teardown.Recreate, teardown.Orphan, teardown.Uninstall, teardown.Hold
	)
	type modes struct{ alone, namespaceGoes, forced, longAgo teardown.Mode }
	for _, tc := range []struct {
		origin    teardown.Origin
		isCluster bool
		want      modes
	}{
		{teardown.OriginDeleting, true, modes{release, release, release, release}},
		{teardown.OriginWanted, true, modes{recreate, release, recreate, recreate}},
		{teardown.OriginUnwanted, true, modes{uninstall, release, release, uninstall}},
		{teardown.OriginGone, true, modes{release, release, release, release}},
		{teardown.OriginUnknown, true, modes{hold, release, release, release}},
		// A Secret only says how to reach a cluster, which lives on.
		{teardown.OriginDeleting, false, modes{release, release, release, release}},
		{teardown.OriginWanted, false, modes{recreate, uninstall, recreate, recreate}},
		{teardown.OriginUnwanted, false, modes{uninstall, uninstall, release, uninstall}},
		{teardown.OriginGone, false, modes{uninstall, uninstall, release, uninstall}},
		{teardown.OriginNone, false, modes{uninstall, uninstall, release, uninstall}},
	} {
		base := teardown.RegistrationFacts{Origin: tc.origin, IsCluster: tc.isCluster, Since: now.Add(-time.Minute), Now: now, Grace: time.Hour}
		for what, c := range map[string]struct {
			want teardown.Mode
			with func(*teardown.RegistrationFacts)
		}{
			"alone":         {tc.want.alone, func(*teardown.RegistrationFacts) {}},
			"namespaceGoes": {tc.want.namespaceGoes, func(f *teardown.RegistrationFacts) { f.NamespaceDeleted = true }},
			"forced":        {tc.want.forced, func(f *teardown.RegistrationFacts) { f.Forced = true }},
			"longAgo":       {tc.want.longAgo, func(f *teardown.RegistrationFacts) { f.Since = now.Add(-time.Hour) }},
			"kindGoes": {recreate, func(f *teardown.RegistrationFacts) {
				f.KindDeleted, f.Forced, f.NamespaceDeleted = true, true, true
			}},
		} {
			f := base
			c.with(&f)
			if got := teardown.Registration(f); got.Mode != c.want || got.Reason == "" {
				t.Errorf("%s (cluster: %t), %s: %+v, want %s", tc.origin, tc.isCluster, what, got, c.want)
			}
		}
	}
}

// TestRegistrationOfASharedCluster: what another registration of the same cluster goes on with is orphaned, and not uninstalled. While nobody knows
// whether the one that goes is made again, it stays.
func TestRegistrationOfASharedCluster(t *testing.T) {
	shared := teardown.RegistrationFacts{Origin: teardown.OriginUnwanted, Other: "ClusterRegistration fleet/two stays", Since: now, Now: now, Grace: time.Hour}
	for name, tc := range map[string]struct {
		with func(*teardown.RegistrationFacts)
		want teardown.Mode
		says bool
	}{
		"Unregistered":  {func(*teardown.RegistrationFacts) {}, teardown.Orphan, true},
		"ByHand":        {func(f *teardown.RegistrationFacts) { f.Origin = teardown.OriginNone }, teardown.Orphan, true},
		"SecretLost":    {func(f *teardown.RegistrationFacts) { f.Origin, f.Lost = teardown.OriginGone, true }, teardown.Orphan, true},
		"NamespaceGoes": {func(f *teardown.RegistrationFacts) { f.NamespaceDeleted = true }, teardown.Orphan, true},
		"Unreadable":    {func(f *teardown.RegistrationFacts) { f.Origin = teardown.OriginUnknown }, teardown.Hold, false},
		"MadeAgain":     {func(f *teardown.RegistrationFacts) { f.Origin = teardown.OriginWanted }, teardown.Recreate, false},
		"ClusterGoes":   {func(f *teardown.RegistrationFacts) { f.Origin, f.IsCluster = teardown.OriginDeleting, true }, teardown.Orphan, false},
		"Forced":        {func(f *teardown.RegistrationFacts) { f.Forced = true }, teardown.Orphan, false},
		"Alone":         {func(f *teardown.RegistrationFacts) { f.Other = "" }, teardown.Uninstall, false},
	} {
		f := shared
		tc.with(&f)
		if got := teardown.Registration(f); got.Mode != tc.want || tc.says != (got.Reason == shared.Other) {
			t.Errorf("%s: %+v, want %s", name, got, tc.want)
		}
	}
}

// A registration whose Secret has not been there for the grace is orphaned, as far as the removal guard allows; its cluster lives on. What
// somebody asks for goes first.
func TestRegistrationThatIsLost(t *testing.T) {
	lost := teardown.RegistrationFacts{Origin: teardown.OriginGone, Lost: true, Since: now, Now: now, Grace: time.Hour}
	for name, tc := range map[string]struct {
		with func(*teardown.RegistrationFacts)
		want teardown.Mode
	}{
		"Alone":         {func(*teardown.RegistrationFacts) {}, teardown.Orphan},
		"NotLost":       {func(f *teardown.RegistrationFacts) { f.Lost = false }, teardown.Uninstall},
		"NamespaceGoes": {func(f *teardown.RegistrationFacts) { f.NamespaceDeleted = true }, teardown.Uninstall},
		"Back":          {func(f *teardown.RegistrationFacts) { f.Origin = teardown.OriginWanted }, teardown.Recreate},
	} {
		f := lost
		tc.with(&f)
		if got := teardown.Registration(f); got.Mode != tc.want {
			t.Errorf("%s: %+v, want %s", name, got, tc.want)
		}
	}
}

func TestDeleted(t *testing.T) {
	made := now.Add(-time.Hour)
	for name, tc := range map[string]struct {
		facts teardown.OriginFacts
		want  bool
	}{
		"SeenAndGone":         {teardown.OriginFacts{Seen: true, Kind: made.Add(-time.Hour), Registration: made}, true},
		"OutOfABackup":        {teardown.OriginFacts{Kind: made.Add(-time.Hour), Registration: made}, false},
		"KindInstalledAnew":   {teardown.OriginFacts{Seen: true, Kind: now, Registration: made}, false},
		"NoKindThatCanBeGone": {teardown.OriginFacts{Seen: true, Registration: made}, false},
	} {
		if got := teardown.Deleted(tc.facts); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestAddon(t *testing.T) {
	base := teardown.Facts{RegistrationFound: true, Reachable: true, Since: now.Add(-time.Minute), Now: now, Grace: time.Hour}
	cases := map[string]struct {
		reason string
		with   func(*teardown.Facts)
		want   teardown.Mode
		wait   time.Duration
	}{
		"Reachable":           {"uninstalled in order", func(*teardown.Facts) {}, teardown.Uninstall, 0},
		"Unreachable":         {"not deleted: it would hang", func(f *teardown.Facts) { f.Reachable = false }, teardown.Hold, 59 * time.Minute},
		"UnreachableLong":     {"orphaned after the grace", func(f *teardown.Facts) { f.Reachable = false; f.Since = now.Add(-time.Hour) }, teardown.Orphan, 0},
		"ReachableLong":       {"the grace is for silence only", func(f *teardown.Facts) { f.Since = now.Add(-24 * time.Hour) }, teardown.Uninstall, 0},
		"Orphaned":            {"the database is gone already", func(f *teardown.Facts) { f.Orphaned = "r" }, teardown.Orphan, 0},
		"OrphanedUnreachable": {"no need to wait", func(f *teardown.Facts) { f.Orphaned, f.Reachable = "r", false }, teardown.Orphan, 0},
		"OrphanedPaused":      {"nor for a pause", func(f *teardown.Facts) { f.Orphaned, f.Paused = "r", true }, teardown.Orphan, 0},
		"Orphan":              {"asked to be left", func(f *teardown.Facts) { f.Orphan = true }, teardown.Orphan, 0},
		"OrphanUnreachable":   {"no need to wait", func(f *teardown.Facts) { f.Orphan = true; f.Reachable = false }, teardown.Orphan, 0},
		"OrphanPaused":        {"nothing on the cluster changes", func(f *teardown.Facts) { f.Orphan, f.Paused = true, true }, teardown.Orphan, 0},
		"Paused":              {"leaves when that is over", func(f *teardown.Facts) { f.Paused = true }, teardown.Hold, 0},
		"PausedUnreachable":   {"however long", func(f *teardown.Facts) { f.Paused, f.Reachable, f.Since = true, false, now.Add(-24*time.Hour) }, teardown.Hold, 0},
		"JustDropped":         {"another set may take it over", func(f *teardown.Facts) { f.Since, f.Settle = now.Add(-time.Second), 5*time.Second }, teardown.Hold, 4 * time.Second},
		"DroppedAWhileAgo":    {"nothing took it over", func(f *teardown.Facts) { f.Settle = 5 * time.Second }, teardown.Uninstall, 0},
		"NoHubHasSeenWhatCame": {"another set may have come meanwhile", func(f *teardown.Facts) {
			f.Settle, f.Began = 5*time.Second, now.Add(-time.Second)
		}, teardown.Hold, 4 * time.Second},
		"NoHubHasSeenWhatIsUninstalled": {"nothing takes over what has begun to go", func(f *teardown.Facts) {
			f.Settle, f.Began, f.Deleted = 5*time.Second, now, now.Add(-time.Minute)
		}, teardown.Uninstall, 0},
		"Guarded":          {"more than go by themselves", func(f *teardown.Facts) { f.Guarded = true }, teardown.Ask, 0},
		"GuardedOrphan":    {"nothing is taken away", func(f *teardown.Facts) { f.Guarded, f.Orphan = true, true }, teardown.Orphan, 0},
		"GuardedOrigin":    {"it is lost anyway", func(f *teardown.Facts) { f.Guarded, f.Orphaned = true, "r" }, teardown.Orphan, 0},
		"GuardedJustNow":   {"what is taken over is not asked for", func(f *teardown.Facts) { f.Guarded, f.Settle = true, 2*time.Minute }, teardown.Hold, time.Minute},
		"GuardedDown":      {"asked when it would be orphaned", func(f *teardown.Facts) { f.Guarded, f.Reachable, f.Grace = true, false, time.Second }, teardown.Ask, 0},
		"Rightless":        {"what it needs may come again", func(f *teardown.Facts) { f.Rightless = "r" }, teardown.Uninstall, 59 * time.Minute},
		"RightlessLong":    {"Flux would try for ever", func(f *teardown.Facts) { f.Rightless, f.Since = "r", now.Add(-time.Hour) }, teardown.Orphan, 0},
		"RightlessPaused":  {"leaves when that is over", func(f *teardown.Facts) { f.Rightless, f.Since, f.Paused = "r", now.Add(-time.Hour), true }, teardown.Hold, 0},
		"RightlessGuarded": {"it counts all the same", func(f *teardown.Facts) { f.Rightless, f.Since, f.Guarded = "r", now.Add(-time.Hour), true }, teardown.Ask, 0},
		"Awaited":          {"whoever moved it has not asked for its removal", func(f *teardown.Facts) { f.Awaited, f.Guarded = "r", true }, teardown.Hold, 0},
		"AwaitedOrphaned":  {"the database is gone already", func(f *teardown.Facts) { f.Awaited, f.Orphaned = "r", "r" }, teardown.Orphan, 0},
		"AwaitedDown":      {"a deletion ends", func(f *teardown.Facts) { f.Awaited, f.Reachable, f.Since = "r", false, now.Add(-time.Hour) }, teardown.Orphan, 0},
		"Unprobed":         {"it is for Flux to say that it fails", func(f *teardown.Facts) { f.Unprobed = true }, teardown.Uninstall, 0},
		"UnprobedAtLast":   {"what waited for long has not been tried yet", func(f *teardown.Facts) { f.Unprobed, f.Since = true, now.Add(-24*time.Hour) }, teardown.Uninstall, 0},
		"UnprobedGoing":    {"Flux is at it", func(f *teardown.Facts) { f.Unprobed, f.Deleted = true, now.Add(-time.Minute) }, teardown.Uninstall, 59 * time.Minute},
		"UnprobedLong":     {"a deleted Kustomization does not say that it fails", func(f *teardown.Facts) { f.Unprobed, f.Deleted = true, now.Add(-time.Hour) }, teardown.Orphan, 0},
		"UnprobedNoGrace":  {"an uninstallation takes its time", func(f *teardown.Facts) { f.Unprobed, f.Deleted, f.Grace = true, now.Add(-time.Minute), 0 }, teardown.Uninstall, 9 * time.Minute},
		"ProbedLong":       {"it answers, so Flux will get there", func(f *teardown.Facts) { f.Deleted = now.Add(-24 * time.Hour) }, teardown.Uninstall, 0},
		"UnprobedFails":    {"as any cluster that does not answer", func(f *teardown.Facts) { f.Unprobed, f.Reachable = true, false }, teardown.Hold, 59 * time.Minute},
		"UnprobedFailsLong": {"a long uninstall has all of the grace when the cluster goes down", func(f *teardown.Facts) {
			f.Unprobed, f.Reachable, f.Deleted, f.Since, f.Silent = true, false, now.Add(-2*time.Hour), now.Add(-2*time.Hour), now.Add(-10*time.Minute)
		}, teardown.Hold, 50 * time.Minute},
		"NoRegistration": {"absence removes nothing", func(f *teardown.Facts) { f.RegistrationFound, f.Reachable = false, false }, teardown.Hold, 59 * time.Minute},
		"DownInTheMiddle": {"a long uninstall has all of the grace when the cluster goes down", func(f *teardown.Facts) {
			f.Reachable, f.Since, f.Silent = false, now.Add(-24*time.Hour), now.Add(-10*time.Minute)
		}, teardown.Hold, 50 * time.Minute},
		"DownBefore": {"it counts from when it was asked for", func(f *teardown.Facts) {
			f.Reachable, f.Since, f.Silent = false, now.Add(-10*time.Minute), now.Add(-24*time.Hour)
		}, teardown.Hold, 50 * time.Minute},
		"DownInTheMiddleLong": {"and no more", func(f *teardown.Facts) {
			f.Reachable, f.Since, f.Silent = false, now.Add(-24*time.Hour), now.Add(-time.Hour)
		}, teardown.Orphan, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := base
			tc.with(&f)
			if got := teardown.Addon(f); got.Mode != tc.want {
				t.Errorf("%s: got %s (%s), want %s", tc.reason, got.Mode, got.Reason, tc.want)
			}
			if told := strings.Contains(teardown.Addon(f).Reason, "registration does not exist"); told != (name == "NoRegistration") {
				t.Errorf("it says %q", teardown.Addon(f).Reason)
			}
			if got := teardown.Wait(f); got != tc.wait {
				t.Errorf("wait %s, want %s", got, tc.wait)
			}
		})
	}
}
