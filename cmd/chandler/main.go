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

	"github.com/chandler-hub/chandler/internal/version"
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
		Version:       version.Get().String(),
	}
	root.SetVersionTemplate("chandler {{.Version}}\n")
	root.AddCommand(renderCommand())
	root.AddCommand(explainCommand())
	root.AddCommand(rolloutCommand())
	root.AddCommand(createCommand())
	root.AddCommand(importCommand())
	root.AddCommand(registerCommand())
	root.AddCommand(unregisterCommand())
	root.AddCommand(versionCommand())
	return root
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print which build this is",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "chandler", version.Get())
			return err
		},
	}
}
