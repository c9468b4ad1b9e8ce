// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"
	"testing"
)

// TestFailedRevisionsAreRemembered: a revision that has failed is not rolled out again by itself for as long as it exists, however many
// have failed since. Of those that are gone the last few are kept for people.
func TestFailedRevisionsAreRemembered(t *testing.T) {
	var failed []string
	for i := range 20 {
		failed = remember(failed, fmt.Sprintf("base-%d", i), func(name string) bool { return name == "base-0" || name == "base-7" })
	}
	if want := []string{"base-0", "base-7", "base-15", "base-16", "base-17", "base-18", "base-19"}; !slices.Equal(failed, want) {
		t.Errorf("it remembers %v, want %v", failed, want)
	}
}
