// SPDX-License-Identifier: Apache-2.0

package render

import (
	"errors"
	"slices"
	"strings"

	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/render/variables"
)

// note notes values of an add-on that rest on unknown facts.
func (r *renderer) note(unknown []variables.Unknown) {
	r.marks = append(r.marks, unknown...)
	slices.SortStableFunc(r.marks, func(a, b variables.Unknown) int { return strings.Compare(a.Path, b.Path) })
}

// noteSource notes values of a source that rest on unknown facts. They count for each add-on that uses it.
func (r *renderer) noteSource(name string, unknown []variables.Unknown) {
	before := len(r.marks)
	all := r.marks
	r.marks = nil
	r.note(unknown)
	if len(r.marks) > 0 {
		if r.sourceMarks == nil {
			r.sourceMarks = map[string][]variables.Unknown{}
		}
		r.sourceMarks[name] = r.marks
	}
	r.marks = append(all[:before:before], r.marks...)
}

// unmarked leaves out the problems of values that hold a placeholder.
func (r *renderer) unmarked(addon, field string, problems []fluxspec.Problem) []fluxspec.Problem {
	return slices.DeleteFunc(problems, func(p fluxspec.Problem) bool {
		path := compile.Join(field, p.Path)
		return slices.ContainsFunc(r.marks, func(u variables.Unknown) bool {
			return u.Addon == addon && (within(path, u.Path) || within(u.Path, path))
		})
	})
}

// within returns whether a path is another, or is below it.
func within(path, above string) bool {
	rest, ok := strings.CutPrefix(path, above)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// leavesOpen returns whether an error leaves open only what an overlay does to its own add-ons: it is not known whether the
// overlay applies, and it sets no variables. Those add-ons wait, and the others go on.
func (r *renderer) leavesOpen(o *compile.Overlay, err error) bool {
	var open compile.Error
	if len(o.Variables) > 0 || !errors.As(err, &open) || open.Fact == "" {
		return false
	}
	if r.undecided == nil {
		r.undecided = map[string]compile.Error{}
	}
	for name := range o.Addons {
		if _, there := r.undecided[name]; !there {
			r.undecided[name] = open
		}
	}
	return true
}
