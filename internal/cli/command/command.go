// SPDX-License-Identifier: Apache-2.0

// Package command has what commands share about their words: groups, arguments, flags, output formats and completion.
package command

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandler-hub/chandler/internal/cli/exit"
)

// Name is what people call a command, without the name of the program, such as "rollout status".
func Name(cmd *cobra.Command) string { return strings.TrimPrefix(cmd.CommandPath(), "chandler ") }

// Run does what a command usually does with its options, or what a test has it do instead.
func Run[O any](ctx context.Context, o *O, instead func(context.Context, *O) error, usual func(context.Context) error) error {
	if instead != nil {
		return instead(ctx, o)
	}
	return usual(ctx)
}

// Group makes a command of those below it. Alone it prints its help, as kubectl's and flux's do.
func Group(cmd *cobra.Command, below ...*cobra.Command) *cobra.Command {
	cmd.AddCommand(below...)
	var names []string
	for _, c := range below {
		names = append(names, c.Name())
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return exit.Wrong(fmt.Errorf("%s: there is no %q: write one of %s", Name(cmd), args[0], strings.Join(names, ", ")))
	}
	return cmd
}

// OnlyFlags refuses arguments. An argument to a command that reads files is most likely a file without -f.
func OnlyFlags(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	name := Name(cmd)
	if f := cmd.Flags().ShorthandLookup("f"); f != nil && f.Name == "filename" {
		return exit.Wrong(fmt.Errorf("%s: %q is no flag: write files as -f %s", name, args[0], args[0]))
	}
	return exit.Wrong(fmt.Errorf("%s: %q is no flag, and there is nothing else to write: chandler %s --help", name, args[0], name))
}

// OneName returns the check of arguments that takes a name.
func OneName(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 || args[0] == "" {
			return fmt.Errorf("%s: write the name of the %s: %s", Name(cmd), what, cmd.UseLine())
		}
		return nil
	}
}

// Wants has a command end as a wrong one does, before the hub is asked, if a check of its flags fails.
func Wants(cmd *cobra.Command, check func() error) {
	before := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if before != nil {
			if err := before(cmd, args); err != nil {
				return err
			}
		}
		return check()
	}
}

// Complete has the values of a flag completed.
func Complete(cmd *cobra.Command, flag string, values cobra.CompletionFunc) {
	of := func(cmd *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return values(cmd, nil, begun)
	}
	if err := cmd.RegisterFlagCompletionFunc(flag, of); err != nil {
		panic(err)
	}
}

// NewName completes nothing: what is written is the name of something that does not exist yet.
var NewName = cobra.NoFileCompletions

// FileNames has the shell complete the names of files.
func FileNames(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveDefault
}
