// SPDX-License-Identifier: Apache-2.0

package index

import (
	"maps"
	"strings"
	"testing"
	"unsafe"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

func same(a, b string) bool { return a == b && unsafe.StringData(a) == unsafe.StringData(b) }

// TestInterned: equal strings become one, and a map keeps what it says.
func TestInterned(t *testing.T) {
	var n interned
	fresh := func() map[string]string {
		return map[string]string{strings.Clone("tier"): strings.Clone("prod"), hubv1.HashAnnotation: strings.Clone("0123")}
	}
	a, b := fresh(), fresh()
	n.all(a)
	n.all(b)
	if !maps.Equal(a, fresh()) || !maps.Equal(b, fresh()) {
		t.Errorf("got %v and %v", a, b)
	}
	if !same(a["tier"], b["tier"]) {
		t.Error("equal values are two")
	}
	if same(a[hubv1.HashAnnotation], b[hubv1.HashAnnotation]) {
		t.Error("hashes are remembered, of which no two objects have the same")
	}
	for k := range a {
		for l := range b {
			if k == l && k != hubv1.HashAnnotation && !same(k, l) {
				t.Errorf("equal keys %q are two", k)
			}
		}
	}
}

// TestInternedIsBounded: what many objects had once is not kept for ever.
func TestInternedIsBounded(t *testing.T) {
	var n interned
	for i := range 40 {
		n.one(strings.Repeat("x", 1<<20-i))
	}
	if _, bytes := n.known.Kept(); bytes > maxInterned {
		t.Errorf("%d bytes are kept, want at most %d", bytes, maxInterned)
	}
}
