// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/teardown"
)

// While a cluster is paused or down its objects are suspended, and nothing else happens to them. When that is over they are
// brought up to date, and then resumed.
func TestSuspend(t *testing.T) {
	held := func(o *plan.Observed) { o.Held, o.Suspended = true, true }
	replaced := func(o *plan.Observed) { o.Replaced = plan.ReplacedReason }
	byUser := func(o *plan.Observed) { o.Suspended = true }
	changed := func(o *plan.Observed) { o.Hash = "h0" }
	hold := teardown.Decision{Mode: teardown.Hold, Reason: "r"}
	follower := func(addon, of string) plan.Desired {
		d := want(addon)
		d.Predecessors = []plan.Key{key("HelmRelease", of)}
		return d
	}
	gated := func(d plan.Desired) plan.Desired {
		d.Gate = "waits for add-on x"
		return d
	}
	frozen := map[plan.Key]bool{key("HelmRelease", "a"): true}
	cases := map[string]struct {
		suspend  bool
		desired  []plan.Desired
		observed []plan.Observed
		removal  teardown.Decision
		frozen   map[plan.Key]bool
		want     string
	}{
		"Suspends":                 {true, []plan.Desired{want("a")}, []plan.Observed{have("a")}, hold, nil, "Suspend a"},
		"SuspendsAUsers":           {true, []plan.Desired{want("a")}, []plan.Observed{have("a", byUser)}, hold, nil, "Suspend a"},
		"SuspendsAgain":            {true, []plan.Desired{want("a")}, []plan.Observed{have("a", func(o *plan.Observed) { o.Held = true })}, hold, nil, "Suspend a"},
		"IsSuspended":              {true, []plan.Desired{want("a")}, []plan.Observed{have("a", held)}, hold, nil, "AwaitResume a"},
		"ChangesNothing":           {true, []plan.Desired{want("a")}, []plan.Observed{have("a", held, changed)}, hold, nil, "AwaitResume a"},
		"MakesNothing":             {true, []plan.Desired{want("a")}, nil, hold, nil, "AwaitResume a"},
		"WhatLeavesAndIsHeld":      {true, nil, []plan.Observed{have("a")}, hold, nil, "Hold a, Suspend"},
		"WhatLeavesAndIsResumed":   {false, nil, []plan.Observed{have("a", held)}, hold, nil, "Hold a, Resume"},
		"WhatLeavesAndIsSuspended": {true, nil, []plan.Observed{have("a", held)}, hold, nil, "Hold a"},
		"WhatIsOrphaned":           {true, nil, []plan.Observed{have("a", held)}, teardown.Decision{Mode: teardown.Orphan}, nil, "Orphan a"},
		"WhatNobodyKnows":          {true, nil, []plan.Observed{have("a")}, hold, frozen, "Suspend a"},
		"WhatNobodyKnowsSuspended": {true, nil, []plan.Observed{have("a", held)}, hold, frozen, ""},
		"WhatNobodyKnowsResumed":   {false, nil, []plan.Observed{have("a", held)}, hold, frozen, "Resume a"},
		"Resumes":                  {false, []plan.Desired{want("a")}, []plan.Observed{have("a", held)}, hold, nil, "Resume a"},
		"UpdatesBeforeItResumes":   {false, []plan.Desired{want("a")}, []plan.Observed{have("a", held, changed)}, hold, nil, "Update a"},
		"ResumesBeforeItsTurn":     {false, []plan.Desired{gated(want("a"))}, []plan.Observed{have("a", held, changed)}, hold, nil, "Resume a"},
		"LeavesAUsersAlone":        {false, []plan.Desired{want("a")}, []plan.Observed{have("a", byUser)}, hold, nil, "Keep a"},
		"AnotherCluster":           {false, []plan.Desired{want("a")}, []plan.Observed{have("a", replaced)}, hold, nil, "Orphan a"},
		"AnotherClusterSuspended":  {true, []plan.Desired{want("a")}, []plan.Observed{have("a", held, replaced)}, hold, nil, "Orphan a"},
		"AnotherClusterLeaving":    {false, nil, []plan.Observed{have("a", replaced)}, teardown.Decision{Mode: teardown.Uninstall}, nil, "Orphan a"},
		"AnotherClusterTakenOver":  {false, []plan.Desired{follower("b", "a")}, []plan.Observed{have("a", replaced)}, hold, nil, "Orphan a; AwaitRemoval b"},
		"AnotherClusterGated":      {false, []plan.Desired{gated(follower("b", "a"))}, []plan.Observed{have("a", replaced)}, hold, nil, "Orphan a; AwaitDependency b"},
		"AnotherClusterUnknown":    {false, nil, []plan.Observed{have("a", replaced)}, hold, frozen, "Orphan a"},
		"UninstallsWhatIsHeld":     {false, nil, []plan.Observed{have("a", held)}, teardown.Decision{Mode: teardown.Uninstall}, nil, "Uninstall a"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := plan.Input{Desired: tc.desired, Observed: tc.observed, MayCreate: true, Frozen: tc.frozen, Removal: func(plan.Observed) teardown.Decision { return tc.removal }}
			if tc.suspend {
				in.Suspend = "the cluster is down"
			}
			var got []string
			for _, s := range plan.Compute(in) {
				line := fmt.Sprintf("%s %s", s.Verb, s.Addon)
				if s.Meanwhile != "" {
					line += ", " + string(s.Meanwhile)
				}
				got = append(got, line)
			}
			if d := cmp.Diff(tc.want, strings.Join(got, "; ")); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}
