// SPDX-License-Identifier: Apache-2.0

// Package must has what a test cannot begin without, or ends it.
package must

import (
	"os"
	"testing"
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
	text, err := os.ReadFile(path)
	Do(t, err)
	return text
}
