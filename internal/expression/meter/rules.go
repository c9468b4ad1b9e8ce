// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// rules are the prices of the functions that do not just read their arguments once.
var rules = map[string]rule{
	// These look at a list or a map without reading it.
	"size":                    glance,
	"first":                   glance,
	"last":                    glance,
	"type":                    glance,
	"dyn":                     glance,
	"value":                   glance,
	"hasValue":                glance,
	"optional.of":             glance,
	"optional.ofNonZeroValue": glance,
	"slice":                   slice,
	"reverse":                 skim,
	"optional.unwrap":         skim,
	"unwrapOpt":               skim,
	operators.In:              in,
	"in":                      in, // what CEL called it once: an expression may still write _in_(a, b)
	"_in_":                    in,
	"cel.@mapInsert":          insert,
	"lists.range":             lists,
	"distinct":                square,
	"sets.contains":           square,
	"sets.equivalent":         square,
	"sets.intersects":         square,
	"sort":                    sorting,
	"@sortByAssociatedKeys":   sorting,
	"replace":                 replace,
	"split":                   split,
	"join":                    join,
	"format":                  format,
	"indexOf":                 search,
	"lastIndexOf":             search,
	"matches":                 match,
	"find":                    match,
	"findAll":                 match,
	"regex.extract":           match,
	"regex.extractAll":        match,
	"regex.replace":           match,
	"quantity":                quantity,
	"isQuantity":              quantity,
	"getFullYear":             zone,
	"getMonth":                zone,
	"getDate":                 zone,
	"getDayOfMonth":           zone,
	"getDayOfWeek":            zone,
	"getDayOfYear":            zone,
	"getHours":                zone,
	"getMinutes":              zone,
	"getSeconds":              zone,
	"getMilliseconds":         zone,
}

func glance(m *Meter, _ *call, args []ref.Val) ref.Val {
	for _, a := range args {
		if s, ok := a.(types.String); ok {
			m.spend(TextCost(len(s)))
		}
	}
	return nil
}

func skim(m *Meter, _ *call, args []ref.Val) ref.Val {
	glance(m, nil, args)
	m.spend(Size(args[0]))
	return nil
}

func slice(m *Meter, _ *call, args []ref.Val) ref.Val {
	from, _ := args[1].(types.Int)
	to, _ := args[2].(types.Int)
	m.spend(max(0, min(int64(to), Size(args[0]))-max(0, int64(from))))
	return nil
}

func in(m *Meter, _ *call, args []ref.Val) ref.Val {
	m.read(args[0])
	if _, ok := args[1].(traits.Mapper); !ok {
		m.product(max(1, Size(args[1])/8), leaves(m, args[0]))
		m.read(args[1])
	}
	return nil
}

// leaves is the size of a value that is compared with each item of a list.
func leaves(m *Meter, v ref.Val) int64 {
	before := m.left
	m.read(v)
	return before - m.left
}

func insert(m *Meter, _ *call, args []ref.Val) ref.Val {
	if _, ok := args[0].(traits.MutableMapper); !ok {
		m.spend(Size(args[0]))
	}
	if len(args) == 2 {
		m.spend(Size(args[1]))
	}
	return nil
}

func lists(m *Meter, _ *call, args []ref.Val) ref.Val {
	n, _ := args[0].(types.Int)
	if n > MaxItems {
		return types.NewErr("lists.range makes lists of at most %d items", MaxItems)
	}
	m.spend(max(0, int64(n)))
	return nil
}

func square(m *Meter, _ *call, args []ref.Val) ref.Val {
	deep := int64(0)
	for _, a := range args {
		deep += leaves(m, a)
	}
	longest := int64(0)
	for _, a := range args {
		longest = max(longest, Size(a))
	}
	m.product(deep, longest/32+1)
	return nil
}

func sorting(m *Meter, _ *call, args []ref.Val) ref.Val {
	m.product(leaves(m, args[len(args)-1]), 16)
	m.spend(Size(args[0]))
	return nil
}

