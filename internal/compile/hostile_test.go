// SPDX-License-Identifier: Apache-2.0

package compile_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
)

func raw(text string) *apiextensionsv1.JSON { return &apiextensionsv1.JSON{Raw: []byte(text)} }

func release(values string) hubv1.AddonBody {
	return hubv1.AddonBody{HelmRelease: raw(`{"chart": {"spec": {"chart": "c", "sourceRef": {"kind": "HelmRepository", "name": "r"}}}, "values": {"x": ` + values + `}}`)}
}

// keyed returns the inside of a JSON object with many keys.
func keyed(n int, value string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"k%d": %s`, i, value)
	}
	return b.String()[1:]
}

// Whatever somebody writes into a set costs the hub a bounded time, and them a clear error. The deadlines are far above what
// these take, so that a slow machine does not matter, and far below what an unbounded one would.
func TestHostileSets(t *testing.T) {
	cases := map[string]struct {
		spec *hubv1.AddonSetSpec
		want string // part of the error; empty for none
	}{
		"DeepMaps":  {&hubv1.AddonSetSpec{Addons: []hubv1.Addon{{Name: "a", AddonBody: release(strings.Repeat(`{"x":`, 5000) + "1" + strings.Repeat("}", 5000))}}}, "is nested deeper than 200 levels"},
		"DeepLists": {&hubv1.AddonSetSpec{Addons: []hubv1.Addon{{Name: "a", AddonBody: release(strings.Repeat("[", 5000) + strings.Repeat("]", 5000))}}}, "is nested deeper than 200 levels"},
		"DeepExpression": {&hubv1.AddonSetSpec{Addons: []hubv1.Addon{{Name: "a", AddonBody: release(`"<< ` + strings.Repeat("(", 20000) + "1" + strings.Repeat(")", 20000) + ` >>"`)}}},
			"helmRelease.values.x: column "},
		"LongExpression": {&hubv1.AddonSetSpec{Addons: []hubv1.Addon{{Name: "a", AddonBody: release(`"<< 1` + strings.Repeat(" + 1", 100000) + ` >>"`)}}},
			"helmRelease.values.x: column "},
		"ManyExpressions": {func() *hubv1.AddonSetSpec {
			s := &hubv1.AddonSetSpec{}
			for i := range 100 {
				var b strings.Builder
				for j := range 30 {
					fmt.Fprintf(&b, `,"k%d": "<< %d + %d >>"`, j, i, j*1000)
				}
				s.Addons = append(s.Addons, hubv1.Addon{Name: fmt.Sprintf("a%d", i), AddonBody: release(`{"k":1` + b.String() + `}`)})
			}
			return s
		}(), "the set holds more than 2000 texts with expressions"},
		"ManyMistakes": {&hubv1.AddonSetSpec{Addons: []hubv1.Addon{{Name: "a", AddonBody: hubv1.AddonBody{Kustomization: raw(`{"sourceRef": {"kind": "GitRepository", "name": "r"},
			"healthCheckExprs": [` + strings.Repeat("{},", 100_000) + `{}]}`)}}}}, "kustomization: has more than 2000 values"},
		"ManyOfAWrongType": {&hubv1.AddonSetSpec{Addons: []hubv1.Addon{{Name: "a", AddonBody: hubv1.AddonBody{Kustomization: raw(`{"sourceRef": {"kind": "GitRepository", "name": "r"},
			"postBuild": {"substitute": {` + keyed(1900, "1") + `}}}`)}}}}, "kustomization.postBuild.substitute.k0: is 1, which YAML reads as no text"},
		"MistakesInAll": {func() *hubv1.AddonSetSpec {
			s := &hubv1.AddonSetSpec{}
			for i := range 100 {
				s.Addons = append(s.Addons, hubv1.Addon{Name: fmt.Sprintf("a%d", i), AddonBody: hubv1.AddonBody{Kustomization: raw(`{"sourceRef": {"kind": "GitRepository", "name": "r"},
					"healthCheckExprs": [` + strings.Repeat("{},", 1900) + `{}]}`)}})
			}
			return s
		}(), "kustomization.healthCheckExprs[0].apiVersion: is required"},
		"ListsAtTheirBounds": {func() *hubv1.AddonSetSpec {
			s := &hubv1.AddonSetSpec{}
			for i := range 100 {
				a := hubv1.Addon{Name: fmt.Sprintf("a%d", i), AddonBody: release("1")}
				for j := max(0, i-16); j < i; j++ {
					a.DependsOn = append(a.DependsOn, hubv1.AddonReference{Name: fmt.Sprintf("a%d", j)})
				}
				s.Addons = append(s.Addons, a)
			}
			for i := range 100 {
				o := hubv1.Overlay{Name: fmt.Sprintf("o%d", i), ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}
				for j := range 100 {
					o.Addons = append(o.Addons, hubv1.AddonOverlay{Name: fmt.Sprintf("a%d", j), AddonBody: hubv1.AddonBody{HelmRelease: raw(`{"values": {"y": 1}}`)}})
				}
				s.Overlays = append(s.Overlays, o)
			}
			return s
		}(), ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			done := make(chan error, 1)
			go func() {
				_, err := compile.Compile(tc.spec, platform)
				done <- err
			}()
			select {
			case err := <-done:
				switch {
				case tc.want == "" && err != nil:
					t.Errorf("refused: %.300s", err)
				case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
					t.Errorf("want %q, got %.300v", tc.want, err)
				}
			case <-time.After(30 * time.Second):
				t.Fatal("it takes longer than 30 s")
			}
		})
	}
}
