// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
	"github.com/google/cel-go/parser"
)

// Plan makes a program of a checked expression, whose calls and loops go by the meter. The size of its regular
// expressions is added to patterns. planned is the interpreter that plans the rest.
func Plan(checked *ast.AST, planned interpreter.Interpreter, functions interpreter.Dispatcher,
	patterns *int64) (interpreter.Interpretable, error) {
	p := planner{functions: functions, patterns: patterns, steps: map[int64]int64{}, metered: map[int64]bool{}, ranges: map[int64]bool{}}
	p.findLoops(checked.Expr())
	program, err := planned.NewInterpretable(checked, interpreter.CustomDecorator(p.decorate))
	if err == nil && len(p.metered) != len(p.steps) {
		err = errors.New("a loop of the expression cannot be counted")
	}
	return program, err
}

type planner struct {
	// functions finds the implementation of a function by its overload or its name.
	functions interpreter.Dispatcher
	patterns  *int64
	// steps are the costs of one turn of each loop, by the id of the expression that is its body.
	steps map[int64]int64
	// metered are the steps whose nodes pay for them.
	metered map[int64]bool
	// ranges are the expressions that are looped over.
	ranges map[int64]bool
}

// findLoops notes the loops in an expression, and returns how many nodes it has.
func (p *planner) findLoops(e ast.Expr) int64 {
	nodes := int64(1)
	if e.Kind() != ast.ComprehensionKind {
		for _, child := range Children(e) {
			nodes += p.findLoops(child)
		}
		return nodes
	}
	c := e.AsComprehension()
	nodes += p.findLoops(c.IterRange()) + p.findLoops(c.AccuInit()) + p.findLoops(c.Result())
	turn := p.findLoops(c.LoopCondition()) + p.findLoops(c.LoopStep())
	if r := c.IterRange(); r.Kind() != ast.ListKind || r.AsList().Size() > 0 { // cel.bind loops over nothing
		p.steps[c.LoopStep().ID()] = 1 + turn/4 // the calls among them pay for themselves
		p.ranges[r.ID()] = true
	}
	return nodes + turn
}

// decorate replaces a node of a program by one that goes by the meter.
func (p *planner) decorate(i interpreter.Interpretable) (interpreter.Interpretable, error) {
	if c, ok := i.(interpreter.InterpretableCall); ok {
		var err error
		if i, err = p.call(c); err != nil {
			return nil, err
		}
	}
	if cost, ok := p.steps[i.ID()]; ok {
		p.metered[i.ID()] = true
		return around(i, func(vars interpreter.Activation, eval func(interpreter.Activation) ref.Val) ref.Val {
			meterOf(vars).spend(cost)
			return eval(vars)
		}), nil
	}
	if p.ranges[i.ID()] {
		return around(i, sorted), nil
	}
	return i, nil
}

// around makes a node of another whose evaluation is wrapped. The planner of cel-go tells attributes (variables with
// the fields and indices after them) from other nodes, so they stay attributes.
func around(i interpreter.Interpretable, wrap wrapper) interpreter.Interpretable {
	if a, ok := i.(interpreter.InterpretableAttribute); ok {
		return &wrappedAttribute{a, wrap}
	}
	return &wrapped{i, wrap}
}

type wrapper func(interpreter.Activation, func(interpreter.Activation) ref.Val) ref.Val

type wrapped struct {
	inner interpreter.Interpretable
	wrap  wrapper
}

func (w *wrapped) ID() int64 { return w.inner.ID() }

func (w *wrapped) Eval(vars interpreter.Activation) ref.Val { return w.wrap(vars, w.inner.Eval) }

type wrappedAttribute struct {
	interpreter.InterpretableAttribute
	wrap wrapper
}

func (w *wrappedAttribute) Eval(vars interpreter.Activation) ref.Val {
	return w.wrap(vars, w.InterpretableAttribute.Eval)
}

// sorted makes loops over maps go in the order of the keys: in Go's order, which is random, the same input would give
// another result each time.
func sorted(vars interpreter.Activation, eval func(interpreter.Activation) ref.Val) ref.Val {
	v := eval(vars)
	m, ok := v.(traits.Mapper)
	if !ok {
		return v
	}
	meterOf(vars).spend(Size(m) * 2)
	s := &sortedMap{Mapper: m, keys: make([]ref.Val, 0, Size(m))}
	for it := m.Iterator(); it.HasNext() == types.True; {
		s.keys = append(s.keys, it.Next())
	}
	slices.SortFunc(s.keys, compareKeys)
	return s
}

