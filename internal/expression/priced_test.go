// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/go-cmp/cmp"

	"github.com/chandler-hub/chandler/internal/expression/meter"
	"github.com/chandler-hub/chandler/internal/must"
)

// TestEveryFunctionIsPriced: of each function of the cel-go that is installed somebody has thought about what it costs, with each type of
// arguments that it takes. testdata/functions.txt has what they thought of. A function, or an overload, that is new fails here: give it
// a rule, or put it into reading, and write it into the file.
func TestEveryFunctionIsPriced(t *testing.T) {
	l := must.Get(getLanguage()).Or(t)
	var got strings.Builder
	all := l.env.Functions()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !meter.Priced(name) {
			t.Errorf("function %s has no price", name)
		}
		var overloads []string
		for _, o := range all[name].OverloadDecls() {
			overloads = append(overloads, o.ID())
		}
		slices.Sort(overloads)
		fmt.Fprintln(&got, name, strings.Join(overloads, " "))
	}
	want := must.Read(t, "testdata/functions.txt")
	if d := cmp.Diff(string(want), got.String()); d != "" {
		t.Errorf("-known +installed:\n%s", d)
	}
	for _, name := range meter.Functions() {
		if all[name] == nil && !slices.Contains([]string{"cel.@mapInsert", "optional.unwrap", "unwrapOpt"}, name) {
			t.Errorf("there is a price for %s, and no such function", name)
		}
	}
}

// TestUnpricedFunctionsAreRefused: a function that nobody has priced does not run, whatever library brings it.
func TestUnpricedFunctionsAreRefused(t *testing.T) {
	l := must.Get(getLanguage()).Or(t)
	env := must.Get(l.env.Extend(cel.Function("surprise", cel.Overload("surprise_int", []*cel.Type{cel.IntType}, cel.IntType)))).Or(t)
	checked, issues := env.Compile("1 + surprise(2)")
	if issues.Err() != nil {
		t.Fatal(issues.Err())
	}
	var patterns int64
	if _, err := l.plan(checked.NativeRep(), &patterns); err == nil || !strings.Contains(err.Error(), "surprise") {
		t.Errorf("got %v, want it refused", err)
	}
}
