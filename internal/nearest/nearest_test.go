// SPDX-License-Identifier: Apache-2.0

package nearest_test

import (
	"testing"

	"github.com/chandler-hub/chandler/internal/nearest"
)

func TestTo(t *testing.T) {
	kinds := []string{"AddonDelivery", "AddonSet", "ClusterRegistration", "Team"}
	fields := []string{"addons", "dependsOn", "priority", "version", "when"}
	for _, tc := range []struct {
		written, want string
		of            []string
	}{
		{"AddonSets", "AddonSet", kinds}, {"addonset", "AddonSet", kinds}, {"Tema", "Team", kinds}, {"Pipeline", "", kinds},
		{"versoin", "version", fields}, {"dependson", "dependsOn", fields}, {"prioritty", "priority", fields}, {"on", "", fields}, {"", "", fields},
	} {
		if got := nearest.To(tc.written, tc.of); got != tc.want {
			t.Errorf("%q: %q, want %q", tc.written, got, tc.want)
		}
	}
}
