// SPDX-License-Identifier: Apache-2.0

// Package clitest runs commands in tests, and holds what they print against golden files.
package clitest

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/chandler-hub/chandler/internal/cli/exit"
)

// Update is the flag -update.
var Update = flag.Bool("update", false, "write the golden files")

// Run runs the program with some commands, and returns what it prints on both streams, and how it ends.
func Run(commands []*cobra.Command, args ...string) (out, errs string, err error) {
	root := &cobra.Command{Use: "chandler", SilenceUsage: true, SilenceErrors: true}
	root.AddCommand(commands...)
	exit.Finish(root)
	var o, e strings.Builder
	root.SetArgs(args)
	root.SetIn(strings.NewReader(""))
	root.SetOut(&o)
	root.SetErr(&e)
	err = root.Execute()
	return o.String(), e.String(), err
}

// Golden compares a text with a file of testdata. With -update it writes the file.
func Golden(t *testing.T, file, got string) {
	t.Helper()
	path := filepath.Join("testdata", filepath.FromSlash(file))
	if *Update {
		Write(t, path, got)
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s: -want +got:\n%s", file, d)
	}
}

// Write writes a file, and the folders that it is in.
func Write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Words splits a line as a shell does that knows single quotes.
func Words(line string) []string {
	var out []string
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			out = append(out, part)
			continue
		}
		out = append(out, strings.Fields(part)...)
	}
	return out
}
