// SPDX-License-Identifier: Apache-2.0

// Package meter makes programs of checked CEL expressions that pay for each step before they take the step, from one budget for each
// evaluation. It knows the price of every function, and of no other.
package meter

import (
	"fmt"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// Limits on what one evaluation of a template does.
const (
	// MaxCost is the budget of one evaluation of a template, all its expressions together. A unit is about a step or a
	// hundred nanoseconds, whichever is more.
	MaxCost = 1_000_000
	// MaxText is the longest text, in bytes, that an expression computes, also on the way to its result; and the size
	// of the largest result.
	MaxText = 256 << 10
	// MaxItems is the length of the longest list that an expression makes of a number.
	MaxItems = 10_000
	// MaxNesting is how deep an expression may nest, and the values that it computes too.
	MaxNesting = 100
)

// Meter is the budget of an evaluation. It replaces cel-go's, which looks at a call only after it was made, does not
// see some of the work (&& and ||, functions chosen at run time by the type of their arguments), and counts a list
// that contains another a thousand times as a thousand. With nested cel.bind, that leads to exponential work.
type Meter struct{ left int64 }

// stop ends an evaluation, from any depth.
func stop(format string, args ...any) {
	panic(interpreter.EvalCancelledError{Message: fmt.Sprintf(format, args...), Cause: interpreter.CostLimitExceeded})
}

func (m *Meter) spend(units int64) {
	if units < 0 || units > m.left {
		m.left = 0
		stop("the expression costs more than the limit of %d; make it simpler", MaxCost)
	}
	m.left -= units
}

// product spends a*b, whatever the size of the two.
func (m *Meter) product(a, b int64) {
	if a > 0 && b > m.left/a {
		b = m.left + 1
		a = 1
	}
	m.spend(a * b)
}

// read spends what it takes to read all of a value.
func (m *Meter) read(v ref.Val) { m.readAt(v, 0) }

func (m *Meter) readAt(v ref.Val, depth int) {
	if depth > MaxNesting {
		stop("a value is nested deeper than the limit of %d", MaxNesting)
	}
	switch v := v.(type) {
	case types.String:
		m.spend(TextCost(len(v)))
	case types.Bytes:
		m.spend(TextCost(len(v)))
	case *types.Optional:
		if v.HasValue() {
			m.readAt(v.GetValue(), depth+1)
		}
	case traits.Mapper:
		m.spend(Size(v))
		for it := v.Iterator(); it.HasNext() == types.True; {
			k := it.Next()
			e, _ := v.Find(k)
			m.readAt(k, depth+1)
			m.readAt(e, depth+1)
		}
	case traits.Lister:
		m.spend(Size(v))
		for it := v.Iterator(); it.HasNext() == types.True; {
			m.readAt(it.Next(), depth+1)
		}
	}
}

// TextCost returns what it takes to read so many bytes of text.
func TextCost(bytes int) int64 { return int64(bytes) / 10 }

// Size returns the number of items of a list or a map, and 0 for anything else.
func Size(v ref.Val) int64 {
	switch v := v.(type) {
	case traits.Lister:
		n, _ := v.Size().(types.Int)
		return int64(n)
	case traits.Mapper:
		n, _ := v.Size().(types.Int)
		return int64(n)
	}
	return 0
}

// Name is under which name the nodes of a program find the budget, which an activation resolves to a *Meter; no expression can name it.
const Name = "#meter"

// New returns a budget of MaxCost, or of so many units if that is less.
func New(most int64) Meter { return Meter{left: min(MaxCost, most)} }

// Left returns what is left of a budget.
func (m *Meter) Left() int64 { return m.left }

// Pay takes units from a budget, and returns whether there were as many.
func (m *Meter) Pay(units int64) bool {
	m.left -= units
	return m.left >= 0
}

// meterOf returns the budget. Without one, which would be a bug here, nothing may be spent.
func meterOf(vars interpreter.Activation) *Meter {
	if m, ok := vars.ResolveName(Name); ok {
		return m.(*Meter)
	}
	return &Meter{}
}
