// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"sync"

	"github.com/chandler-hub/chandler/internal/expression/meter"
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/ext"
	"github.com/google/cel-go/interpreter"
	"k8s.io/apiserver/pkg/cel/library"
)

// The variables of expressions.
const (
	clusterName = "cluster"
	originName  = "origin"
	varsName    = "vars"
)

// Limits on what one evaluation of a template does.
const (
	// MaxCost is the budget of one evaluation of a template, all its expressions together. A unit is about a step or a
	// hundred nanoseconds, whichever is more.
	MaxCost = meter.MaxCost
	// MaxText is the longest text, in bytes, that an expression computes, also on the way to its result; and the size
	// of the largest result.
	MaxText = meter.MaxText
	// MaxNesting is how deep an expression may nest, and the values that it computes too.
	MaxNesting = meter.MaxNesting
)

// language is what compiles expressions: it is made once.
type language struct {
	env *cel.Env
	// interpreter and functions are what all programs share. With cel.Program each would have its own table of the
	// functions, which is fifty times the size of the rest of it.
	interpreter interpreter.Interpreter
	// functions finds the implementation of a function by its overload or its name.
	functions interpreter.Dispatcher
}

var getLanguage = sync.OnceValues(newLanguage)

func newLanguage() (*language, error) {
	env, err := cel.NewEnv(
		cel.OptionalTypes(),
		ext.Strings(), ext.Lists(), ext.Math(), ext.Sets(), ext.Encoders(), ext.Bindings(),
		ext.TwoVarComprehensions(), ext.Regex(),
		library.IP(), library.CIDR(), library.URLs(), library.Regex(), library.Quantity(), library.SemverLib(library.SemverVersion(1)),
		cel.CrossTypeNumericComparisons(true),
		cel.DefaultUTCTimeZone(true),
		cel.EnableHiddenAccumulatorName(true),
		cel.ParserRecursionLimit(MaxNesting),
		cel.ParserExpressionSizeLimit(MaxTemplate),
		// After OptionalTypes: these take the place of its macros.
		cel.Macros(cel.ReceiverMacro("optMap", 2, optMap), cel.ReceiverMacro("optFlatMap", 2, optFlatMap)),
		cel.Function(keyFunction, keyOverloads()...),
		knowCluster,
		cel.Variable(clusterName, clusterShape.celType),
		cel.Variable(originName, cel.MapType(cel.StringType, cel.DynType)),
		cel.Variable(varsName, cel.MapType(cel.StringType, cel.DynType)),
	)
	if err != nil {
		return nil, err
	}
	dispatcher := interpreter.NewDispatcher()
	for _, f := range env.Functions() {
		overloads, err := f.Bindings()
		if err != nil {
			return nil, err
		}
		if err := dispatcher.Add(overloads...); err != nil {
			return nil, err
		}
	}
	provider, adapter := env.CELTypeProvider(), env.CELTypeAdapter()
	attributes := interpreter.NewAttributeFactory(env.Container, adapter, provider)
	return &language{
		env:         env,
		interpreter: interpreter.NewInterpreter(dispatcher, env.Container, provider, adapter, attributes),
		functions:   dispatcher,
	}, nil
}

func knowCluster(env *cel.Env) (*cel.Env, error) {
	u := universe{env.CELTypeProvider(), env.CELTypeAdapter()}
	env, err := cel.CustomTypeAdapter(u)(env)
	if err != nil {
		return nil, err
	}
	return cel.CustomTypeProvider(u)(env)
}

// optMap is like the macro of cel-go, which copies its target: there, a chain of thirty of them, which fits on a line,
// is an expression of a billion nodes. This one gives the target a name.
func optMap(f cel.MacroExprFactory, target ast.Expr, args []ast.Expr) (ast.Expr, *cel.Error) {
	return optBind(f, target, args, "optMap", func(e ast.Expr) ast.Expr { return f.NewCall("optional.of", e) })
}

func optFlatMap(f cel.MacroExprFactory, target ast.Expr, args []ast.Expr) (ast.Expr, *cel.Error) {
	return optBind(f, target, args, "optFlatMap", func(e ast.Expr) ast.Expr { return e })
}

func optBind(f cel.MacroExprFactory, target ast.Expr, args []ast.Expr, name string, wrap func(ast.Expr) ast.Expr) (ast.Expr, *cel.Error) {
	if args[0].Kind() != ast.IdentKind {
		return nil, f.NewError(args[0].ID(), name+"() variable name must be a simple identifier")
	}
	const whole = "@optional"
	value := bind(f, args[0].AsIdent(), f.NewMemberCall("value", f.NewIdent(whole)), args[1])
	return bind(f, whole, target, f.NewCall(operators.Conditional,
		f.NewMemberCall("hasValue", f.NewIdent(whole)),
		wrap(value),
		f.NewCall("optional.none"))), nil
}

// bind is cel.bind: a comprehension over nothing whose accumulator is the variable.
func bind(f cel.MacroExprFactory, name string, value, result ast.Expr) ast.Expr {
	return f.NewComprehension(f.NewList(), "#unused", name, value, f.NewLiteral(types.False), f.NewIdent(name), result)
}

// plan makes a program of a checked expression. The size of its regular expressions is added to patterns.
func (l *language) plan(checked *ast.AST, patterns *int64) (interpreter.Interpretable, error) {
	return meter.Plan(checked, l.interpreter, l.functions, patterns)
}
