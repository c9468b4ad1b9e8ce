// SPDX-License-Identifier: Apache-2.0

// Command chandler is the command line of Chandler, also as `kubectl chandler`.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/go-logr/logr"

	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/sandbox"
	"github.com/chandler-hub/chandler/internal/version"
)

func main() {
	sandbox.Main()
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard()) // what client-go writes there is for who develops it
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the program as it is
	if err := newCommand().ExecuteContext(ctx); err != nil {
		os.Exit(ended(err))
	}
}

// ended says what went wrong, and returns the exit code.
func ended(err error) int {
	code, text := told(err)
	if text != "" {
		// It may quote what other people wrote, and that must not decide over the terminal.
		fmt.Fprintln(os.Stderr, "chandler:", excerpt.VisibleLines(text))
	}
	return code
}

// told returns the exit code, and what is said: all of it, also what somebody has added to an error that had its exit code already.
func told(err error) (int, string) {
	code := &exit{uncertain, err} // of a command that has not begun
	_ = errors.As(err, &code)
	if code.err == nil {
		return code.code, ""
	}
	return code.code, err.Error()
}

func newCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "chandler",
		Short: "Add-ons for every cluster of a fleet, delivered by Flux",
		Long: `Shows and steers a hub that delivers add-ons to every cluster of a fleet through Flux. Like kubectl, it works
with your kubeconfig and your permissions. Named kubectl-chandler, it is also kubectl chandler.`,
		Example: `  chandler get clusters --failed
  chandler explain tenant1 cert-manager
  chandler rollout status cert-manager`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version.Get().String(),
	}
	root.SetVersionTemplate("chandler {{.Version}}\n")
	root.AddCommand(installCommand())
	root.AddCommand(uninstallCommand())
	root.AddCommand(getCommand())
	root.AddCommand(pauseCommand())
	root.AddCommand(resumeCommand())
	root.AddCommand(removalsCommand())
	root.AddCommand(renderCommand())
	root.AddCommand(diffCommand())
	root.AddCommand(doctorCommand())
	root.AddCommand(explainCommand())
	root.AddCommand(reconcileCommand())
	root.AddCommand(eventsCommand())
	root.AddCommand(rolloutCommand())
	root.AddCommand(createCommand())
	root.AddCommand(importCommand())
	root.AddCommand(exportCommand())
	root.AddCommand(registerCommand())
	root.AddCommand(unregisterCommand())
	root.AddCommand(uiCommand())
	root.AddCommand(versionCommand())
	root.AddCommand(optionsCommand())
	root.AddCommand(completionCommand())
	root.SetUsageFunc(usage)
	root.SetHelpFunc(help)
	root.SetHelpCommand(helpCommand())
	finish(root)
	return root
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
				return &exit{uncertain, fmt.Errorf("help: %w: chandler --help lists the commands", err)}
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