func compareKeys(a, b ref.Val) int {
	if c, ok := a.(traits.Comparer); ok && a.Type() == b.Type() {
		n, _ := c.Compare(b).(types.Int)
		return int(n)
	}
	return strings.Compare(a.Type().TypeName(), b.Type().TypeName())
}

type sortedMap struct {
	traits.Mapper
	keys []ref.Val
}

func (s *sortedMap) Iterator() traits.Iterator {
	return types.NewRefValList(types.DefaultTypeAdapter, s.keys).Iterator()
}

// Fold calls f with each key and value.
func (s *sortedMap) Fold(f traits.Folder) {
	for _, k := range s.keys {
		v, _ := s.Find(k)
		if !f.FoldEntry(k, v) {
			return
		}
	}
}

// call replaces a call by one that pays before the function is called.
func (p *planner) call(c interpreter.InterpretableCall) (interpreter.Interpretable, error) {
	node := &call{id: c.ID(), name: c.Function(), args: c.Args()}
	if !Priced(node.name) {
		return nil, fmt.Errorf("function %q cannot be used here: its cost is not known", node.name)
	}
	switch node.name {
	case operators.Equals:
		node.impl = &functions.Overload{Binary: types.Equal}
	case operators.NotEquals:
		node.impl = &functions.Overload{Binary: notEqual}
	case "or", "orValue":
		if len(node.args) == 2 {
			return &orElse{node}, nil
		}
	default:
		var found bool
		if node.impl, found = p.functions.FindOverload(c.OverloadID()); !found {
			node.impl, _ = p.functions.FindOverload(node.name)
		}
	}
	if node.impl == nil || node.impl.NonStrict {
		return c, nil
	}
	node.rule = rules[node.name]
	node.adds = node.name == operators.Add && len(node.args) == 2
	node.grows = node.adds && isAccumulator(node.args[0])
	if at, ok := patterns[node.name]; ok && at < len(node.args) {
		return node, node.prepare(node.args[at], p.patterns)
	}
	return node, nil
}

// orElse is or and orValue of optionals, which are not functions: the second is only evaluated if the first has no value.
type orElse struct{ *call }

func (o *orElse) Eval(vars interpreter.Activation) ref.Val {
	v := o.args[0].Eval(vars)
	first, ok := v.(*types.Optional)
	switch {
	case !ok:
		return types.MaybeNoSuchOverloadErr(v)
	case !first.HasValue():
		return o.args[1].Eval(vars)
	case o.name == "orValue":
		return first.GetValue()
	}
	return first
}

func notEqual(a, b ref.Val) ref.Val { return types.Bool(types.Equal(a, b) != types.True) }

// isAccumulator returns whether a node is the result so far of a loop. Only that list may be added to in place.
func isAccumulator(i interpreter.Interpretable) bool {
	a, ok := i.(interpreter.InterpretableAttribute)
	if !ok {
		return false
	}
	n, ok := a.Attr().(interpreter.NamespacedAttribute)
	return ok && len(n.Qualifiers()) == 0 && slices.Equal(n.CandidateVariableNames(), []string{parser.HiddenAccumulatorName})
}

// Children returns the nodes directly under one.
func Children(e ast.Expr) []ast.Expr {
	switch e.Kind() {
	case ast.CallKind:
		c := e.AsCall()
		if c.IsMemberFunction() {
			return append([]ast.Expr{c.Target()}, c.Args()...)
		}
		return c.Args()
	case ast.SelectKind:
		return []ast.Expr{e.AsSelect().Operand()}
	case ast.ListKind:
		return e.AsList().Elements()
	case ast.MapKind:
		var all []ast.Expr
		for _, entry := range e.AsMap().Entries() {
			all = append(all, entry.AsMapEntry().Key(), entry.AsMapEntry().Value())
		}
		return all
	case ast.StructKind:
		var all []ast.Expr
		for _, f := range e.AsStruct().Fields() {
			all = append(all, f.AsStructField().Value())
		}
		return all
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		return []ast.Expr{c.IterRange(), c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()}
	}
	return nil
}
