// SPDX-License-Identifier: Apache-2.0

// Command chandler is the command line of Chandler, also as `kubectl chandler`.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/chandler-hub/chandler/internal/cli/exit"
	"github.com/chandler-hub/chandler/internal/cli/factory"
	"github.com/chandler-hub/chandler/internal/cli/help"

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
	if err := newCommand(factory.New()).ExecuteContext(ctx); err != nil {
		os.Exit(ended(err))
	}
}

// ended says what went wrong, and returns the exit code.
func ended(err error) int {
	code, text := exit.Told(err)
	if text != "" {
		// It may quote what other people wrote, and that must not decide over the terminal.
		fmt.Fprintln(os.Stderr, "chandler:", excerpt.VisibleLines(text))
	}
	return code
}

// newCommand returns the program with all its commands.
func newCommand(from *factory.Factory) *cobra.Command {
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
	root.AddCommand(installCommand(from, nil))
	root.AddCommand(uninstallCommand(from, nil))
	root.AddCommand(getCommand(from, nil))
	root.AddCommand(pauseCommand(from, nil))
	root.AddCommand(resumeCommand(from, nil))
	root.AddCommand(removalsCommand(from, nil))
	root.AddCommand(renderCommand(from, nil))
	root.AddCommand(diffCommand(from, nil))
	root.AddCommand(doctorCommand(from, nil))
	root.AddCommand(explainCommand(from, nil))
	root.AddCommand(reconcileCommand(from, nil))
	root.AddCommand(eventsCommand(from, nil))
	root.AddCommand(rolloutCommand(from, nil))
	root.AddCommand(createCommand(from, nil))
	root.AddCommand(importCommand(from, nil))
	root.AddCommand(exportCommand(from, nil))
	root.AddCommand(registerCommand(from, nil))
	root.AddCommand(unregisterCommand(from, nil))
	root.AddCommand(uiCommand(from, nil))
	root.AddCommand(versionCommand(from, nil))
	root.AddCommand(completionCommand())
	help.Add(root)
	exit.Finish(root)
	return root
}
