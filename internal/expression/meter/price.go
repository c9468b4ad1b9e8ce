// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"fmt"
	"strings"

	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// call is a call of a function that pays, from the sizes of the arguments, before it calls.
type call struct {
	id   int64
	name string
	args []interpreter.Interpretable
	impl *functions.Overload
	// rule is the price, if it is another than reading the arguments.
	rule rule
	// adds is true for +, and grows for the one that adds to the result of a loop.
	adds, grows bool
	// pattern is the regular expression, if it is a constant.
	pattern *pattern
}

// rule pays for a call, or returns the error that the call gives instead.
type rule func(*Meter, *call, []ref.Val) ref.Val

// ID returns the id of the node.
func (c *call) ID() int64 { return c.id }

// Eval calls the function.
func (c *call) Eval(vars interpreter.Activation) ref.Val {
	m := meterOf(vars)
	m.spend(1)
	if c.adds { // apart from the others, and without a slice, because nearly every expression does it
		a := c.args[0].Eval(vars)
		if types.IsUnknownOrError(a) {
			return a
		}
		b := c.args[1].Eval(vars)
		if types.IsUnknownOrError(b) {
			return b
		}
		out := c.add(m, a, b)
		if _, failed := out.(*types.Err); failed {
			return c.finish(out, a, b)
		}
		return c.finish(out)
	}
	args := make([]ref.Val, len(c.args))
	for i, a := range c.args {
		args[i] = a.Eval(vars)
		if types.IsUnknownOrError(args[i]) {
			return args[i]
		}
	}
	if c.rule == nil {
		for _, a := range args {
			m.read(a)
		}
	} else if err := c.rule(m, c, args); err != nil {
		return err
	}
	out := c.invoke(args)
	if _, failed := out.(*types.Err); failed {
		return c.finish(out, args...)
	}
	return c.finish(out)
}

// finish refuses texts that are too long, and says of which types the arguments are if the function is not for them.
func (c *call) finish(v ref.Val, args ...ref.Val) ref.Val {
	switch v := v.(type) {
	case types.String:
		if len(v) > MaxText {
			return tooLong()
		}
	case types.Bytes:
		if len(v) > MaxText {
			return tooLong()
		}
	case *types.Err:
		if strings.HasPrefix(v.Error(), "no such overload") {
			return types.NewErr("%s", noOverload(c.name, args))
		}
	}
	return v
}

func noOverload(name string, args []ref.Val) string {
	names := make([]string, len(args))
	for i, a := range args {
		names[i] = a.Type().TypeName()
	}
	return fmt.Sprintf("found no matching overload for '%s' applied to '(%s)'", name, strings.Join(names, ", "))
}

// invoke calls the function as the planner of cel-go does.
func (c *call) invoke(args []ref.Val) ref.Val {
	if c.pattern != nil {
		if out, ok := c.pattern.call(c.name, args); ok {
			return out
		}
	}
	o := c.impl
	switch {
	case len(args) > 0 && o.OperandTrait != 0 && !args[0].Type().HasTrait(o.OperandTrait):
	case len(args) == 1 && o.Unary != nil:
		return o.Unary(args[0])
	case len(args) == 2 && o.Binary != nil:
		return o.Binary(args[0], args[1])
	case o.Function != nil:
		return o.Function(args...)
	}
	if len(args) > 0 && args[0].Type().HasTrait(traits.ReceiverType) {
		return args[0].(traits.Receiver).Receive(c.name, "", args[1:])
	}
	return types.NoSuchOverloadErr()
}

func tooLong() ref.Val {
	return types.NewErr("the expression makes a text of more than %d KiB", MaxText>>10)
}

// add is +. Lists are copied: cel-go makes a list that refers to the two, and so one in which an item can be there a
// billion times. And a list that was empty at first is one that it changes in place, even if cel.bind gave it a name.
func (c *call) add(m *Meter, a, b ref.Val) ref.Val {
	switch x := a.(type) {
	case types.String:
		if y, ok := b.(types.String); ok {
			m.spend(TextCost(len(x) + len(y)))
			return x + y
		}
	case types.Bytes:
		m.read(a)
		m.read(b)
	case traits.Lister:
		y, ok := b.(traits.Lister)
		if !ok {
			return types.NoSuchOverloadErr()
		}
		if _, mutable := a.(traits.MutableLister); mutable && c.grows {
			m.spend(Size(y))
			return x.Add(y)
		}
		m.spend(Size(x) + Size(y))
		all := make([]ref.Val, 0, Size(x)+Size(y))
		for _, l := range []traits.Lister{x, y} {
			for it := l.Iterator(); it.HasNext() == types.True; {
				all = append(all, it.Next())
			}
		}
		return types.NewRefValList(types.DefaultTypeAdapter, all)
	}
	return c.invoke([]ref.Val{a, b})
}
