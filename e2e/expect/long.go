// SPDX-License-Identifier: Apache-2.0

package expect

import (
	"os"
	"testing"
)

// Long is whether tests are to run whole, as they do at night. By day the long tables have the rows alone that no other layer proves
// (docs/development.md says where the others are proven).
func Long() bool { return os.Getenv("CHANDLER_LONG") != "" }

// AtNight skips what another layer proves by day, and says which.
func AtNight(t *testing.T, byDay string) {
	t.Helper()
	if !Long() {
		t.Skipf("at night (CHANDLER_LONG=1); by day: %s", byDay)
	}
}

// ByDay returns how often something is done by day, and at night.
func ByDay(day, night int) int {
	if Long() {
		return night
	}
	return day
}
