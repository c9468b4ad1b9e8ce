// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"strings"
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
	d.keep(both, "1", render.Document{})
	d.keep(alone, "2", render.Document{})
	d.Forget(one)
	if len(d.readers) != 1 || len(d.readers[both]) != 1 || !d.readers[both][two] || len(d.cache) != 1 {
		t.Errorf("left: %v, %v", d.readers, d.cache)
	}
	d.Forget(two)
	if len(d.readers)+len(d.cache) != 0 {
		t.Errorf("left: %v, %v", d.readers, d.cache)
	}
}

// TestDocumentsAreBounded: a fleet whose clusters each have a large document of their own does not fill the hub's memory. What was read last is kept.
func TestDocumentsAreBounded(t *testing.T) {
	d := Reader{Most: 10_000}
	at := func(name string) place { return place{"flux-system", render.Ref{Kind: "ConfigMap", Name: name}} }
	large := render.ConfigMap(map[string]string{"values.yaml": strings.Repeat("x", 4000)})
	for i, name := range []string{"a", "b", "c"} {
		d.note(at(name), types.NamespacedName{Name: "one"})
		d.keep(at(name), "1", large)
		if _, kept := d.known(at("a"), "1"); !kept { // which makes it the last one read
			t.Fatalf("a has gone after %d", i)
		}
	}
	if entries, bytes := d.Kept(); entries != 2 || bytes < 8000 || bytes > d.Most {
		t.Errorf("%d documents of %d bytes are kept", entries, bytes)
	}
	if _, kept := d.known(at("b"), "1"); kept {
		t.Error("what was read longest ago is kept")
	}
	if _, kept := d.known(at("c"), "2"); kept {
		t.Error("a document is kept that has changed")
	}
	d.keep(at("a"), "2", large)
	d.keep(at("c"), "2", render.ConfigMap(nil))
	d.Forget(types.NamespacedName{Name: "one"})
	if entries, bytes := d.Kept(); entries != 0 || bytes != 0 || d.recent.Len() != 0 {
		t.Errorf("%d documents of %d bytes are kept for nobody", entries, bytes)
	}
}
