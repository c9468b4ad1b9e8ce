// SPDX-License-Identifier: Apache-2.0

package programs_test

import (
	"testing"

	"github.com/chandler-hub/chandler/controllers/programs"
	"github.com/chandler-hub/chandler/internal/compile"
)

// A panic of the compiler says nothing of the content: the content is compiled again when the next caller asks for it.
func TestAPanicIsNotKept(t *testing.T) {
	compiled := 0
	c := &programs.Cache{Compile: func([]byte, compile.Author) (*compile.Program, error) {
		if compiled++; compiled == 1 {
			panic("a fault of the compiler")
		}
		return &compile.Program{}, nil
	}}
	get := func() (p *compile.Program, err error) {
		defer func() { _ = recover() }() // as controller-runtime does for a reconcile
		return c.Get("one", compile.Author{Namespace: "flux-system", Set: "a", Platform: true}, content("one"))
	}
	if p, _ := get(); p != nil {
		t.Error("a program of a compiler that panicked")
	}
	for range 2 {
		if p, err := get(); p == nil || err != nil {
			t.Error(p, err)
		}
	}
	if compiled != 2 {
		t.Errorf("compiled %d times", compiled)
	}
}
