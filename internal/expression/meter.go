// SPDX-License-Identifier: Apache-2.0

package expression

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
)

// meter is the budget of an evaluation. It replaces cel-go's, which looks at a call only after it was made, does not
// see some of the work (&& and ||, functions chosen at run time by the type of their arguments), and counts a list
// that contains another a thousand times as a thousand. With nested cel.bind, that leads to exponential work.
type meter struct{ left int64 }

// stop ends an evaluation, from any depth.
func stop(format string, args ...any) {
	panic(interpreter.EvalCancelledError{Message: fmt.Sprintf(format, args...), Cause: interpreter.CostLimitExceeded})
}

func (m *meter) spend(units int64) {
	if units < 0 || units > m.left {
		m.left = 0
		stop("the expression costs more than the limit of %d; make it simpler", MaxCost)
	}
	m.left -= units
}

// product spends a*b, whatever the size of the two.
func (m *meter) product(a, b int64) {
	if a > 0 && b > m.left/a {
		b = m.left + 1
		a = 1
	}
	m.spend(a * b)
}

// read spends what it takes to read all of a value.
func (m *meter) read(v ref.Val) { m.readAt(v, 0) }

func (m *meter) readAt(v ref.Val, depth int) {
	if depth > MaxNesting {
		stop("a value is nested deeper than the limit of %d", MaxNesting)
	}
	switch v := v.(type) {
	case types.String:
		m.spend(textCost(len(v)))
	case types.Bytes:
		m.spend(textCost(len(v)))
	case *types.Optional:
		if v.HasValue() {
			m.readAt(v.GetValue(), depth+1)
		}
	case traits.Mapper:
		m.spend(size(v))
		for it := v.Iterator(); it.HasNext() == types.True; {
			k := it.Next()
			e, _ := v.Find(k)
			m.readAt(k, depth+1)
			m.readAt(e, depth+1)
		}
	case traits.Lister:
		m.spend(size(v))
		for it := v.Iterator(); it.HasNext() == types.True; {
			m.readAt(it.Next(), depth+1)
		}
	}
}

func textCost(bytes int) int64 { return int64(bytes) / 10 }

// size returns the number of items of a list or a map, and 0 for anything else.
func size(v ref.Val) int64 {
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

// run is one evaluation: what its expressions may read, and the budget. It is the activation of the CEL programs.
type run struct {
	in Input
	meter
}

// meterName is under which name the nodes of a program find the budget; no expression can name it.
const meterName = "#meter"

// ResolveName returns the variable of that name.
func (r *run) ResolveName(name string) (any, bool) {
	switch name {
	case varsName:
		return r.in.Vars, true
	case originName:
		return r.in.Origin, true
	case clusterName:
		return r.in.Cluster, r.in.Cluster != nil
	case meterName:
		return &r.meter, true
	}
	return nil, false
}

// Parent returns nil: nothing is outside of an evaluation.
func (r *run) Parent() interpreter.Activation { return nil }

// meterOf returns the budget. Without one, which would be a bug here, nothing may be spent.
func meterOf(vars interpreter.Activation) *meter {
	if m, ok := vars.ResolveName(meterName); ok {
		return m.(*meter)
	}
	return &meter{}
}
