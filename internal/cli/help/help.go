// SPDX-License-Identifier: Apache-2.0

// Package help writes the help of commands.
package help

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chandler-hub/chandler/internal/cli/command"
	"github.com/chandler-hub/chandler/internal/cli/exit"
	"github.com/chandler-hub/chandler/internal/cli/factory"
	"github.com/chandler-hub/chandler/internal/cli/hub"
	"github.com/chandler-hub/chandler/internal/hubconfig"
)

// Width is how wide a help is. Half of a wide screen shows it without a break.
const Width = 100

func help(cmd *cobra.Command, _ []string) {
	text := cmd.Short + "."
	if cmd.Long != "" {
		text = cmd.Long
	}
	fmt.Fprint(cmd.OutOrStdout(), wrapped(text)+"\n\n"+cmd.UsageString())
}

// wrapped breaks a text into lines that fit. An empty line of the text stays, and so does a line that begins with spaces.
func wrapped(text string) string {
	var b strings.Builder
	length := 0
	for line := range strings.SplitSeq(text, "\n") {
		if line == "" || strings.HasPrefix(line, " ") {
			b.WriteString("\n" + line)
			length = Width
			if line == "" {
				b.WriteString("\n")
				length = 0
			}
			continue
		}
		for word := range strings.FieldsSeq(line) {
			switch {
			case length == 0:
			case length+1+len(word) > Width:
				b.WriteString("\n")
				length = 0
			default:
				b.WriteString(" ")
				length++
			}
			b.WriteString(word)
			length += len(word)
		}
	}
	return b.String()
}

// usage writes what follows the description of a command in its help.
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
	own, common := FlagsOf(cmd)
	if text := FlagLines(own); text != "" {
		b.WriteString("\n\nFlags:\n" + text)
	}
	if codes := exit.Meanings(cmd); codes != nil {
		b.WriteString("\n\nExit codes:")
		for code, text := range codes {
			fmt.Fprintf(&b, "\n  %d  %s", code, text)
		}
	}
	if common.HasFlags() {
		b.WriteString("\n\nRun \"chandler options\" for the flags of all commands, such as --kubeconfig and --context.")
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\n\nRun \"%s [command] --help\" for more about a command.", cmd.CommandPath())
	}
	_, err := io.WriteString(cmd.OutOrStderr(), b.String()+"\n")
	return err
}

// FlagLines returns the lines about flags.
func FlagLines(f *pflag.FlagSet) string { return strings.TrimRight(f.FlagUsagesWrapped(Width), "\n") }

// FlagsOf returns the flags of a command that people see: its own, and those that all commands have in common.
func FlagsOf(cmd *cobra.Command) (own, common *pflag.FlagSet) {
	shared, kubectls := CommonFlags()
	own, common = pflag.NewFlagSet("", pflag.ContinueOnError), pflag.NewFlagSet("", pflag.ContinueOnError)
	cmd.InitDefaultHelpFlag()
	if f := cmd.Flags().Lookup("help"); f != nil {
		f.Hidden = true // a reader of a help knows --help
	}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "namespace" && (shared.Lookup(f.Name) != nil || kubectls.Lookup(f.Name) != nil) {
			common.AddFlag(f)
		} else {
			own.AddFlag(f)
		}
	})
	return own, common
}

// CommonFlags returns the flags that `chandler options` shows: those that the command line shares with the hub, and kubectl's. The shared
// ones default to what the hub runs with.
func CommonFlags() (shared, kubectls *pflag.FlagSet) {
	shared, kubectls = pflag.NewFlagSet("", pflag.ContinueOnError), pflag.NewFlagSet("", pflag.ContinueOnError)
	(&hubconfig.Shared{}).AddFlags(shared, hubconfig.DefaultNamespace)
	hub.AddNamespace(shared, new(string))
	factory.KubectlFlags().AddFlags(kubectls)
	return shared, kubectls
}

func optionsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "options",
		Short: "List the flags that all commands have",
		Long: `Lists the flags by which a command finds the hub, and the hub's own flags. The hub publishes its flags, and commands read them ` +
			`there: you only write them for files, or if you may not read ConfigMap chandler-hub.`,
		Example: "  chandler options",
		Args:    command.OnlyFlags,
		RunE: func(cmd *cobra.Command, _ []string) error {
			shared, kubectls := CommonFlags()
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "Flags of kubectl, to find the management cluster:\n%s\n\n"+
				"Flags of the hub, to read files as the hub would:\n%s\n", FlagLines(kubectls), FlagLines(shared))
			return err
		},
	}
}

// helpCommand is cobra's, but for a command that there is not: that is an error, as it is without help.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "help [command]",
		Short:             "Show the help of a command",
		Example:           "  chandler help get clusters",
		ValidArgsFunction: completeCommands,
		RunE: func(cmd *cobra.Command, args []string) error {
			of, rest, err := cmd.Root().Find(args)
			if err == nil && len(rest) > 0 {
				err = fmt.Errorf("there is no command %q", "chandler "+strings.Join(args, " "))
			}
			if err != nil {
				return exit.Wrong(fmt.Errorf("help: %w: chandler --help lists the commands", err))
			}
			return of.Help()
		},
	}
}

// completeCommands completes the commands below the one that is written.
func completeCommands(cmd *cobra.Command, args []string, begun string) (out []cobra.Completion, _ cobra.ShellCompDirective) {
	of, _, err := cmd.Root().Find(args)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	for _, c := range of.Commands() {
		if c.IsAvailableCommand() && strings.HasPrefix(c.Name(), begun) {
			out = append(out, cobra.CompletionWithDesc(c.Name(), c.Short))
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// Add has a program and all its commands show this help, with the commands help and options.
func Add(root *cobra.Command) {
	root.AddCommand(optionsCommand())
	root.SetUsageFunc(usage)
	root.SetHelpFunc(help)
	root.SetHelpCommand(helpCommand())
}
