// SPDX-License-Identifier: Apache-2.0

package teardown_test

import (
	"testing"
	"time"

	"github.com/chandler-hub/chandler/internal/teardown"
)

func TestRegistration(t *testing.T) {
	for origin, want := range map[teardown.Origin]teardown.Mode{
		teardown.OriginNone:     teardown.Uninstall,
		teardown.OriginUnwanted: teardown.Uninstall,
		teardown.OriginGone:     teardown.Uninstall,
		teardown.OriginDeleting: teardown.Release,
		teardown.OriginWanted:   teardown.Recreate,
		teardown.OriginUnknown:  teardown.Hold,
	} {
		if got := teardown.Registration(origin); got.Mode != want {
			t.Errorf("%s: %s, want %s", origin, got.Mode, want)
		}
	}
}

func TestAddon(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	base := teardown.Facts{RegistrationFound: true, Reachable: true, Since: now.Add(-time.Minute), Now: now, Grace: time.Hour}
	cases := map[string]struct {
		reason string
		with   func(*teardown.Facts)
		want   teardown.Mode
		wait   time.Duration
	}{
		"Reachable":         {"uninstalled in order", func(*teardown.Facts) {}, teardown.Uninstall, 0},
		"Unreachable":       {"not deleted: it would hang", func(f *teardown.Facts) { f.Reachable = false }, teardown.Hold, 59 * time.Minute},
		"UnreachableLong":   {"let go after the grace", func(f *teardown.Facts) { f.Reachable = false; f.Since = now.Add(-time.Hour) }, teardown.Release, 0},
		"ReachableLong":     {"the grace is for silence only", func(f *teardown.Facts) { f.Since = now.Add(-24 * time.Hour) }, teardown.Uninstall, 0},
		"OriginDeleted":     {"the database is gone already", func(f *teardown.Facts) { f.OriginDeleted = true }, teardown.Release, 0},
		"Orphan":            {"asked to be left", func(f *teardown.Facts) { f.Orphan = true }, teardown.Release, 0},
		"OrphanUnreachable": {"no need to wait", func(f *teardown.Facts) { f.Orphan = true; f.Reachable = false }, teardown.Release, 0},
		"JustDropped":       {"another set may take it over", func(f *teardown.Facts) { f.Since, f.Settle = now.Add(-time.Second), 5*time.Second }, teardown.Hold, 4 * time.Second},
		"DroppedAWhileAgo":  {"nothing took it over", func(f *teardown.Facts) { f.Settle = 5 * time.Second }, teardown.Uninstall, 0},
		"Guarded":           {"more than go by themselves", func(f *teardown.Facts) { f.Guarded = true }, teardown.Ask, 0},
		"GuardedOrphan":     {"nothing is taken away", func(f *teardown.Facts) { f.Guarded, f.Orphan = true, true }, teardown.Release, 0},
		"GuardedOrigin":     {"it is lost anyway", func(f *teardown.Facts) { f.Guarded, f.OriginDeleted = true, true }, teardown.Release, 0},
		"GuardedJustNow":    {"what is taken over is not asked for", func(f *teardown.Facts) { f.Guarded, f.Settle = true, 2*time.Minute }, teardown.Hold, time.Minute},
		"GuardedDown":       {"asked when it would be let go", func(f *teardown.Facts) { f.Guarded, f.Reachable, f.Grace = true, false, time.Second }, teardown.Ask, 0},
		"Unprobed":          {"it is for Flux to say that it fails", func(f *teardown.Facts) { f.Unprobed = true }, teardown.Uninstall, 0},
		"UnprobedAtLast":    {"what waited for long has not been tried yet", func(f *teardown.Facts) { f.Unprobed, f.Since = true, now.Add(-24*time.Hour) }, teardown.Uninstall, 0},
		"UnprobedGoing":     {"Flux is at it", func(f *teardown.Facts) { f.Unprobed, f.Deleted = true, now.Add(-time.Minute) }, teardown.Uninstall, 59 * time.Minute},
		"UnprobedLong":      {"a deleted Kustomization does not say that it fails", func(f *teardown.Facts) { f.Unprobed, f.Deleted = true, now.Add(-time.Hour) }, teardown.Release, 0},
		"UnprobedNoGrace":   {"an uninstallation takes its time", func(f *teardown.Facts) { f.Unprobed, f.Deleted, f.Grace = true, now.Add(-time.Minute), 0 }, teardown.Uninstall, 9 * time.Minute},
		"ProbedLong":        {"it answers, so Flux will get there", func(f *teardown.Facts) { f.Deleted = now.Add(-24 * time.Hour) }, teardown.Uninstall, 0},
		"UnprobedFails":     {"as any cluster that does not answer", func(f *teardown.Facts) { f.Unprobed, f.Reachable = true, false }, teardown.Hold, 59 * time.Minute},
		"NoRegistration":    {"absence removes nothing", func(f *teardown.Facts) { f.RegistrationFound, f.Reachable = false, false }, teardown.Hold, 59 * time.Minute},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := base
			tc.with(&f)
			if got := teardown.Addon(f); got.Mode != tc.want {
				t.Errorf("%s: got %s (%s), want %s", tc.reason, got.Mode, got.Reason, tc.want)
			}
			if got := teardown.Wait(f); got != tc.wait {
				t.Errorf("wait %s, want %s", got, tc.wait)
			}
		})
	}
}
