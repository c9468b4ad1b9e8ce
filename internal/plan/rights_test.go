// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/teardown"
)

// The rights of a Team go after everything that Flux does with them, whether it leaves or not.
func TestRights(t *testing.T) {
	rights := have("rights", func(o *plan.Observed) { o.Rights = []string{"team"} })
	web := have("web", func(o *plan.Observed) { o.Key.Namespace = "team" })
	finished, foreign, elsewhere := web, web, web
	finished.Deleting, finished.Finished = true, true
	foreign.Foreign = true
	elsewhere.Key.Namespace = "other"
	for name, tc := range map[string]struct {
		other  plan.Observed
		frozen bool
		want   string
	}{
		"BothLeave":    {web, false, "AwaitDependants rights, Uninstall web"},
		"TheOtherIs":   {web, true, "AwaitDependants rights"},
		"ItIsFinished": {finished, false, "Uninstall rights, Finish web"},
		"ByHand":       {foreign, true, "Uninstall rights"},
		"OfOthers":     {elsewhere, false, "Uninstall rights, Uninstall web"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, s := range plan.Compute(plan.Input{Observed: []plan.Observed{rights, tc.other}, MayCreate: true, Frozen: map[plan.Key]bool{tc.other.Key: tc.frozen},
				Removal: func(plan.Observed) teardown.Decision { return teardown.Decision{Mode: teardown.Uninstall} }}) {
				got = append(got, fmt.Sprintf("%s %s", s.Verb, s.Key.Name))
				if s.Verb == plan.AwaitDependants && !strings.Contains(s.Reason, "add-on web (HelmRelease team/web) to be gone") {
					t.Errorf("why: %s", s.Reason)
				}
			}
			if is := strings.Join(got, ", "); is != tc.want {
				t.Errorf("%s, want %s", is, tc.want)
			}
		})
	}
}
