// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

const (
	tooCostly   = "the expression costs more than the limit of 1000000; make it simpler"
	tooMuchText = "the expression makes a text of more than 256 KiB"
	tooLarge    = "the result is larger than the limit of 256 KiB"
	nested      = "the expression nests or chains more than 100 levels"
	muchWork    = "there are too many calls, lists, maps and loops here"
	manyLoops   = "the expression nests more than 16 loops and variables"
)

// binds returns an expression that doubles something again and again; $ is the one before.
func binds(n int, first, next, last string) string {
	s := "cel.bind(v0, " + first + ", "
	for i := range n {
		s += fmt.Sprintf("cel.bind(v%d, %s, ", i+1, strings.ReplaceAll(next, "$", fmt.Sprintf("v%d", i)))
	}
	return s + strings.ReplaceAll(last, "$", fmt.Sprintf("v%d", n)) + strings.Repeat(")", n+1)
}

// Whatever somebody writes, and whatever their data, it ends soon and takes little memory.
func TestHostile(t *testing.T) {
	many := strings.Repeat
	ten := "[$, $, $, $, $, $, $, $, $, $]"
	numbers := make([]any, 5000)
	for i := range numbers {
		numbers[i] = int64(i)
	}
	bottomless := []any{}
	for range 200 {
		bottomless = []any{bottomless}
	}
	in := Input{Cluster: &Cluster{}, Vars: map[string]any{"s": many("a", 100_000), "l": numbers, "deep": bottomless, "e": []any{}}}
	for _, test := range []struct{ text, want string }{
		// Loops.
		{"vars.l.all(a, vars.l.all(b, vars.l.all(c, true)))", tooCostly},
		{"vars.l.exists(a, vars.l.exists(b, false))", tooCostly},
		{"vars.l.map(a, vars.l.map(b, [" + many("1,", 5000) + "1]))", tooCostly},
		{"vars.l.all(a, vars.l.all(b, " + many("true && ", 5000) + "true))", tooCostly},
		{"vars.l.map(a, vars.l.filter(b, b > a))", tooCostly},
		{"vars.l.transformMap(i, a, vars.l.transformList(j, b, i + j))", tooCostly},
		{"vars.l.sortBy(a, vars.l.sortBy(b, -b)[0])", tooCostly},
		{many("vars.l.map(a, ", 20) + "1" + many(")", 20), manyLoops},
		{"vars.l" + many(".map(a, a)", 20), manyLoops},
		{"lists.range(9999).map(a, lists.range(9999))", tooCostly},
		{"lists.range(1000000000)", "lists.range makes lists of at most 10000 items"},
		// What doubles.
		{binds(14, "{1: 1}", "{$: $}", "$"), "a key of a map cannot be of type map(int, int)"},
		{binds(14, "vars.s", "$ + $", "$"), tooMuchText},
		{binds(14, "'abcdefgh'", many("$ + ", 20)+"$", "$"), tooMuchText},
		{binds(14, "vars.l", "$ + $", "$"), tooCostly},
		{binds(14, "vars.l", ten, "$"), tooLarge},
		{binds(14, "vars.l", ten, "$ == $"), tooCostly},
		{binds(14, "vars.l", ten, "$ in [$]"), tooCostly},
		{binds(14, "vars.l", ten, "$.flatten(99)"), tooCostly},
		{binds(14, "vars.l", ten, "'%s'.format([$])"), tooCostly},
		{binds(14, "vars.l", ten, "[$, $].distinct()"), tooCostly},
		{binds(14, "vars.l", ten, "sets.contains($, $)"), tooCostly},
		{binds(14, "vars.l", "{'a': $, 'b': $, 'c': $, 'd': $, 'e': $, 'f': $}", "$ != $"), tooCostly},
		{binds(14, "optional.of(vars.l)", "optional.of("+ten+")", "$ == $"), tooCostly},
		{"optional.of(1)" + many(".optMap(x, x)", 30), manyLoops},
		// Functions.
		{"vars.s.replace('a', vars.s)", tooMuchText},
		{"vars.s.replace('', vars.s)", tooMuchText},
		{"vars.l.map(x, 'a').join(vars.s)", tooMuchText},
		{"[vars.s, vars.s, vars.s].join()", tooMuchText},
		{"'%.999999999f'.format([1.0])", "format writes at most 99 digits after the point"},
		{"strings.quote(vars.s + vars.s.replace('a', '\\n'))", tooMuchText},
		{"vars.l.map(x, vars.s.split(''))", tooCostly},
		{"vars.s.indexOf(vars.s.substring(0, 50000) + 'b')", tooCostly},
		{"vars.s.lastIndexOf('b' + vars.s.substring(0, 50000))", tooCostly},
		{"vars.l.map(x, vars.s.contains('b'))", tooCostly},
		{"vars.l.map(x, vars.s.reverse())", tooCostly},
		{"vars.l.map(x, vars.l.distinct())", tooCostly},
		{"vars.l.map(x, vars.l.sort())", tooCostly},
		{"quantity('1e1000000000')", `"1e1000000000" is not a quantity: its exponent is too large`},
		{"quantity('1E-1000000000')", `"1E-1000000000" is not a quantity: its exponent is too large`},
		{"quantity(vars.s)", `"aaaaaaaaaaaaaaaaaaaa"... is not a quantity: it is longer than 100 characters`},
		{"vars.deep == vars.deep", "a value is nested deeper than the limit of 100"},
		{"vars.deep", "a value is nested deeper than the limit of 100"},
		{"vars.s + vars.s + vars.s", tooMuchText},
		{"vars.l.map(x, vars.s)", tooLarge},
		// Regular expressions.
		{"vars.s.matches('((a{10}){10}){10}b')", tooCostly},
		{"vars.s.matches('" + many("(a?){900}", 6) + "')", "a regular expression is larger than the limit of 5000: it repeats too much"},
		{"vars.s.matches('" + many("(a?){900}", 6) + "' + '')", "a regular expression is larger than the limit of 5000: it repeats too much"},
		{"vars.l.map(x, 'aaa'.matches('(a?){800}b' + string(x)))", tooCostly},
		{"vars.l.map(x, vars.s.findAll('a'))", tooCostly},
		{"regex.replace(vars.s, 'a', vars.s)", tooCostly},
		{"regex.replace(vars.s, 'a*', '\\\\0\\\\0\\\\0')", tooMuchText},
		{"regex.replace(vars.s, '', '" + many("\\\\0", 1000) + "')", tooCostly},
		{many("'a'.matches('(a?){900}') || ", 300) + "true", "the regular expressions together are larger than the limit of 5000"},
		// Work for the type checker.
		{"[" + many(many("[", 85)+many("]", 85)+",", 300) + "1]", muchWork},
		{many(many("{'a':", 85)+"1"+many("}", 85)+" == {} || ", 100) + "true", muchWork},
		{many(many("optional.of(", 85)+"1"+many(")", 85)+" == 1 || ", 50) + "true", muchWork},
		{binds(14, "[]", many("[", 80)+"$"+many("]", 80), "$ == $"), muchWork},
		{"[" + many("[].map(x, x),", 4000) + "1]", muchWork},
		{"[" + many("vars.a[0],", 5000) + "1]", muchWork},
		{"{" + many("vars.a: {},", 4000) + "}", muchWork},
		{many("1 == 1 || ", 6000) + "true", muchWork},
		{"[" + many("vars.l[0],", 700) + "1].size()", ""},
		// Syntax.
		{many("(", 30_000), nested},
		{many("[", 30_000), nested},
		{many("{", 30_000), nested},
		{many("size(", 10_000), nested},
		{many("1+", 30_000) + "1", nested},
		{many("1<", 30_000) + "1", nested},
		{many("true ? 1 : ", 5000) + "1", nested},
		{"vars" + many(".a", 30_000), nested},
		{"vars" + many("[0]", 20_000), nested},
		{many("a b ", 15_000), "syntax error: mismatched input 'b'"},
		{many("!", 60_000) + "true", ""},
		{many("true && ", 8000) + "true", ""},
		{"[" + many("1,", 30_000) + "1]", tooLarge},
		{many("(", 90) + "1" + many(")", 90), ""},
		{many("has(", 90) + "vars.x" + many(")", 90), ""},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := time.Now()
		err := evalOnce("<< "+test.text+" >>", in)
		took := time.Since(start)
		runtime.ReadMemStats(&after)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if _, message, ok := strings.Cut(got, ": "); ok && strings.HasPrefix(got, "column") {
			got = message
		}
		if got, _, _ = strings.Cut(got, "; it reads "); got != test.want {
			t.Errorf("%.60s: got %q, want %q", test.text, got, test.want)
		}
		if used := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 20*time.Second || used > 512 {
			t.Errorf("%.60s: took %v and %d MiB", test.text, took, used)
		}
	}
}

