// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/expression"
	"github.com/chandler-hub/chandler/internal/merge"
)

// scope evaluates expressions with one set of variables. A variable may itself contain expressions over others. Each
// is evaluated when it is first read.
type scope struct {
	program *compile.Program
	cluster *expression.Cluster
	origin  map[string]any
	budget  *budget

	raw    map[string]any  // merged, with their expressions
	owners map[string]bool // the variables that the cluster itself has set
	trace  *merge.Trace

	values map[string]any
	states map[string]*variable
	stack  []string
	// said are the variables of the cluster that have influenced a result, or a failure, since the list was last
	// emptied. failing are those among them whose expression failed, or that may not contain one.
	said, failing []string
}

// variable is a variable that something has read.
type variable struct {
	done bool
	err  error
	// decided names the variables of the cluster that it depends on.
	decided []string
}

func newScope(p *compile.Program, in *Input, budget *budget) *scope {
	return &scope{
		program: p, cluster: in.Cluster, origin: in.Origin, budget: budget, raw: map[string]any{}, owners: map[string]bool{},
		values: map[string]any{}, states: map[string]*variable{},
	}
}

// add adds variables of the set, which override those that are there.
func (s *scope) add(layer string, values map[string]any) {
	merge.Merge(s.raw, values, merge.Options{Layer: layer, Trace: s.trace})
}

// addLiteral adds variables in which << is text. They override those that are there. If owner is true, they belong to
// the cluster's owner.
func (s *scope) addLiteral(layer string, values map[string]any, owner bool) {
	for name, v := range values {
		merge.Merge(s.raw, map[string]any{name: expression.EscapeAll(v)}, merge.Options{Layer: layer, Trace: s.trace})
		if owner {
			s.owners[name] = true
		}
	}
}

// eval evaluates a text that contains <<. decided names the variables of the cluster that influenced the result.
func (s *scope) eval(text string) (value any, decided []string, err error) {
	t, err := s.program.Template(text)
	if err != nil {
		return nil, nil, err
	}
	return s.template(t)
}

func (s *scope) template(t *expression.Template) (value any, decided []string, err error) {
	if literal, ok := t.Literal(); ok {
		return literal, nil, nil
	}
	names := t.Vars()
	if t.AllVars() {
		names = names[:0:0]
		for name := range s.raw {
			names = append(names, name)
		}
		for name := range s.owners {
			names = append(names, name)
		}
		slices.Sort(names)
		names = slices.Compact(names)
	}
	for _, name := range names {
		v := s.need(name)
		if v == nil {
			continue
		}
		s.said = append(s.said, v.decided...)
		if v.err != nil {
			return nil, nil, v.err
		}
		decided = append(decided, v.decided...)
	}
	value, err = t.Eval(expression.Input{Cluster: s.cluster, Origin: s.origin, Vars: s.values, Budget: &s.budget.cost,
		Names: func() []string { return slices.Sorted(maps.Keys(s.raw)) }})
	return value, decided, err
}

// need evaluates a variable, once. It returns nil if there is none of that name.
func (s *scope) need(name string) *variable {
	raw, ok := s.raw[name]
	switch {
	case !ok && s.owners[name]:
		return &variable{done: true, decided: []string{name}} // the cluster took it away, which is a say as well
	case !ok:
		return nil
	}
	v := s.states[name]
	if v == nil {
		v = &variable{}
		s.states[name] = v
		s.stack = append(s.stack, name)
		s.evaluate(name, raw, v)
		s.stack = s.stack[:len(s.stack)-1]
		v.done = true
	}
	if !v.done {
		cycle := append(slices.Clone(s.stack[slices.Index(s.stack, name):]), name)
		return &variable{err: fmt.Errorf("variables wait for each other: %s", strings.Join(cycle, " -> "))}
	}
	return v
}

