// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	"github.com/chandler-hub/chandler/internal/cli/clitest"
)

var (
	update = clitest.Update
	golden = clitest.Golden
	words  = clitest.Words
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
