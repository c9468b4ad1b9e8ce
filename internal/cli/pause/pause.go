// SPDX-License-Identifier: Apache-2.0

// Package pause is `chandler pause`.
package pause

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/cli/command"
	"github.com/chandler-hub/chandler/internal/cli/exit"
	"github.com/chandler-hub/chandler/internal/cli/factory"
	"github.com/chandler-hub/chandler/internal/cli/hub"
	"github.com/chandler-hub/chandler/internal/cli/order"
	"github.com/chandler-hub/chandler/internal/cli/terminal"
	"github.com/chandler-hub/chandler/internal/rolloutview"
)

// Options are the flags of `chandler pause`.
type Options struct {
	order.Hub
	// Args are a cluster or a set.
	Args          []string
	Until, Reason string
}

// New returns the command. run is what it does; nil is what it usually does.
func New(from *factory.Factory, run func(context.Context, *Options) error) *cobra.Command {
	o := &Options{}
	cmd := &cobra.Command{
		Use:   "pause [cluster|set] NAME",
		Short: "Pause a cluster, or new revisions of a set",
		Long: `For a cluster: suspends its Flux objects (sets spec.pause on the registration). Nothing on the cluster
changes, and rollouts do not wait for it.
For a set: holds back new revisions (sets spec.pause on the set). Nothing is suspended, and new clusters get the completed
revision.

NAME is NAME or NAMESPACE/NAME. If there is both a cluster and a set, write cluster NAME or set NAME. If Flux applies the
object from Git, set spec.pause there.`,
		Example: `  chandler pause tenant1 --until 12h --reason 'change freeze'
  chandler pause set cert-manager --until 2027-01-02T08:00:00Z`,
		Args: hub.SubjectArgs("pause"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Streams, o.Args = terminal.Of(cmd), args
			return command.Run(cmd.Context(), o, run, o.run)
		},
	}
	o.AddFlags(cmd, from)
	cmd.ValidArgsFunction = o.CompleteSubject
	cmd.Flags().StringVar(&o.Until, "until", "", "when it ends: a time or a duration, such as 12h (default: until resumed)")
	order.AddReason(cmd, &o.Reason)
	command.Wants(cmd, func() error {
		if o.Until == "" {
			return nil
		}
		_, err := rolloutview.EndOf(o.Until, o.Now())
		return err
	})
	exit.Means(cmd, "", "no such cluster or set, or it cannot be paused")
	return cmd
}

func (o *Options) run(ctx context.Context) error {
	return o.Give(ctx, "pause", o.Args, func(reg *hubv1.ClusterRegistration, now time.Time) (*rolloutview.Order, error) {
		return rolloutview.PauseCluster(reg, o.Until, o.Reason, now)
	}, func(in *rolloutview.Input) (*rolloutview.Order, error) {
		return rolloutview.Pause(in, o.Until, o.Reason)
	})
}
