// SPDX-License-Identifier: Apache-2.0

package fluxspec_test

import (
	"fmt"
	"testing"

	"github.com/chandler-hub/chandler/internal/fluxspec"
)

// BenchmarkCheck checks what each cluster of a fleet gets, which differs in a text that Flux substitutes.
func BenchmarkCheck(b *testing.B) {
	author := fluxspec.Author{Namespace: "flux-system", Platform: true}
	for i := 0; b.Loop(); i++ {
		one := map[string]any{"path": "./a", "sourceRef": map[string]any{"kind": "GitRepository", "name": "fleet"},
			"postBuild": map[string]any{"substitute": map[string]any{"name": fmt.Sprint("cluster-", i), "color": "blue"}}}
		if problems := fluxspec.Check(fluxspec.KustomizationKind, one, author); len(problems) > 0 {
			b.Fatal(problems)
		}
	}
}
