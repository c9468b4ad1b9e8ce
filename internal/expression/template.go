// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/chandler-hub/chandler/internal/expression/meter"
	"github.com/google/cel-go/interpreter"
)

// Error says what is wrong with a template.
type Error struct {
	// Column is where, in runes from the start of the whole text, counted from 1.
	Column int
	// Message says what.
	Message string
}

func (e *Error) Error() string { return fmt.Sprintf("column %d: %s", e.Column, e.Message) }

// Template is a compiled text. It does not change, and may be used by many goroutines at once.
type Template struct {
	parts []part
	typ   Type
	facts facts
	work  int
}

// Work returns the cost of type-checking the template, in the units of its limit: a million are about a quarter of a
// second.
func (t *Template) Work() int { return t.work }

// part is a part of a template: literal text, or an expression, whose text is for messages.
type part struct {
	text    string
	program interpreter.Interpretable
	lookups []lookup
}

// Compile compiles a text. The error is an *Error.
func Compile(text string) (*Template, error) {
	t, e := compile(text)
	if e != nil {
		return nil, e
	}
	return t, nil
}

func compile(text string) (*Template, *Error) {
	pieces, e := scan(text)
	if e != nil {
		return nil, e
	}
	t, c := &Template{typ: Text}, compiler{}
	for i, p := range pieces {
		if !p.hole {
			t.parts = append(t.parts, part{text: p.text})
			continue
		}
		before := ""
		if i > 0 && !pieces[i-1].hole {
			before = pieces[i-1].text
		}
		if e := shift(p, before); e != nil {
			return nil, e
		}
		compiled, typ, e := c.compile(p)
		if e != nil {
			return nil, hinted(p, len(pieces) == 1, e)
		}
		compiled.text = p.text
		t.parts = append(t.parts, compiled)
		if len(pieces) == 1 {
			t.typ = typ
		}
	}
	t.facts, t.work = c.facts, c.work
	slices.Sort(t.facts.vars)
	t.facts.vars = slices.Compact(t.facts.vars)
	return t, nil
}

// Literal returns the text of a template that holds no expression.
func (t *Template) Literal() (string, bool) {
	switch {
	case len(t.parts) == 0:
		return "", true
	case len(t.parts) == 1 && t.parts[0].program == nil:
		return t.parts[0].text, true
	}
	return "", false
}

// Literals returns the text before, between and after the expressions of a template: one text more than it has
// expressions, and each may be empty. What a template gives begins with the first of them, unless the template is one
// expression and nothing else.
func (t *Template) Literals() []string {
	out := []string{""}
	for i := range t.parts {
		if p := &t.parts[i]; p.program != nil {
			out = append(out, "")
		} else {
			out[len(out)-1] = p.text
		}
	}
	return out
}

// Vars returns the names of the variables that are read by name, sorted.
func (t *Template) Vars() []string { return slices.Clone(t.facts.vars) }

// AllVars returns whether vars is used in another way than by the name of a variable, so that any may be read.
func (t *Template) AllVars() bool { return t.facts.allVars }

// Reads names what the expressions read, to end a message with: "; it reads vars.replicas", or "".
func (t *Template) Reads() string {
	var all part
	for i := range t.parts {
		all.lookups = append(all.lookups, t.parts[i].lookups...)
	}
	return all.reads()
}

// String returns the template as people write it, for messages.
func (t *Template) String() string {
	var out strings.Builder
	for i := range t.parts {
		if p := &t.parts[i]; p.program != nil {
			out.WriteString("<< " + strings.TrimSpace(p.text) + " >>")
		} else {
			out.WriteString(p.text)
		}
	}
	return out.String()
}

// UsesOrigin returns whether anything of origin is read.
func (t *Template) UsesOrigin() bool { return t.facts.origin }

// Type returns the type of what Eval returns.
func (t *Template) Type() Type { return t.typ }

// absent is the type of Absent.
type absent struct{}

func (absent) String() string { return "absent" }

// Absent is the result of a template that is one expression and gives an optional without a value: the field is left
// out.
var Absent any = absent{}

// Eval evaluates the template. It returns nil, bool, int64, float64, string, []any, map[string]any or Absent.
func (t *Template) Eval(in Input) (any, error) {
	if s, ok := t.Literal(); ok {
		return s, nil
	}
	r := &run{in: in, Meter: meter.New(MaxCost)}
	if in.Budget != nil {
		if *in.Budget <= 0 {
			return nil, errBudget
		}
		r.Meter = meter.New(*in.Budget)
		before := r.Left()
		defer func() { *in.Budget -= before - r.Left() }()
	}
	if len(t.parts) == 1 {
		v, err := t.parts[0].eval(r)
		if err != nil {
			return nil, err
		}
		out, size, err := toJSON(v)
		if err != nil {
			return nil, t.parts[0].result(err)
		}
		return out, r.pay(size)
	}
	var out strings.Builder
	for i := range t.parts {
		p := &t.parts[i]
		text := p.text
		if p.program != nil {
			v, err := p.eval(r)
			if err == nil {
				text, err = toText(v)
				err = p.result(err)
			}
			if err != nil {
				return nil, err
			}
		}
		if out.Len()+len(text) > MaxText {
			return nil, errTooLarge
		}
		out.WriteString(text)
	}
	return out.String(), r.pay(out.Len())
}

// pay takes what a result costs from the budget: it is made as often as a set repeats its expression.
func (r *run) pay(size int) error {
	if !r.Pay(meter.TextCost(size)) { // no result alone is that large: it is the budget of many evaluations
		return errBudget
	}
	return nil
}

var errBudget = errors.New("the expressions of this set cost too much together; make them simpler")

var errTooLarge = fmt.Errorf("the result is larger than the limit of %d KiB", MaxText>>10)
