// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"fmt"
	"regexp"
	"regexp/syntax"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// MaxPattern is the size of the largest regular expression, in the instructions that it compiles to; and of all that are
// constants in a template together, which stay in memory.
const MaxPattern = 5_000

// patterns says which argument of a function is a regular expression.
var patterns = map[string]int{
	"matches": 1, "find": 1, "findAll": 1, "regex.extract": 1, "regex.extractAll": 1, "regex.replace": 1,
}

// pattern is a regular expression that is a constant, compiled with the program.
type pattern struct {
	re   *regexp.Regexp
	cost int64
}

// BadPattern is an error in a regular expression that is a constant.
type BadPattern struct {
	// ID is that of the node.
	ID int64
	error
}

var errPatterns = fmt.Errorf("the regular expressions together are larger than the limit of %d", MaxPattern)

// prepare compiles the regular expression if it is a constant.
func (c *call) prepare(arg interpreter.Interpretable, total *int64) error {
	constant, ok := arg.(interpreter.InterpretableConst)
	if !ok {
		return nil
	}
	s, ok := constant.Value().(types.String)
	if !ok {
		return nil
	}
	cost, err := patternCost(string(s))
	if err != nil {
		return &BadPattern{arg.ID(), err}
	}
	if *total += cost; *total > MaxPattern {
		return &BadPattern{arg.ID(), errPatterns}
	}
	re, err := regexp.Compile(string(s))
	if err != nil {
		return &BadPattern{arg.ID(), err}
	}
	c.pattern = &pattern{re, cost}
	return nil
}

// call does what the function does, where it would compile the expression again.
func (p *pattern) call(name string, args []ref.Val) (ref.Val, bool) {
	s, ok := args[0].(types.String)
	if !ok || len(args) != 2 {
		return nil, false
	}
	switch name {
	case "matches":
		return types.Bool(p.re.MatchString(string(s))), true
	case "find":
		return types.String(p.re.FindString(string(s))), true
	case "findAll":
		return types.NewStringList(types.DefaultTypeAdapter, p.re.FindAllString(string(s), -1)), true
	}
	return nil, false
}

// patternCost returns about how many instructions a regular expression compiles to. It does so without compiling: in
// thirty characters, ((a{100}){100}){100}, one can write an expression of a million.
func patternCost(s string) (int64, error) {
	if len(s) > MaxPattern {
		return 0, fmt.Errorf("a regular expression is longer than %d characters", MaxPattern)
	}
	re, err := syntax.Parse(s, syntax.Perl)
	if err != nil {
		return 0, fmt.Errorf("invalid regular expression: %w", err)
	}
	n := instructions(re)
	if n > MaxPattern {
		return 0, fmt.Errorf("a regular expression is larger than the limit of %d: it repeats too much", MaxPattern)
	}
	return n, nil
}

func instructions(re *syntax.Regexp) int64 {
	n := int64(1)
	if re.Op == syntax.OpLiteral {
		n = int64(len(re.Rune))
	}
	for _, sub := range re.Sub {
		n += instructions(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= int64(max(1, re.Min, re.Max))
	}
	return min(n, MaxPattern+1)
}
