// SPDX-License-Identifier: Apache-2.0

package fluxspec_test

import (
	"testing"

	"github.com/chandler-hub/chandler/internal/fluxspec"
)

// TestCopies: what an entry of manifestsFrom may say of a copy.
func TestCopies(t *testing.T) {
	for name, tc := range map[string]struct {
		entry string
		want  []string
	}{
		"UnderItsOwnName": {"{kind: Secret, name: a, copyAs: {}}", nil},
		"All":             {"{kind: Secret, name: a, key: k, optional: true, copyAs: {name: b.c, namespace: d, labels: {a: b}, annotations: {a: b}}}", nil},
		"Nothing":         {"{kind: Secret, name: a, copyAs: null}", []string{"manifestsFrom[0].copyAs: must be an object"}},
		"Text":            {"{kind: Secret, name: a, copyAs: b}", []string{"manifestsFrom"}},
		"ConfigMap":       {"{kind: ConfigMap, name: a, copyAs: {}}", []string{"manifestsFrom[0].copyAs: only a Secret"}},
		"Name":            {"{kind: Secret, name: a, copyAs: {name: B_1}}", []string{`manifestsFrom[0].copyAs.name: is "B_1"`}},
		"Namespace":       {"{kind: Secret, name: a, copyAs: {namespace: a.b}}", []string{`manifestsFrom[0].copyAs.namespace: is "a.b"`}},
		"Typo":            {"{kind: Secret, name: a, copyAs: {nmae: b}}", []string{"manifestsFrom[0].copyAs.nmae"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := fluxspec.Check(fluxspec.ManifestsKind, body(t, "manifestsFrom: ["+tc.entry+"]"), fluxspec.Author{Namespace: "flux-system", Platform: true})
			wantProblems(t, got, tc.want)
		})
	}
}
