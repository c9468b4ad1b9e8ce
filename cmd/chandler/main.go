// SPDX-License-Identifier: Apache-2.0

// Command chandler is the command line of Chandler, also as `kubectl chandler`.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandler-hub/chandler/internal/cli/completion"
	"github.com/chandler-hub/chandler/internal/cli/create"
	"github.com/chandler-hub/chandler/internal/cli/diff"
	"github.com/chandler-hub/chandler/internal/cli/doctor"
	"github.com/chandler-hub/chandler/internal/cli/events"
	"github.com/chandler-hub/chandler/internal/cli/exit"
	"github.com/chandler-hub/chandler/internal/cli/explain"
	"github.com/chandler-hub/chandler/internal/cli/export"
	"github.com/chandler-hub/chandler/internal/cli/factory"
	"github.com/chandler-hub/chandler/internal/cli/get"
	"github.com/chandler-hub/chandler/internal/cli/help"
	"github.com/chandler-hub/chandler/internal/cli/imports"
	"github.com/chandler-hub/chandler/internal/cli/install"
	"github.com/chandler-hub/chandler/internal/cli/pause"
	"github.com/chandler-hub/chandler/internal/cli/reconcile"
	"github.com/chandler-hub/chandler/internal/cli/register"
	"github.com/chandler-hub/chandler/internal/cli/removals"
	"github.com/chandler-hub/chandler/internal/cli/render"
	"github.com/chandler-hub/chandler/internal/cli/resume"
	"github.com/chandler-hub/chandler/internal/cli/rollout"
	"github.com/chandler-hub/chandler/internal/cli/ui"
	"github.com/chandler-hub/chandler/internal/cli/uninstall"
	"github.com/chandler-hub/chandler/internal/cli/unregister"
	"github.com/chandler-hub/chandler/internal/cli/version"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/sandbox"
	build "github.com/chandler-hub/chandler/internal/version"
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
		Version:       build.Get().String(),
	}
	root.SetVersionTemplate("chandler {{.Version}}\n")
	root.AddCommand(
		install.New(from, nil),
		uninstall.New(from, nil),
		get.New(from, nil),
		pause.New(from, nil),
		resume.New(from, nil),
		removals.New(from, nil),
		render.New(from, nil),
		diff.New(from, nil),
		doctor.New(from, nil),
		explain.New(from, nil),
		reconcile.New(from, nil),
		events.New(from, nil),
		rollout.New(from, nil),
		create.New(from, nil),
		imports.New(from, nil),
		export.New(from, nil),
		register.New(from, nil),
		unregister.New(from, nil),
		ui.New(from, nil),
		version.New(from, nil),
		completion.New(),
	)
	help.Add(root)
	exit.Finish(root)
	return root
}
