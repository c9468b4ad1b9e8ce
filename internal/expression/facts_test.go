// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"slices"
	"testing"
)

func TestFacts(t *testing.T) {
	for _, test := range []struct {
		text            string
		vars            []string
		allVars, origin bool
	}{
		{text: "vars.x <<< origin"},
		{text: "<< 1 + 2 >>"},
		{text: "<< cluster.name >>"},
		{text: "<< origin.name >>", origin: true},
		{text: "<< origin >><< cluster >>", origin: true},
		{text: "<< 'vars.x' >>"},
		{text: "<< {'vars': 1}.vars >>"},
		{text: "<< vars.x >>", vars: []string{"x"}},
		{text: "<< .vars.x >>", vars: []string{"x"}},
		{text: "<< vars.x.y.z >>", vars: []string{"x"}},
		{text: "<< vars['x'].y >>", vars: []string{"x"}},
		{text: "<< vars.?x >>", vars: []string{"x"}},
		{text: "<< vars[?'x'] >>", vars: []string{"x"}},
		{text: "<< has(vars.x) >>", vars: []string{"x"}},
		{text: "<< has(vars.x.y) >>", vars: []string{"x"}},
		{text: "<< 'x' in vars >>", vars: []string{"x"}},
		{text: "<< vars.b + vars.a >><< vars.b >>", vars: []string{"a", "b"}},
		{text: "<< vars.x.map(i, vars.y + i) >>", vars: []string{"x", "y"}},
		{text: "<< vars.?x.optMap(v, v + vars.y).orValue(vars['z']) >>", vars: []string{"x", "y", "z"}},
		{text: "<< cel.bind(a, vars.x, a.b) >>", vars: []string{"x"}},
		{text: "<< {vars.x: [vars.y]} >>", vars: []string{"x", "y"}},
		{text: "<< {?vars.x: vars.?y} >>", vars: []string{"x", "y"}},
		{text: "<< vars.x[vars.y] >>", vars: []string{"x", "y"}},
		{text: "<< (vars.x ? vars.y : origin).z >>", vars: []string{"x", "y"}, origin: true},
		{text: "<< vars.x.sortBy(v, vars.y) >>", vars: []string{"x", "y"}},
		{text: "<< vars.x.transformMap(k, v, vars.y, origin.z) >>", vars: []string{"x", "y"}, origin: true},
		// All of them.
		{text: "<< vars >>", allVars: true},
		{text: "<< vars.size() >>", allVars: true},
		{text: "<< size(vars) + vars.x >>", allVars: true, vars: []string{"x"}},
		{text: "<< vars[origin.x] >>", allVars: true, origin: true},
		{text: "<< vars['a' + 'b'] >>", allVars: true},
		{text: "<< vars[?origin.x] >>", allVars: true, origin: true},
		{text: "<< origin.x in vars >>", allVars: true, origin: true},
		{text: "<< vars in [{}] >>", allVars: true},
		{text: "<< dyn(vars).x >>", allVars: true},
		{text: "<< [vars][0].x >>", allVars: true},
		{text: "<< vars.map(k, k) >>", allVars: true},
		{text: "<< cel.bind(v, vars, v.x) >>", allVars: true},
		{text: "<< (cluster.nodes > 1 ? vars : origin).x >>", allVars: true, origin: true},
		{text: "<< vars == {} >>", allVars: true},
		{text: "<< optional.of(vars).x >>", allVars: true},
	} {
		template, err := Compile(test.text)
		if err != nil {
			t.Errorf("%s: %v", test.text, err)
			continue
		}
		if got := template.Vars(); !slices.Equal(got, test.vars) {
			t.Errorf("%s reads %v, want %v", test.text, got, test.vars)
		}
		if template.AllVars() != test.allVars || template.UsesOrigin() != test.origin {
			t.Errorf("%s: all vars %v, origin %v", test.text, template.AllVars(), template.UsesOrigin())
		}
	}
}
