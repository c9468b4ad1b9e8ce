// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"errors"

	"github.com/chandler-hub/chandler/internal/expression/meter"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// facts are what the expressions of a template read.
type facts struct {
	vars            []string
	allVars, origin bool
}

// lookup is a path from a variable, such as vars.a.b, that an expression reads. Without a path it is all of the variable.
type lookup struct {
	root string
	path []string
	// optional is true if it may be missing: read by .? or has().
	optional bool
}

// compiler compiles the expressions of one template, and holds what they share.
type compiler struct {
	facts facts
	// work and patterns are the budgets of the type checker (see maxWork) and of regular expressions (see meter.MaxPattern).
	work     int
	patterns int64
}

// compile compiles an expression and notes what it reads.
func (c *compiler) compile(p piece) (part, Type, *Error) {
	l, err := getLanguage()
	if err != nil {
		return part{}, "", &Error{p.start + 1, err.Error()}
	}
	parsed, issues := l.env.Parse(p.text)
	if issues.Err() != nil {
		return part{}, "", issue(p, nil, issues)
	}
	if e := prepare(p, parsed.NativeRep(), &c.work); e != nil {
		return part{}, "", e
	}
	checked, issues := l.env.Check(parsed)
	if issues.Err() != nil {
		return part{}, "", issue(p, parsed.NativeRep(), issues)
	}
	if checked.OutputType().Kind() == types.TypeKind {
		return part{}, "", &Error{p.start + 1, "the expression gives a type and not a value"}
	}
	program, err := l.plan(checked.NativeRep(), &c.patterns)
	if err != nil {
		at := 1
		if bad := (*meter.BadPattern)(nil); errors.As(err, &bad) {
			at = column(checked.NativeRep(), bad.ID)
		}
		return part{}, "", &Error{p.start + at, plain(err.Error())}
	}
	out := part{program: program}
	c.facts.note(checked.NativeRep().Expr(), &out.lookups)
	return out, typeOf(checked.NativeRep()), nil
}

// note notes what an expression reads: the variables cannot be hidden by others (see prepare), so a name is what it
// says. What is not a plain use of a variable by its name counts as a use of them all.
func (f *facts) note(e ast.Expr, lookups *[]lookup) {
	if l, ok := path(e); ok {
		switch l.root {
		case originName:
			f.origin = true
		case varsName:
			if len(l.path) == 0 {
				f.allVars = true
			} else {
				f.vars = append(f.vars, l.path[0])
			}
		}
		*lookups = append(*lookups, l)
		return
	}
	if e.Kind() == ast.CallKind && e.AsCall().FunctionName() == operators.In {
		if args := e.AsCall().Args(); len(args) == 2 && isIdent(args[1], varsName) {
			if name, ok := literal(args[0]); ok {
				f.vars = append(f.vars, name)
				*lookups = append(*lookups, lookup{root: varsName, path: []string{name}, optional: true})
				return
			}
		}
	}
	for _, child := range meter.Children(e) {
		f.note(child, lookups)
	}
}

// path returns the path that an expression is: names after one of the variables.
func path(e ast.Expr) (lookup, bool) {
	switch e.Kind() {
	case ast.IdentKind:
		switch name := e.AsIdent(); name {
		case clusterName, originName, varsName:
			return lookup{root: name}, true
		}
	case ast.SelectKind:
		if l, ok := path(e.AsSelect().Operand()); ok {
			return l.then(e.AsSelect().FieldName(), e.AsSelect().IsTestOnly()), true
		}
	case ast.CallKind:
		c := e.AsCall()
		switch c.FunctionName() {
		case operators.Index, operators.OptIndex, operators.OptSelect:
			name, ok := literal(c.Args()[1])
			if !ok {
				break
			}
			if l, ok := path(c.Args()[0]); ok {
				return l.then(name, c.FunctionName() != operators.Index), true
			}
		}
	}
	return lookup{}, false
}

func (l lookup) then(name string, optional bool) lookup {
	l.optional = l.optional || optional
	l.path = append(l.path[:len(l.path):len(l.path)], name)
	return l
}

func isIdent(e ast.Expr, name string) bool { return e.Kind() == ast.IdentKind && e.AsIdent() == name }

func literal(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	s, ok := e.AsLiteral().(types.String)
	return string(s), ok
}
