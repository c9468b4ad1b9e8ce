// SPDX-License-Identifier: Apache-2.0

package preview

import (
	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/match"
)

// Selection is a set that is valid, and how far it reaches.
type Selection struct {
	Set   *hubv1.AddonSet
	Reach match.Reach
}

// Select returns the valid sets of a fleet, those that the hub makes for Teams among them, and its clusters. The report has no more
// than what is wrong.
func Select(f *Fleet, o Options) ([]Selection, []hubv1.ClusterRegistration, *Report) {
	r := &renderer{fleet: f, options: o, out: &Report{}, shared: map[key]bool{}}
	r.teams()
	r.compile()
	var out []Selection
	for _, c := range r.sets {
		if c.selector != nil && c.program != nil {
			out = append(out, Selection{c.set, c.reach})
		}
	}
	return out, f.registrations(), r.out
}
