// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/teardown"
)

// What brings rights goes after all that Flux does with them, alone in its plan or not. It is no cycle of dependencies.
func TestRights(t *testing.T) {
	needed := func(o *plan.Observed) { o.NeededBy = "add-on web" }
	for name, tc := range map[string]struct {
		observed []plan.Observed
		mode     teardown.Mode
		want     string
	}{
		"Needed":         {[]plan.Observed{have("rights", needed)}, teardown.Uninstall, "AwaitDependants rights"},
		"NotNeeded":      {[]plan.Observed{have("rights")}, teardown.Uninstall, "Uninstall rights"},
		"BesideAnother":  {[]plan.Observed{have("rights", needed), have("other")}, teardown.Uninstall, "Uninstall other, AwaitDependants rights"},
		"TheClusterGoes": {[]plan.Observed{have("rights", needed)}, teardown.Orphan, "Orphan rights"},
		"ItIsHeld":       {[]plan.Observed{have("rights", needed)}, teardown.Ask, "Ask rights"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, s := range plan.Compute(plan.Input{Observed: tc.observed, MayCreate: true,
				Removal: func(plan.Observed) teardown.Decision { return teardown.Decision{Mode: tc.mode} }}) {
				got = append(got, fmt.Sprintf("%s %s", s.Verb, s.Key.Name))
				if s.Verb == plan.AwaitDependants && !strings.Contains(s.Reason, "waits for add-on web to be gone") {
					t.Errorf("why: %s", s.Reason)
				}
			}
			if is := strings.Join(got, ", "); is != tc.want {
				t.Errorf("%s, want %s", is, tc.want)
			}
		})
	}
}
