// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
)

// usage writes what follows the description of a command in its help. It is code and no template: templates need all methods of what they
// show, and the linker could leave nothing out.
func usage(cmd *cobra.Command) error {
	var b strings.Builder
	b.WriteString("Usage:")
	if cmd.Runnable() && !cmd.HasAvailableSubCommands() {
		b.WriteString("\n  " + cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		b.WriteString("\n  " + cmd.CommandPath() + " [command]")
	}
	if len(cmd.Aliases) > 0 {
		b.WriteString("\n\nAliases:\n  " + cmd.NameAndAliases())
	}
	if cmd.HasExample() {
		b.WriteString("\n\nExamples:\n" + cmd.Example)
	}
	if cmd.HasAvailableSubCommands() {
		b.WriteString("\n\nCommands:")
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() || c.Name() == "help" {
				fmt.Fprintf(&b, "\n  %-*s %s", c.NamePadding(), c.Name(), c.Short)
			}
		}
	}
	own, kubectls := flagsOf(cmd)
	for _, part := range []struct{ title, text string }{{"Flags", own.FlagUsages()}, {kubectlTitle, kubectls.FlagUsages()}} {
		if part.text != "" {
			b.WriteString("\n\n" + part.title + ":\n" + strings.TrimRight(part.text, "\n"))
		}
	}
	if codes := codesOf(cmd); codes != nil {
		b.WriteString("\n\nExit codes:")
		for code, text := range codes {
			fmt.Fprintf(&b, "\n  %d  %s", code, text)
		}
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\n\n%s [command] --help says more about a command.", cmd.CommandPath())
	}
	_, err := io.WriteString(cmd.OutOrStderr(), b.String()+"\n")
	return err
}

// kubectlTitle is above the flags that kubectl has too.
const kubectlTitle = "Flags of kubectl, by which the hub is found"

// codesOf returns what the exit codes of a command mean, beginning with 0; nil for a command that is only there for those below it.
func codesOf(cmd *cobra.Command) []string {
	if !cmd.Runnable() || cmd.HasAvailableSubCommands() {
		return nil
	}
	o := outcomeOf(cmd)
	return []string{o.done, o.failed, unasked}
}

// flagsOf returns the flags of a command that people see: its own, and those that it has in common with kubectl.
func flagsOf(cmd *cobra.Command) (own, kubectls *pflag.FlagSet) {
	common := pflag.NewFlagSet("", pflag.ContinueOnError)
	genericclioptions.NewConfigFlags(true).AddFlags(common)
	own, kubectls = pflag.NewFlagSet("", pflag.ContinueOnError), pflag.NewFlagSet("", pflag.ContinueOnError)
	cmd.InitDefaultHelpFlag()
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if c := common.Lookup(f.Name); c != nil && c.Usage == f.Usage {
			kubectls.AddFlag(f)
		} else {
			own.AddFlag(f)
		}
	})
	return own, kubectls
}
