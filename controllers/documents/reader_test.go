// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/chandler-hub/chandler/internal/render"
)

// TestReadersAreForgotten: a cluster that has no deliveries any more reads no documents, and one that nobody reads is not kept.
func TestReadersAreForgotten(t *testing.T) {
	var d Reader
	one, two := types.NamespacedName{Name: "one"}, types.NamespacedName{Name: "two"}
	both, alone := place{"flux-system", render.Ref{Kind: "ConfigMap", Name: "both"}}, place{"flux-system", render.Ref{Kind: "Secret", Name: "alone"}}
	d.Forget(one) // of which nothing is known
	d.note(both, one)
	d.note(both, two)
	d.note(alone, one)
	d.cache[both], d.cache[alone] = document{resourceVersion: "1"}, document{resourceVersion: "2"}
	d.Forget(one)
	if len(d.readers) != 1 || len(d.readers[both]) != 1 || !d.readers[both][two] || len(d.cache) != 1 {
		t.Errorf("left: %v, %v", d.readers, d.cache)
	}
	d.Forget(two)
	if len(d.readers)+len(d.cache) != 0 {
		t.Errorf("left: %v, %v", d.readers, d.cache)
	}
}
