// SPDX-License-Identifier: Apache-2.0

package folding_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chandler-hub/chandler/internal/importer/folding"
)

// TestFoldWhatFluxHasApplied: what Flux has not applied yet is left: what the cluster has is something else, and nobody would
// remove it once the hub has the object.
func TestFoldWhatFluxHasApplied(t *testing.T) {
	status := func(seen int, ready string, at int) string {
		return fmt.Sprintf("status: {observedGeneration: %d, conditions: [{type: Healthy, status: \"True\"}, "+
			"{type: Ready, status: %q, observedGeneration: %d}]}\n", seen, ready, at)
	}
	for name, tc := range map[string]struct {
		status string
		file   bool
		folded bool
	}{
		"Ready":                   {status(2, "True", 2), false, true},
		"ReadyInAFile":            {status(2, "True", 2), true, true},
		"NotReady":                {status(2, "False", 2), false, false},
		"NotReadyInAFile":         {status(2, "False", 2), true, false},
		"Unknown":                 {status(2, "Unknown", 2), false, false},
		"NotSeen":                 {status(1, "True", 1), false, false},
		"ReadyOfAnOldGeneration":  {status(2, "True", 1), false, false},
		"WithoutConditions":       {"status: {observedGeneration: 2}\n", false, false},
		"WithoutStatus":           {"", false, false},
		"WithoutStatusInAFile":    {"", true, true},
		"ConditionWithoutHistory": {"status: {observedGeneration: 2, conditions: [{type: Ready, status: \"True\"}]}\n", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(t, strings.Replace(forCluster("base", "edge1"), "{name: base,", "{generation: 2, name: base,", 1)+tc.status)
			if !tc.file {
				in.Objects[0].File = ""
			}
			out := folding.Fold(in)
			if (len(out.Folded) == 1) != tc.folded {
				t.Fatalf("folded: %v, left: %v", out.Folded, out.Left)
			}
			if !tc.folded && !strings.Contains(out.Left[0].Reason, "let Flux finish first") {
				t.Errorf("it is left because %s", out.Left[0].Reason)
			}
		})
	}
}
