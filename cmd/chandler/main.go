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

	"github.com/chandler-hub/chandler/internal/demo"
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
	root.AddCommand(demoCommand())
	root.AddCommand(renderCommand())
	root.AddCommand(explainCommand())
	return root
}

func demoCommand() *cobra.Command {
	o := demo.Options{Out: os.Stdout}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run a fleet on this machine and watch add-ons arrive",
		Long: `Starts a management cluster (etcd, kube-apiserver, the Flux controllers and the hub) and three workload clusters as local
processes, labels them, and shows how the add-ons of examples/quickstart arrive. The parts come from "make tools".`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return demo.Run(cmd.Context(), o) },
	}
	cmd.Flags().StringVar(&o.Hub, "hub", "", "the hub's binary (default: built from this checkout)")
	cmd.Flags().BoolVar(&o.Once, "once", false, "exit when every add-on is Ready and has been read back from every cluster")
	cmd.Flags().DurationVar(&o.Timeout, "timeout", demo.DefaultTimeout, "how long the add-ons may take to arrive")
	return cmd
}
