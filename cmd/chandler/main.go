// SPDX-License-Identifier: Apache-2.0

// Command chandler is the command line of Chandler, also as `kubectl chandler`.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/go-logr/logr"
)

func main() {
	log.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "chandler:", err)
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "chandler",
		Short:         "Add-ons for every cluster of a fleet, delivered by Flux",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(renderCommand())
	root.AddCommand(explainCommand())
	return root
}
