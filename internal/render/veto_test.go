// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"fmt"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/render/variables"
)

// TestOwnersPayForThemselves: what a cluster's owner writes cannot use up what the expressions of a set may cost, whether it is costly
// by itself, or makes the hub look for what is to blame again and again.
func TestOwnersPayForThemselves(t *testing.T) {
	numbers := make([]any, 3000)
	for i := range numbers {
		numbers[i] = int64(i)
	}
	var many []hubv1.Override
	for i := range 50 {
		many = append(many, hubv1.Override{Name: "a0", AddonBody: hubv1.AddonBody{HelmRelease: &apiextensionsv1.JSON{Raw: fmt.Appendf(nil, `{"timeout":"%d eons"}`, i)}}})
	}
	large := hubv1.Override{Name: "a1", AddonBody: hubv1.AddonBody{HelmRelease: &apiextensionsv1.JSON{Raw: fmt.Appendf(nil, `{"values":{"large":%q}}`, strings.Repeat("x", 1<<20))}}}
	cases := map[string]struct {
		variables map[string]any
		overrides []hubv1.Override
		refused   string
	}{
		"CostlyVariables": {map[string]any{"list": numbers}, nil, `the cluster's variable "list" is ignored here`},
		"ManyOverrides":   {nil, many, "in duration"},
		"Both":            {map[string]any{"list": numbers}, many, "in duration"},
		"TooLarge":        {nil, []hubv1.Override{large}, "the generated object has"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var text strings.Builder
			text.WriteString("selectAll: true\nvariables: {list: [1, 2, 3]}\naddons:\n")
			for i := range 100 {
				fmt.Fprintf(&text, "- {name: a%d, overridable: [timeout, values], helmRelease: {chartRef: {kind: OCIRepository, name: r}, values: {x: \"<< vars.list.map(a, lists.range(60)).size() >>\"}}}\n", i)
			}
			p := programOfSpec(t, text.String())
			to, in := fleetInput(1)
			in.Overrides = tc.overrides
			if tc.variables != nil {
				in.Variables = []variables.Layer{{Name: "the cluster", Values: tc.variables}}
			}
			r := renders(t, p, to, in)
			if len(r.Failed) > 0 || len(r.Objects) != 100 {
				t.Errorf("%d add-ons of 100 are delivered, %d failed: %.200s", len(r.Objects), len(r.Failed), fmt.Sprint(r.Failed))
			}
			if !strings.Contains(fmt.Sprint(r.Refused), tc.refused) {
				t.Errorf("refused is %.300s, want %q", fmt.Sprint(r.Refused), tc.refused)
			}
		})
	}
}
