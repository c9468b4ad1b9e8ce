// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/parser"
)

// Type is the type of a template's result, as far as it is known before it is evaluated.
type Type string

const (
	// Text is the type of a template that is not just one expression: its result is always a string.
	Text Type = "Text"
	// String and the types after it are those of a template that is one expression.
	String Type = "String"
	// Bool is true or false.
	Bool Type = "Bool"
	// Int is a whole number.
	Int Type = "Int"
	// Double is a number.
	Double Type = "Double"
	// List is a list, of whatever.
	List Type = "List"
	// Map is a map, of whatever.
	Map Type = "Map"
	// Dyn is a type that is only known when the template is evaluated.
	Dyn Type = "Dyn"
)

// typeOf returns the type of an expression's result. It is Dyn also where the checker of CEL says more than it can know:
// to it vars.x[?0].orValue("") is a string, whatever is in vars.x.
func typeOf(checked *ast.AST) Type {
	if isLoose(checked.Expr()) {
		for _, t := range checked.TypeMap() {
			if holdsDyn(t) {
				return Dyn
			}
		}
	}
	return named(checked.GetType(checked.Expr().ID()))
}

// isLoose returns whether the type of an expression is that of what it is given.
func isLoose(e ast.Expr) bool {
	switch e.Kind() {
	case ast.CallKind:
		switch e.AsCall().FunctionName() {
		case "orValue", "value", operators.Index, operators.Conditional:
			return true
		}
	case ast.SelectKind:
		return !e.AsSelect().IsTestOnly()
	case ast.IdentKind:
		return e.AsIdent() != parser.HiddenAccumulatorName
	case ast.ComprehensionKind:
		return isLoose(e.AsComprehension().Result())
	}
	return false
}

func holdsDyn(t *types.Type) bool {
	return t.Kind() == types.DynKind || slices.ContainsFunc(t.Parameters(), holdsDyn)
}

func named(t *types.Type) Type {
	switch t.Kind() {
	case types.BoolKind:
		return Bool
	case types.IntKind, types.UintKind:
		return Int
	case types.DoubleKind:
		return Double
	case types.StringKind, types.BytesKind, types.TimestampKind, types.DurationKind:
		return String
	case types.ListKind:
		return List
	case types.MapKind:
		return Map
	case types.StructKind, types.OpaqueKind:
		if _, ok := shapes[t.TypeName()]; ok {
			return Map
		}
		if !t.IsExactType(types.OptionalType) && t.TypeName() != types.OptionalType.TypeName() {
			return String
		}
	}
	return Dyn
}
