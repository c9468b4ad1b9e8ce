// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"fmt"

	"github.com/chandler-hub/chandler/internal/expression/meter"
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

const (
	// maxLoops is how deep loops and cel.bind may nest, or follow each other: each can multiply the work of the one
	// before.
	maxLoops = 16
	// maxWork limits what the type checker of CEL has to do for a template. It grows with the square of the number of
	// calls, lists, maps and loops of an expression, and, for each value, with the square of the nesting of its type: a
	// text of 64 KiB can keep it busy for minutes. A million is about a quarter of a second.
	maxWork = 1_000_000
)

// prepare checks the shape of an expression before its types are: that it does not nest too deep, and that no variable
// hides one of this package's. And it puts the keys of maps into calls of keyFunction. What the expression costs the
// type checker is added to work.
func prepare(p piece, parsed *ast.AST, work *int) *Error {
	s := &shaper{p: p, parsed: parsed, next: ast.MaxID(parsed), factory: ast.NewExprFactory(), bound: map[string]int{}, work: work}
	s.walk(parsed.Expr(), 0, 0)
	return s.bad
}

type shaper struct {
	p       piece
	parsed  *ast.AST
	factory ast.ExprFactory
	next    int64
	// calls counts the nodes that the checker has variables for, and work what they cost it.
	calls int
	work  *int
	// bound are the variables of loops and of cel.bind, with how deep their types nest at most.
	bound map[string]int
	bad   *Error
}

func (s *shaper) fail(e ast.Expr, format string, args ...any) {
	if s.bad == nil {
		s.bad = &Error{s.p.start + column(s.parsed, e.ID()), fmt.Sprintf(format, args...)}
	}
}

// walk checks an expression, and returns how deep its type nests at most.
func (s *shaper) walk(e ast.Expr, depth, loops int) int {
	if e.Kind() == ast.ComprehensionKind {
		loops++
	}
	switch {
	case depth > 3*MaxNesting:
		s.fail(e, "%s", tooDeep)
	case loops > maxLoops:
		s.fail(e, "the expression nests more than %d loops and variables", maxLoops)
	case *s.work > maxWork:
		s.fail(e, "there are too many calls, lists, maps and loops here")
	}
	if s.bad != nil {
		return 0
	}
	nesting := 0
	switch e.Kind() {
	case ast.IdentKind:
		nesting = s.bound[e.AsIdent()]
	case ast.ComprehensionKind:
		nesting = s.loop(e.AsComprehension(), e, depth, loops)
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			s.guard(entry.AsMapEntry().Key())
		}
		fallthrough
	default:
		for _, child := range meter.Children(e) {
			nesting = max(nesting, s.walk(child, depth+1, loops))
		}
		if nests(e) {
			nesting++
		}
	}
	if isWork(e) {
		s.calls++
		*s.work += 4 * s.calls
	}
	*s.work += nesting * nesting
	return nesting
}

func (s *shaper) loop(c ast.ComprehensionExpr, e ast.Expr, depth, loops int) int {
	names := []string{c.IterVar(), c.IterVar2(), c.AccuVar()}
	before := make([]int, len(names))
	for i, name := range names {
		switch name {
		case clusterName, originName, varsName:
			s.fail(e, "%q cannot be the name of a variable here: it would hide the one that is always there", name)
		}
		before[i] = s.bound[name]
	}
	of := s.walk(c.IterRange(), depth+1, loops)
	nesting := s.walk(c.AccuInit(), depth+1, loops)
	s.bound[c.IterVar()], s.bound[c.IterVar2()], s.bound[c.AccuVar()] = of, of, nesting
	s.walk(c.LoopCondition(), depth+1, loops)
	nesting = max(nesting, s.walk(c.LoopStep(), depth+1, loops))
	s.bound[c.AccuVar()] = nesting
	nesting = max(nesting, s.walk(c.Result(), depth+1, loops))
	for i, name := range names {
		s.bound[name] = before[i]
	}
	return nesting
}

// isWork returns whether the checker has variables for an expression.
func isWork(e ast.Expr) bool {
	switch e.Kind() {
	case ast.ListKind, ast.MapKind, ast.ComprehensionKind:
		return true
	case ast.CallKind:
		switch e.AsCall().FunctionName() {
		case operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot:
			return false
		}
		return true
	}
	return false
}

// nests returns whether the type of an expression can hold those of its parts: that of an operator cannot.
func nests(e ast.Expr) bool {
	switch e.Kind() {
	case ast.ListKind, ast.MapKind:
		return true
	case ast.CallKind:
		_, operator := operators.FindReverse(e.AsCall().FunctionName())
		return !operator
	}
	return false
}

// keyFunction is around each key of a map that is not a plain literal. No expression can name it.
//
// It has overloads for the types of keys alone. CEL's type checker takes a map as a key of a map, and so types that
// double with each cel.bind: an expression of 14 of them took it eight seconds. And as a key, some values are a panic.
const keyFunction = "@key"

func keyOverloads() []cel.FunctionOpt {
	var opts []cel.FunctionOpt
	for _, t := range []*cel.Type{cel.StringType, cel.IntType, cel.UintType, cel.BoolType, cel.DoubleType} {
		opts = append(opts, cel.Overload("key_"+t.TypeName(), []*cel.Type{t}, t))
	}
	return append(opts, cel.SingletonUnaryBinding(func(v ref.Val) ref.Val {
		switch v.(type) {
		case types.String, types.Int, types.Uint, types.Bool, types.Double:
			return v
		}
		return types.NewErr("%s", notAKey(v.Type().TypeName()))
	}))
}

// guard makes a call of keyFunction of a key.
func (s *shaper) guard(key ast.Expr) {
	if key.Kind() == ast.LiteralKind {
		switch key.AsLiteral().(type) {
		case types.String, types.Int, types.Uint, types.Bool, types.Double:
			return
		}
	}
	if key.Kind() == ast.CallKind && key.AsCall().FunctionName() == keyFunction {
		return
	}
	inner := s.factory.NewUnspecifiedExpr(s.next)
	inner.SetKindCase(key)
	if at, ok := s.parsed.SourceInfo().GetOffsetRange(key.ID()); ok {
		s.parsed.SourceInfo().SetOffsetRange(s.next, at)
	}
	s.next++
	key.SetKindCase(s.factory.NewCall(key.ID(), keyFunction, inner))
}

// column returns the column of a node in its expression, counted from 1.
func column(parsed *ast.AST, id int64) int {
	if r, ok := parsed.SourceInfo().GetOffsetRange(id); ok {
		return int(r.Start) + 1
	}
	return 1
}
