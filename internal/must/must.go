// SPDX-License-Identifier: Apache-2.0

// Package must ends a test whose setup fails.
package must

import "testing"

// Do ends the test if an error is one.
func Do(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
