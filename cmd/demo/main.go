// SPDX-License-Identifier: Apache-2.0

// Command demo runs a whole fleet on one machine and shows how add-ons arrive. It is the first thing that a newcomer
// runs. It is a program of its own, so that the chandler that people install does not contain a test fleet.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

func main() {
	log.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	o := options{Out: os.Stdout}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run a fleet on this machine and watch add-ons arrive",
		Long: `Starts a management cluster (etcd, kube-apiserver, the Flux controllers and the hub) and three workload clusters as local
processes, labels them, and shows how the add-ons of examples/quickstart arrive. The parts come from "make tools".`,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), o) },
	}
	cmd.Flags().StringVar(&o.Hub, "hub", "", "the hub's binary (default: built from this checkout)")
	cmd.Flags().BoolVar(&o.Once, "once", false, "exit when every add-on is Ready and has been read back from every cluster")
	cmd.Flags().BoolVar(&o.Teams, "teams", false, "then have the two teams of examples/teams arrive on two clusters")
	cmd.Flags().BoolVar(&o.Rollout, "rollout", false, "then show how a bad edit of examples/rollout stops at the first cluster, and goes back")
	cmd.Flags().DurationVar(&o.Timeout, "timeout", defaultTimeout, "how long the add-ons may take to arrive")
	return cmd
}
