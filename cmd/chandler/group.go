// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// group makes a command of those below it. Alone it prints its help, as kubectl's and flux's do.
func group(cmd *cobra.Command, below ...*cobra.Command) *cobra.Command {
	cmd.AddCommand(below...)
	var names []string
	for _, c := range below {
		names = append(names, c.Name())
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		path := strings.TrimPrefix(cmd.CommandPath(), "chandler ")
		return &exit{uncertain, fmt.Errorf("%s: there is no %q: write one of %s", path, args[0], strings.Join(names, ", "))}
	}
	return cmd
}

// onlyFlags refuses arguments. Who writes one to a command that reads files has most likely forgotten -f.
func onlyFlags(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	name := strings.TrimPrefix(cmd.CommandPath(), "chandler ")
	if f := cmd.Flags().ShorthandLookup("f"); f != nil && f.Name == "filename" {
		return &exit{uncertain, fmt.Errorf("%s: %q is no flag: write files as -f %s", name, args[0], args[0])}
	}
	return &exit{uncertain, fmt.Errorf("%s: %q is no flag, and there is nothing else to write: chandler %s --help", name, args[0], name)}
}
