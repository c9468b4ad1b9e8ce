// SPDX-License-Identifier: Apache-2.0

// Package variables evaluates the expressions of a set for one cluster. A Scope has the variables of all layers, also those of the
// cluster's owner, and knows which of the owner's have had a say in a result. An Evaluator evaluates a whole document.
package variables

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/expression"
	"github.com/chandler-hub/chandler/internal/jsontype"
	"github.com/chandler-hub/chandler/internal/merge"
)

// Layer is a named set of variables.
type Layer struct {
	Name   string
	Values map[string]any
}

// Scope evaluates expressions with one set of variables. A variable may itself contain expressions over others. Each
// is evaluated when it is first read.
type Scope struct {
	program *compile.Program
	cluster *expression.Cluster
	origin  map[string]any
	budget  *Budget

	raw    map[string]any  // merged, with their expressions
	owners map[string]bool // the variables that the cluster itself has set
	trace  *merge.Trace

	values map[string]any
	states map[string]*variable
	stack  []string
	// said are the variables of the cluster that have influenced a result, or a failure, since Forget. failing are those
	// among them whose expression failed, or that may not contain one.
	said, failing []string
}

// variable is a variable that something has read.
type variable struct {
	done bool
	err  error
	// decided names the variables of the cluster that it depends on.
	decided []string
}

// New returns a scope without variables. cluster and origin are what expressions read beside variables; origin is nil if there is none. The
// scope takes what it costs from budget, and records in trace which layer sets what; trace may be nil.
func New(p *compile.Program, cluster *expression.Cluster, origin map[string]any, budget *Budget, trace *merge.Trace) *Scope {
	return &Scope{
		program: p, cluster: cluster, origin: origin, budget: budget, raw: map[string]any{}, owners: map[string]bool{}, trace: trace,
		values: map[string]any{}, states: map[string]*variable{},
	}
}

// Add adds variables of the set, which override those that are there.
func (s *Scope) Add(l Layer) {
	merge.Merge(s.raw, l.Values, merge.Options{Layer: l.Name, Trace: s.trace})
}

// AddLiteral adds variables in which << is text. They override those that are there. If owner is true, they belong to
// the cluster's owner.
func (s *Scope) AddLiteral(l Layer, owner bool) {
	for name, v := range l.Values {
		merge.Merge(s.raw, map[string]any{name: expression.EscapeAll(v)}, merge.Options{Layer: l.Name, Trace: s.trace})
		if owner {
			s.owners[name] = true
		}
	}
}

// text evaluates a text that contains <<.
func (s *Scope) text(text string) (value any, decided []string, err error) {
	t, err := s.program.Template(text)
	if err != nil {
		return nil, nil, err
	}
	return s.Eval(t)
}

// Eval evaluates a template. decided names the variables of the cluster that influenced the result.
func (s *Scope) Eval(t *expression.Template) (value any, decided []string, err error) {
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
func (s *Scope) need(name string) *variable {
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

func (s *Scope) evaluate(name string, raw any, v *variable) {
	if s.owners[name] {
		v.decided = []string{name}
	}
	e := Evaluator{Scope: s}
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

// Chosen evaluates a text that only the set may decide, and that may not be empty.
func (s *Scope) Chosen(text string) (string, error) {
	if !expression.Has(text) {
		return text, nil
	}
	v, decided, err := s.text(text)
	if err == nil && len(decided) > 0 {
		err = fmt.Errorf("depends on the cluster's variable %s, and a cluster's variables cannot decide this", Quoted(decided))
	}
	name, ok := v.(string)
	if err == nil && (!ok || name == "") {
		err = fmt.Errorf("gives no text")
	}
	return name, err
}

// Condition evaluates a template that must give true or false. decided names the variables of the cluster that influenced it.
func (s *Scope) Condition(t *expression.Template) (yes bool, decided []string, err error) {
	v, decided, err := s.Eval(t)
	if err != nil {
		return false, nil, err
	}
	yes, ok := v.(bool)
	if !ok {
		return false, nil, fmt.Errorf("%s gives %s, and must give true or false%s", excerpt.Cut(t.String(), maxShown), given(v), t.Reads())
	}
	return yes, decided, nil
}

// maxShown is how much of an expression, and of what it gives, a message shows.
const maxShown = 80

// given says what an expression gives.
func given(v any) string {
	switch v := v.(type) {
	case string:
		return fmt.Sprintf("the text %q", excerpt.Cut(v, maxShown))
	case int64, float64:
		return fmt.Sprint(v)
	}
	if name := jsontype.Of(v); name != "" {
		return name
	}
	return "nothing" // an optional without a value
}

// Quoted writes names of variables as messages have them: sorted, in quotes.
func Quoted(names []string) string {
	return fmt.Sprintf("%q", strings.Join(unique(names), ", "))
}

// Values returns the values of the variables that something has read.
func (s *Scope) Values() map[string]any { return s.values }

// SetBy returns which layers have set each variable, for people. It needs a trace.
func (s *Scope) SetBy() map[string]string {
	layers := map[string][]string{}
	for _, f := range s.trace.Fields() {
		if l := s.trace.Layer(f); !slices.Contains(layers[f[0]], l) {
			layers[f[0]] = append(layers[f[0]], l)
		}
	}
	out := make(map[string]string, len(layers))
	for name, l := range layers {
		out[name] = strings.Join(l, " and ")
	}
	return out
}

// Patched returns how many bytes patches may still go through. Who applies them takes off what they need.
func (s *Scope) Patched() *int64 { return &s.budget.patched }

// Forget begins anew with what Said and Blamed return.
func (s *Scope) Forget() { s.said, s.failing = nil, nil }

// Said returns the names of the cluster's variables that have influenced anything, sorted.
func (s *Scope) Said() []string { return unique(s.said) }

// Blamed returns the names of the cluster's variables that may have caused what is wrong, sorted: those of expressions that failed, or
// else all that Said returns, since it is what came out that is wrong.
func (s *Scope) Blamed() []string {
	if len(s.failing) > 0 {
		return unique(s.failing)
	}
	return s.Said()
}

func unique(names []string) []string { return slices.Compact(slices.Sorted(slices.Values(names))) }

// maxCost bounds what all expressions of a set may cost for one cluster. A single expression may cost a million. A
// set with a hundred of those would cost the hub minutes for each change of a fleet.
const maxCost = 5 * expression.MaxCost

// Budget is what is left to be used: cost by expressions, and the bytes of add-ons that patches may go through.
type Budget struct{ cost, patched int64 }

// maxPatched is how many bytes of add-ons all patches may go through for one cluster: that takes a second or two.
const maxPatched = 64 << 20

// NewBudget returns a whole budget.
func NewBudget() Budget { return Budget{maxCost, maxPatched} }
