// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chandler-hub/chandler/internal/hubconfig"
)

// width is how wide a help is. Half of a wide screen shows it without a break.
const width = 100

// help writes the help of a command.
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
			length = width
			if line == "" {
				b.WriteString("\n")
				length = 0
			}
			continue
		}
		for word := range strings.FieldsSeq(line) {
			switch {
			case length == 0:
			case length+1+len(word) > width:
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
	own, common := flagsOf(cmd)
	if text := flagLines(own); text != "" {
		b.WriteString("\n\nFlags:\n" + text)
	}
	if codes := codesOf(cmd); codes != nil {
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

// flagLines returns the lines about flags.
func flagLines(f *pflag.FlagSet) string { return strings.TrimRight(f.FlagUsagesWrapped(width), "\n") }

// codesOf returns what the exit codes of a command mean, beginning with 0; nil for a command that is only there for those below it.
func codesOf(cmd *cobra.Command) []string {
	if !cmd.Runnable() || cmd.HasAvailableSubCommands() {
		return nil
	}
	o := outcomeOf(cmd)
	return []string{o.done, o.failed, unasked}
}

// flagsOf returns the flags of a command that people see: its own, and those that all commands have in common.
func flagsOf(cmd *cobra.Command) (own, common *pflag.FlagSet) {
	hub, kubectls := commonFlags()
	own, common = pflag.NewFlagSet("", pflag.ContinueOnError), pflag.NewFlagSet("", pflag.ContinueOnError)
	cmd.InitDefaultHelpFlag()
	if f := cmd.Flags().Lookup("help"); f != nil {
		f.Hidden = true // who reads it knows it
	}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "namespace" && (hub.Lookup(f.Name) != nil || kubectls.Lookup(f.Name) != nil) {
			common.AddFlag(f)
		} else {
			own.AddFlag(f)
		}
	})
	return own, common
}

// commonFlags returns the flags that `chandler options` shows: those that the command line shares with the hub, and kubectl's. The shared
// ones default to what the hub runs with.
func commonFlags() (hub, kubectls *pflag.FlagSet) {
	hub, kubectls = pflag.NewFlagSet("", pflag.ContinueOnError), pflag.NewFlagSet("", pflag.ContinueOnError)
	(&hubconfig.Shared{}).AddFlags(hub, hubconfig.DefaultNamespace)
	addHubNamespace(hub, new(string))
	kubectlFlags().AddFlags(kubectls)
	return hub, kubectls
}

func optionsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "options",
		Short: "List the flags that all commands have",
		Long: `Lists the flags by which a command finds the hub, and the hub's own flags. The hub publishes its flags, and commands read them ` +
			`there: you only write them for files, or if you may not read ConfigMap chandler-hub.`,
		Example: "  chandler options",
		Args:    onlyFlags,
		RunE: func(cmd *cobra.Command, _ []string) error {
			hub, kubectls := commonFlags()
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "Flags of kubectl, to find the management cluster:\n%s\n\n"+
				"Flags of the hub, to read files as the hub would:\n%s\n", flagLines(kubectls), flagLines(hub))
			return err
		},
	}
}