func (s *scope) evaluate(name string, raw any, v *variable) {
	if s.owners[name] {
		v.decided = []string{name}
	}
	e := evaluator{scope: s}
	value := e.value(nil, raw)
	v.decided = append(v.decided, e.decided...)
	if len(e.problems) > 0 {
		v.err = fmt.Errorf("variable %q: %w", name, worst(e.problems))
		return
	}
	if value != expression.Absent {
		s.values[name] = value
	}
}

// problem is something wrong at a path, with the text there.
type problem struct {
	path []string
	err  error
	text string
}

func (p problem) Error() string {
	if len(p.path) == 0 {
		return p.err.Error()
	}
	return strings.Join(p.path, ".") + ": " + p.err.Error()
}

func (p problem) Unwrap() error { return p.err }

// worst returns the problem to tell of: one that a person has to mend, before a fact that is not known yet.
func worst(problems []problem) problem {
	for _, p := range problems {
		if compile.Fact(p.err) == "" {
			return p
		}
	}
	return problems[0]
}

// errors returns the problems in a document as errors of an add-on, by their paths below the document's.
func (e *evaluator) errors(addon, path string) Errors {
	var out Errors
	for _, p := range e.problems {
		at := trim(path + "." + joinPath(p.path))
		out = append(out, compile.Error{Addon: addon, Path: at, Message: p.err.Error(), Fact: compile.Fact(p.err)})
	}
	return out
}

// evaluator evaluates the expressions in a document.
type evaluator struct {
	*scope
	// allowed returns an error if the cluster's variables may not decide the value at a path. It is nil if they may
	// everywhere.
	allowed func(path []string, variables []string) error

	// mark asks for marks in place of the problems that are only for want of a fact.
	mark bool

	decided  []string
	problems []problem
	marks    []mark
	// evaluated is true once an expression was evaluated.
	evaluated bool
	// size is about how many bytes of JSON the results have together. Many expressions may give the same large value,
	// which is only one until the set names it.
	size int
}

// maxProblems bounds how many problems are reported for one document.
const maxProblems = 10

// value returns a copy of v with every expression evaluated.
func (e *evaluator) value(path []string, v any) any {
	switch v := v.(type) {
	case string:
		if expression.Has(v) {
			return e.text(path, v)
		}
		return v
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			if x = e.value(append(path[:len(path):len(path)], k), x); x != expression.Absent {
				out[k] = x
			}
		}
		return out
	case []any:
		out := make([]any, 0, len(v))
		for i, x := range v {
			if x = e.value(append(path[:len(path):len(path)], fmt.Sprintf("[%d]", i)), x); x != expression.Absent {
				out = append(out, x)
			}
		}
		return out
	}
	return v
}

func (e *evaluator) text(path []string, text string) any {
	if len(e.problems) >= maxProblems || e.size > maxObject {
		return nil
	}
	before := len(e.said)
	value, decided, err := e.eval(text)
	e.evaluated = true
	if err == nil && len(decided) > 0 {
		e.decided = append(e.decided, decided...)
		if e.allowed != nil {
			err = e.allowed(path, decided)
		}
	}
	if e.size += sizeOf(value); err == nil && e.size > maxObject {
		e.failing = append(e.failing, e.decided...)
		err = fmt.Errorf("the results of the expressions are together larger than %d bytes", maxObject)
	}
	if fact := compile.Fact(err); fact != "" && e.mark {
		e.marks = append(e.marks, mark{path, text, err})
		return placeholder(fact, text, err)
	}
	if err != nil {
		e.failing = append(e.failing, e.said[before:]...)
		e.problems = append(e.problems, problem{path, err, text})
		return nil
	}
	return value
}

// sizeOf returns about how many bytes of JSON a value has.
func sizeOf(v any) int {
	size := 1
	switch v := v.(type) {
	case string:
		size += len(v)
	case map[string]any:
		for k, x := range v {
			size += len(k) + sizeOf(x)
		}
	case []any:
		for _, x := range v {
			size += sizeOf(x)
		}
	}
	return size
}
