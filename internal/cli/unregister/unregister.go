// SPDX-License-Identifier: Apache-2.0

// Package unregister is `chandler unregister`.
package unregister

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/chandler-hub/chandler/internal/cli/command"
	"github.com/chandler-hub/chandler/internal/cli/exit"
	"github.com/chandler-hub/chandler/internal/cli/factory"
	"github.com/chandler-hub/chandler/internal/cli/pair"
	"github.com/chandler-hub/chandler/internal/cli/terminal"
)

// Options are the flags of `chandler unregister`.
type Options struct {
	pair.Pair
	// Arg is the name of a cluster.
	Arg                  string
	Orphan, LeaveAccount bool
}

// New returns the command. run is what it does; nil is what it usually does.
func New(from *factory.Factory, run func(context.Context, *Options) error) *cobra.Command {
	o := &Options{}
	cmd := &cobra.Command{
		Use:   "unregister NAME",
		Short: "Unregister a cluster",
		Long: `Has the hub uninstall the add-ons of the cluster, waits, and then removes the hub's account on the cluster
and its Secret. Clusters of Kamaji and Cluster API, and those you registered by hand, are unregistered too; their Secrets
and accounts stay.`,
		Example: `  chandler unregister edge1 -n fleet
  chandler unregister fleet/edge1 --orphan --yes`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("unregister: write the name of a cluster: chandler unregister NAME")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Arg = args[0]
			return command.Run(cmd.Context(), o, run, o.run)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.Orphan, "orphan", false, "leave the add-ons on the cluster")
	f.BoolVar(&o.LeaveAccount, "leave-account", false, "leave the hub's account on the cluster, such as one that is gone")
	o.AddFlags(cmd, from, 15*time.Minute)
	cmd.ValidArgsFunction = o.CompleteNames("ClusterRegistration", false)
	exit.Means(cmd, "the cluster is unregistered", "a check failed, you said no, or the time is over")
	return cmd
}

func (o *Options) run(ctx context.Context) error {
	name, err := o.Name(o.Arg)
	if err != nil {
		return exit.Wrong(err)
	}
	r, err := o.Connect(ctx)
	if err != nil {
		return err
	}
	departure, err := r.Departure(ctx, name, o.Orphan, o.LeaveAccount)
	if err != nil {
		return exit.Decide(err)
	}
	if err := departure.Print(o.Out); err != nil {
		return err
	}
	if err := terminal.Agreed(ctx, o.In, o.Out, o.Yes); err != nil {
		return err
	}
	fmt.Fprintln(o.Out)
	if err := r.Leave(ctx, departure); err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "Cluster %s is unregistered\n", name)
	return nil
}
