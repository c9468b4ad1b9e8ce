// SPDX-License-Identifier: Apache-2.0

// Package golden compares texts with files of testdata.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-hub/chandler/internal/must"
)

// Update has the files written in place of compared.
var Update = flag.Bool("update", false, "write the golden files")

// Compare compares a text with a file. An empty text and no file are the same.
func Compare(t testing.TB, file, got string) {
	t.Helper()
	if *Update && got != "" {
		Write(t, file, got)
	} else if *Update {
		existing(t, os.Remove(file))
	}
	want, err := os.ReadFile(file)
	existing(t, err)
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s: -want +got, and go test -update writes it:\n%s", file, d)
	}
}

// existing ends the test unless a file is there, and in order, or not there.
func existing(t testing.TB, err error) {
	t.Helper()
	if !os.IsNotExist(err) {
		must.Do(t, err)
	}
}

// Write writes a file, and the folders that it is in.
func Write(t testing.TB, file, text string) {
	t.Helper()
	must.Do(t, os.MkdirAll(filepath.Dir(file), 0o755))
	must.Do(t, os.WriteFile(file, []byte(text), 0o600))
}
