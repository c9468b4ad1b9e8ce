// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
)

// unregisterOptions are the flags of `chandler unregister`.
type unregisterOptions struct {
	*registrarOptions
	orphan, leaveAccount bool
}

func unregisterCommand() *cobra.Command {
	o := &unregisterOptions{registrarOptions: newRegistrarOptions()}
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
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0]) },
	}
	cmd.ValidArgsFunction = completeNames(o.hub, "ClusterRegistration", false)
	f := cmd.Flags()
	f.BoolVar(&o.orphan, "orphan", false, "leave the add-ons on the cluster")
	f.BoolVar(&o.leaveAccount, "leave-account", false, "leave the hub's account on the cluster, such as one that is gone")
	o.addFlags(cmd, 15*time.Minute)
	return cmd
}

func (o *unregisterOptions) run(cmd *cobra.Command, arg string) error {
	name, err := o.name(arg)
	if err != nil {
		return &exit{uncertain, err}
	}
	r, err := o.connect(cmd)
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	departure, err := r.Departure(ctx, name, o.orphan, o.leaveAccount)
	if err != nil {
		return decide(err)
	}
	if err := departure.Print(o.Out); err != nil {
		return err
	}
	if err := o.agreed(ctx); err != nil {
		return err
	}
	fmt.Fprintln(o.Out)
	if err := r.Leave(ctx, departure); err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "Cluster %s is unregistered\n", name)
	return nil
}
