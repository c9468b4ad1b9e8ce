// SPDX-License-Identifier: Apache-2.0

package compile_test

import (
	"fmt"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
)

// costly returns a set of n variables, each an expression of its own.
func costly(n int, text func(i int) string) *hubv1.AddonSetSpec {
	spec := &hubv1.AddonSetSpec{SelectAll: true, Variables: map[string]apiextensionsv1.JSON{}}
	spec.Addons = []hubv1.Addon{{Name: "a", AddonBody: hubv1.AddonBody{HelmRelease: &apiextensionsv1.JSON{Raw: []byte(`{"chartRef":{"kind":"OCIRepository","name":"x"}}`)}}}}
	for i := range n {
		spec.Variables[fmt.Sprintf("v%04d", i)] = apiextensionsv1.JSON{Raw: fmt.Appendf(nil, "%q", text(i))}
	}
	return spec
}

// large is the set of a tenant that took nearly five seconds to compile.
func large() *hubv1.AddonSetSpec {
	return costly(2000, func(i int) string { return fmt.Sprintf("<< %d", i) + strings.Repeat(" + size(vars.a)", 48) + " >>" })
}

// TestSetsHaveABudget: what the expressions of a set cost to compile is bounded in all, whatever makes them costly, and says so once.
func TestSetsHaveABudget(t *testing.T) {
	cases := map[string]struct {
		spec *hubv1.AddonSetSpec
		want string // empty if it compiles
	}{
		"Large":   {large(), "together; repeat less by variables, or split the set"},
		"Many":    {costly(2001, func(i int) string { return fmt.Sprintf("<< %d >>", i) }), "the set holds more than 2000 texts with expressions"},
		"Text":    {costly(1900, func(i int) string { return fmt.Sprintf("<< 'x%d' >>", i) + strings.Repeat("x", 90) }), "have more than 128 KiB together"},
		"Types":   {costly(40, func(i int) string { return fmt.Sprintf("<< [%d%s] >>", i, strings.Repeat(", size([])", 220)) }), "too many calls, lists, maps and loops together"},
		"AtLarge": {costly(1500, func(i int) string { return fmt.Sprintf("<< cluster.name + '-%d' + vars.?host.orValue('x') >>", i) }), ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := compile.Compile(tc.spec, compile.Author{Namespace: "team", Set: "s"})
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("refused: %.300s", err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") || len(err.Error()) > 400):
				t.Errorf("got %.500v, want %q", err, tc.want)
			}
		})
	}
}

// BenchmarkCompileLarge is the set of 1.4 MB, which is refused, and the largest of its kind that is not.
func BenchmarkCompileLarge(b *testing.B) {
	for name, spec := range map[string]*hubv1.AddonSetSpec{
		"refused":  large(),
		"accepted": costly(100, func(i int) string { return fmt.Sprintf("<< %d", i) + strings.Repeat(" + size(vars.a)", 48) + " >>" }),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_, err := compile.Compile(spec, compile.Author{Namespace: "team", Set: "s"})
				if (err != nil) != (name == "refused") {
					b.Fatal(err)
				}
			}
		})
	}
}
