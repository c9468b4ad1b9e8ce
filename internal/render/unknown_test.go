// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/expression"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/render/variables"
)

// TestWaitsForFacts: what rests on an unknown fact waits, and what does not is delivered. Nothing that the cluster's owner wrote is refused
// for want of a fact, since it may be right; and a fact that never comes is a failure.
func TestWaitsForFacts(t *testing.T) {
	const release = "chartRef: {kind: OCIRepository, name: x}, values: "
	cases := map[string]struct {
		rest, vars, overrides string
		// want says of the add-ons x and z: made, waits or fails.
		want  string
		stays bool
	}{
		"Value":    {rest: "addons: [{name: x, helmRelease: {" + release + "{a: << cluster.nodes >>}}}, {name: z, helmRelease: {" + release + "{}}}]", want: "waits made"},
		"Never":    {rest: "addons: [{name: x, helmRelease: {" + release + "{a: << cluster.nodes >>}}}, {name: z, helmRelease: {" + release + "{}}}]", want: "fails made", stays: true},
		"Variable": {rest: "variables: {count: << cluster.nodes >>}\naddons: [{name: x, helmRelease: {" + release + "{a: << vars.count >>}}}, {name: z, helmRelease: {" + release + "{}}}]", want: "waits made"},
		"SomethingElse": {rest: "addons: [{name: x, helmRelease: {" + release + "{a: << cluster.nodes >>, b: << cluster.labels.x >>}}}, {name: z, helmRelease: {" + release + "{}}}]",
			want: "fails made"},
		"OwnerAsksForIt": {rest: "variables: {big: false}\naddons: [{name: x, overridable: [values], helmRelease: {" + release + "{a: << vars.big && cluster.nodes > 3 >>}}}, " +
			"{name: z, helmRelease: {" + release + "{}}}]", vars: "big: true", want: "waits made"},
		"OwnerSaysItselfInstead": {rest: "variables: {count: << cluster.nodes >>}\naddons: [{name: x, overridable: [values], helmRelease: {" + release + "{a: << vars.count >>}}}, " +
			"{name: z, helmRelease: {" + release + "{}}}]", vars: "count: 3", want: "made made"},
		"Overlay": {rest: "addons: [{name: x, helmRelease: {" + release + "{}}}, {name: z, helmRelease: {" + release + "{}}}]\n" +
			"overlays: [{name: o, when: << cluster.nodes > 3 >>, addons: [{name: x, helmRelease: {values: {a: 1}}}]}]", want: "waits made"},
		"OverlayOfTheWholeSet": {rest: "addons: [{name: x, helmRelease: {" + release + "{}}}, {name: z, helmRelease: {" + release + "{}}}]\n" +
			"overlays: [{name: o, when: << cluster.nodes > 3 >>, variables: {a: b}}]", want: "set waits"},
		"NotForThisCluster": {rest: "addons: [{name: x, when: << cluster.name == 'other' >>, helmRelease: {" + release + "{a: << cluster.nodes >>}}}, {name: z, helmRelease: {" + release + "{}}}]",
			want: "left-out made"},
		"WhenIsNotKnown": {rest: "addons: [{name: x, when: << cluster.nodes > 3 >>, helmRelease: {" + release + "{}}}, {name: z, helmRelease: {" + release + "{}}}]", want: "waits made"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec, vars := &hubv1.AddonSetSpec{}, map[string]any{}
			for text, into := range map[string]any{"selectAll: true\n" + tc.rest: spec, tc.vars: &vars} {
				must.Do(t, yaml.Unmarshal([]byte(text), into))
			}
			program := must.Get(compile.Compile(spec, compile.Author{Namespace: "flux-system", Set: "base", Platform: true})).Or(t)
			in := &render.Input{Cluster: &expression.Cluster{Name: "t1", Unknown: map[string]expression.Lack{"nodes": {Why: "it does not say", Stays: tc.stays}}},
				Variables: []variables.Layer{{Name: "own", Values: vars}}}
			result, err := render.Render(program, target("t1"), in)
			if got := outcomes(result, err); got != tc.want {
				t.Errorf("got %s, want %s: %v, %v", got, tc.want, err, result)
			}
			if result != nil && len(result.Refused) > 0 {
				t.Errorf("refused: %v", result.Refused)
			}
		})
	}
}

func outcomes(result *render.Result, err error) string {
	if compile.Waits(err) {
		return "set waits"
	}
	if err != nil {
		return err.Error()
	}
	var out []string
	for _, name := range []string{"x", "z"} {
		word := "made"
		switch {
		case result.Failed[name].Waits():
			word = "waits"
		case result.Failed[name] != nil:
			word = "fails"
		case result.Excluded[name] != "":
			word = "left-out"
		}
		out = append(out, word)
	}
	return strings.Join(out, " ")
}
