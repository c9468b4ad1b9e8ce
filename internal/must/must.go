// SPDX-License-Identifier: Apache-2.0

// Package must says in one line what nearly every test says: its setup does not fail, and it gets what it wants.
package must

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Do ends the test if an error is one.
func Do(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Read returns what a file holds.
func Read(t testing.TB, path string) []byte {
	t.Helper()
	return Get(os.ReadFile(path)).Or(t)
}

// Got is a value, or why there is none.
type Got[T any] struct {
	value T
	err   error
}

// Get takes what a function returns: must.Get(url.Parse(text)).Or(t) is the URL, or the end of the test.
func Get[T any](value T, err error) Got[T] { return Got[T]{value, err} }

// Or returns the value, or ends the test.
func (g Got[T]) Or(t testing.TB) T {
	t.Helper()
	Do(t, g.err)
	return g.value
}

// Equal says what differs from what is wanted, if anything does. The test goes on.
func Equal(t testing.TB, want, got any, options ...cmp.Option) {
	t.Helper()
	if d := cmp.Diff(want, got, options...); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}