func evalOnce(text string, in Input) error {
	template, err := Compile(text)
	if err == nil {
		_, err = template.Eval(in)
	}
	return err
}

// The budget is for all expressions of a template together.
func TestBudgetIsShared(t *testing.T) {
	one := "<< lists.range(9000).all(x, x >= 0) >>"
	if err := evalOnce(one, Input{}); err != nil {
		t.Error(err)
	}
	if err := evalOnce(strings.Repeat(one, MaxHoles), Input{}); err == nil || err.Error() != tooCostly {
		t.Errorf("got %v", err)
	}
	long := strings.Repeat("x", MaxText/2)
	if err := evalOnce("<< vars.a >>-<< vars.a >>", Input{Vars: map[string]any{"a": long}}); err == nil || err.Error() != tooLarge {
		t.Errorf("got %v", err)
	}
	if err := evalOnce("<< vars.a >><< vars.a >>", Input{Vars: map[string]any{"a": long}}); err != nil {
		t.Error(err)
	}
}

// What people do write is far from the limits.
func TestBudgetIsAmple(t *testing.T) {
	clusters := make([]any, 1000)
	for i := range clusters {
		clusters[i] = map[string]any{"name": fmt.Sprintf("cluster-%d", i), "cidr": fmt.Sprintf("10.%d.%d.0/24", i/256, i%256), "weight": int64(i % 7)}
	}
	in := Input{Vars: map[string]any{"clusters": clusters, "big": strings.Repeat("key: value\n", 10_000)}}
	for _, text := range []string{
		"<< vars.clusters.filter(c, c.weight > 2).map(c, c.name + '.example.com').join(',') >>",
		"<< vars.clusters.map(c, c.name).sort().distinct().size() >>",
		"<< vars.clusters.sortBy(c, c.weight).map(c, c.name) >>",
		"<< vars.clusters.filter(c, cidr(c.cidr).containsIP('10.0.5.1'))[0].name >>",
		"<< vars.clusters.transformMapEntry(i, c, {c.name: c.cidr}) >>",
		"<< vars.clusters.filter(c, c.name.matches('-[0-9]+5$')).map(c, regex.replace(c.name, '[^a-z0-9]', '')) >>",
		"<< vars.clusters.map(a, vars.clusters.slice(0, 50).filter(b, b.weight == a.weight).size()) >>",
		"<< vars.big.replace('value', 'x').split('\\n').size() >>",
		"<< vars.clusters.exists(c, c == {'name': 'cluster-999', 'cidr': '10.3.231.0/24', 'weight': 5}) >>",
	} {
		if err := evalOnce(text, in); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}
