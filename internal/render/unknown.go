// SPDX-License-Identifier: Apache-2.0

package render

import (
	"errors"
	"slices"
	"strings"

	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/fluxspec"
)

// Unknown is a value that rests on a fact about the cluster that is not known.
type Unknown struct {
	// Addon has the value, or the source that has it.
	Addon string
	// Path is where it is written, such as helmRelease.values.k8sServiceHost.
	Path string
	// Text is what is written there.
	Text string
	// Fact is the fact, such as cluster.apiServer, and Why says why it is not known, and what to do.
	Fact, Why string
}

// placeholder is what a value holds that rests on an unknown fact: the expressions, too, also those of the variables on the way there, so
// that two values are the same only if they come out the same once the fact is known.
func placeholder(fact, text string, err error) string {
	out := "<unknown: " + fact + " in " + text
	for via := (problem{}); errors.As(err, &via); err = via.err {
		out += ", " + via.text
	}
	return out + ">"
}

// mark is a value that rests on an unknown fact, in a document.
type mark struct {
	path []string
	text string
	err  error
}

// note notes values of an add-on that rest on unknown facts.
func (r *renderer) note(addon, path string, marks []mark) {
	for _, m := range marks {
		r.marks = append(r.marks, Unknown{Addon: addon, Path: trim(path + "." + joinPath(m.path)), Text: m.text, Fact: compile.Fact(m.err),
			Why: m.err.Error()})
	}
	slices.SortStableFunc(r.marks, func(a, b Unknown) int { return strings.Compare(a.Path, b.Path) })
}

// noteSource notes values of a source that rest on unknown facts. They count for each add-on that uses it.
func (r *renderer) noteSource(name, path string, marks []mark) {
	before := len(r.marks)
	all := r.marks
	r.marks = nil
	r.note("", path, marks)
	if len(r.marks) > 0 {
		if r.sourceMarks == nil {
			r.sourceMarks = map[string][]Unknown{}
		}
		r.sourceMarks[name] = r.marks
	}
	r.marks = append(all[:before:before], r.marks...)
}

// unmarked leaves out the problems of values that hold a placeholder.
func (r *renderer) unmarked(addon, field string, problems []fluxspec.Problem) []fluxspec.Problem {
	return slices.DeleteFunc(problems, func(p fluxspec.Problem) bool {
		path := trim(field + "." + p.Path)
		return slices.ContainsFunc(r.marks, func(u Unknown) bool {
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