func replace(m *Meter, _ *call, args []ref.Val) ref.Val {
	s, ok1 := args[0].(types.String)
	from, ok2 := args[1].(types.String)
	to, ok3 := args[2].(types.String)
	if !ok1 || !ok2 || !ok3 {
		return nil
	}
	m.spend(2 * TextCost(len(s)+len(from)+len(to)))
	times := strings.Count(string(s), string(from))
	if len(args) > 3 {
		if limit, ok := args[3].(types.Int); ok && limit >= 0 {
			times = int(min(int64(times), int64(limit)))
		}
	}
	if len(s)+times*(len(to)-len(from)) > MaxText {
		return tooLong()
	}
	m.spend(int64(times) + TextCost(times*len(to)))
	return nil
}

func split(m *Meter, _ *call, args []ref.Val) ref.Val {
	s, ok1 := args[0].(types.String)
	sep, ok2 := args[1].(types.String)
	if ok1 && ok2 {
		m.spend(TextCost(len(s)) + int64(strings.Count(string(s), string(sep))) + 1)
	}
	return nil
}

func join(m *Meter, _ *call, args []ref.Val) ref.Val {
	list, ok := args[0].(traits.Lister)
	if !ok {
		return nil
	}
	m.spend(Size(list))
	total := 0
	for it := list.Iterator(); it.HasNext() == types.True; {
		s, _ := it.Next().(types.String)
		total += len(s)
	}
	if len(args) > 1 {
		s, _ := args[1].(types.String)
		total += len(s) * int(Size(list))
	}
	if total > MaxText {
		return tooLong()
	}
	m.spend(TextCost(total))
	return nil
}

var precision = regexp.MustCompile(`%\.[0-9]{3,}`)

func format(m *Meter, _ *call, args []ref.Val) ref.Val {
	s, _ := args[0].(types.String)
	m.spend(TextCost(len(s)))
	m.product(leaves(m, args[1])+Size(args[1]), 4)
	if precision.MatchString(string(s)) {
		return types.NewErr("format writes at most 99 digits after the point")
	}
	return nil
}

func search(m *Meter, _ *call, args []ref.Val) ref.Val {
	s, ok1 := args[0].(types.String)
	sub, ok2 := args[1].(types.String)
	if ok1 && ok2 {
		m.product(TextCost(len(s))+1, int64(len(sub))+1)
	}
	return nil
}

// quantity refuses exponents that resource.ParseQuantity would write out, digit by digit.
func quantity(m *Meter, _ *call, args []ref.Val) ref.Val {
	s, ok := args[0].(types.String)
	if !ok {
		return nil
	}
	m.spend(int64(len(s)) + 1)
	if len(s) > 100 {
		return types.NewErr("%.20q... is not a quantity: it is longer than 100 characters", string(s))
	}
	if at := strings.LastIndexAny(string(s), "eE"); at >= 0 {
		if n, err := strconv.ParseInt(string(s[at+1:]), 10, 64); err == nil && (n > 100 || n < -100) {
			return types.NewErr("%q is not a quantity: its exponent is too large", string(s))
		}
	}
	return nil
}

var offset = regexp.MustCompile(`^([+-]?[0-9]{1,2}:[0-9]{2}|UTC)?$`)

// zone refuses the names of time zones: they are looked up in the files of the machine.
func zone(_ *Meter, _ *call, args []ref.Val) ref.Val {
	if len(args) > 1 {
		if s, ok := args[1].(types.String); ok && !offset.MatchString(string(s)) {
			return types.NewErr("%q is not supported as a time zone: write an offset such as +02:00", string(s))
		}
	}
	return nil
}

func match(m *Meter, c *call, args []ref.Val) ref.Val {
	s, ok1 := args[0].(types.String)
	re, ok2 := args[1].(types.String)
	if !ok1 || !ok2 {
		return nil
	}
	var cost int64
	if c.pattern != nil {
		cost = c.pattern.cost
	} else {
		m.spend(int64(len(re)))
		var err error
		if cost, err = patternCost(string(re)); err != nil {
			return types.NewErr("%v", err)
		}
		m.spend(cost * 4)
	}
	m.product(cost, TextCost(len(s))+1)
	if replaces, ok := everyMatch[c.name]; ok {
		m.spend(4 * int64(len(s)+1)) // each character can be a match
		if replaces && len(args) > 2 {
			to, _ := args[2].(types.String)
			m.product(int64(len(s))+1, TextCost(len(to))+1)
		}
	}
	return nil
}

// everyMatch are the functions that look for all matches of a pattern. Those with true replace each of them by their third argument.
var everyMatch = map[string]bool{"findAll": false, "regex.extractAll": false, "regex.replace": true}
