// SPDX-License-Identifier: Apache-2.0

package variables

import (
	"errors"
	"fmt"
	"strings"

	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/expression"
	"github.com/chandler-hub/chandler/internal/fluxspec"
)

// Evaluator evaluates the expressions in one document. It is used for one, and asked afterwards what it has found.
type Evaluator struct {
	// Scope has the variables.
	Scope *Scope
	// Allowed returns an error if the cluster's variables may not decide the value at a path. It is nil if they may
	// everywhere.
	Allowed func(path []string, variables []string) error
	// Mark asks for marks in place of the problems that are only for want of a fact.
	Mark bool

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

// Value returns a copy of a document, or of a part of one, with every expression evaluated: expression.Absent if it gives nothing. What has
// a problem is nil.
func (e *Evaluator) Value(v any) any { return e.value(nil, v) }

// Evaluated returns whether an expression was evaluated.
func (e *Evaluator) Evaluated() bool { return e.evaluated }

// Failed returns whether there is a problem in the document.
func (e *Evaluator) Failed() bool { return len(e.problems) > 0 }

// Errors returns the problems in a document as errors of an add-on, by their paths below the document's.
func (e *Evaluator) Errors(addon, path string) compile.Errors {
	var out compile.Errors
	for _, p := range e.problems {
		at := compile.Join(path, compile.Dotted(p.path))
		out = append(out, compile.Error{Addon: addon, Path: at, Message: p.err.Error(), Fact: compile.Fact(p.err)})
	}
	return out
}

// Unknown returns the values of a document of an add-on that rest on unknown facts, by their paths below the document's. There are none
// without Mark.
func (e *Evaluator) Unknown(addon, path string) []Unknown {
	var out []Unknown
	for _, m := range e.marks {
		out = append(out, Unknown{Addon: addon, Path: compile.Join(path, compile.Dotted(m.path)), Text: m.text, Fact: compile.Fact(m.err),
			Why: m.err.Error()})
	}
	return out
}

// value returns a copy of v with every expression evaluated.
func (e *Evaluator) value(path []string, v any) any {
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

func (e *Evaluator) text(path []string, text string) any {
	if len(e.problems) >= maxProblems || e.size > fluxspec.MaxObject {
		return nil
	}
	before := len(e.Scope.said)
	value, decided, err := e.Scope.text(text)
	e.evaluated = true
	if err == nil && len(decided) > 0 {
		e.decided = append(e.decided, decided...)
		if e.Allowed != nil {
			err = e.Allowed(path, decided)
		}
	}
	if e.size += sizeOf(value); err == nil && e.size > fluxspec.MaxObject {
		e.Scope.failing = append(e.Scope.failing, e.decided...)
		err = fmt.Errorf("the results of the expressions are together larger than %d bytes", fluxspec.MaxObject)
	}
	if fact := compile.Fact(err); fact != "" && e.Mark {
		e.marks = append(e.marks, mark{path, text, err})
		return placeholder(fact, text, err)
	}
	if err != nil {
		e.Scope.failing = append(e.Scope.failing, e.Scope.said[before:]...)
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
