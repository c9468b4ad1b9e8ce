// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/chandler-hub/chandler/internal/cli/clitest"
)

var (
	update = clitest.Update
	golden = clitest.Golden
	words  = clitest.Words
	write  = clitest.Write
)

// run runs the command line, and returns what it prints.
func run(args ...string) (string, error) {
	cmd := newCommand(made)
	var out strings.Builder
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&strings.Builder{})
	err := cmd.Execute()
	return out.String(), err
}

// runBoth runs the command line, and returns what it prints on both.
func runBoth(args ...string) (out, errs string, err error) {
	cmd := newCommand(made)
	var o, e strings.Builder
	cmd.SetArgs(args)
	cmd.SetOut(&o)
	cmd.SetErr(&e)
	err = cmd.Execute()
	return o.String(), e.String(), err
}

// runSmall runs the command line, and returns what it prints on both streams, and its exit code.
func runSmall(t *testing.T, args string) (stdout, stderr string, code int) {
	t.Helper()
	return clitest.Ends(newCommand(made), strings.Fields(args)...)
}
