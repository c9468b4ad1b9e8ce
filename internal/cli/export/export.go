// SPDX-License-Identifier: Apache-2.0

// Package export is `chandler export`.
package export

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/chandler-hub/chandler/internal/cli/command"
	"github.com/chandler-hub/chandler/internal/cli/exit"
	"github.com/chandler-hub/chandler/internal/cli/factory"
	"github.com/chandler-hub/chandler/internal/cli/fleet"
	"github.com/chandler-hub/chandler/internal/cli/hub"
	"github.com/chandler-hub/chandler/internal/cli/terminal"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/preview"
	"github.com/chandler-hub/chandler/internal/snapshot"
	"github.com/chandler-hub/chandler/internal/status"
)

// New returns the command. run is what it does; nil is what it usually does.
func New(from *factory.Factory, run func(context.Context, *Options) error) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "export",
		Short:   "Export the fleet to a file",
		Example: `  chandler export fleet > fleet.yaml`,
	}
	exit.Means(cmd, "", "something could not be read or written")
	return command.Group(cmd, fleetCommand(from, run))
}

// Options are the flags of `chandler export fleet`.
type Options struct {
	hub.Connection
	terminal.Streams
}

func fleetCommand(from *factory.Factory, run func(context.Context, *Options) error) *cobra.Command {
	o := &Options{}
	cmd := &cobra.Command{
		Use:   "fleet",
		Short: "Export the clusters of a hub, for chandler diff --fleet",
		Long: `Writes what the hub knows of its clusters: registrations with labels and facts, their origins, the hub's
flags, and the ConfigMaps that sets use. Of Secrets it writes the names of keys only. With this file, chandler diff --fleet
needs no access to the hub.`,
		Example: `  chandler export fleet > fleet.yaml
  chandler diff -f addons/ --against main --fleet fleet.yaml`,
		Args: command.OnlyFlags,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Streams = terminal.Of(cmd)
			return command.Run(cmd.Context(), o, run, o.run)
		},
	}
	o.AddFlags(cmd, from)
	o.AddShared(cmd)
	cmd.Flags().Lookup("namespace").Hidden = true // a fleet is that of all namespaces
	return cmd
}

func (o *Options) run(ctx context.Context) error {
	from, err := fleet.Read(ctx, &o.Connection)
	if err != nil {
		return err
	}
	known, err := preview.NewFleet(from.Objects, o.Reader.Hub.Origins)
	if err != nil {
		return err
	}
	known.ReadBy(from.Document)
	now := o.Now()
	// Which ConfigMaps sets refer to may depend on the cluster: so everything is rendered once. What is wrong is no matter here.
	preview.Render(known, preview.Options{Shared: o.Reader.Hub, Now: now})
	for _, n := range from.Notes {
		terminal.Say(o.ErrOut, "warning: %s", n)
	}
	s := snapshot.Of(from.Objects, from.Documents, hubconfig.OnlyShared(o.Reader.Published(ctx, o.HubNamespace)), now)
	raw, err := s.Write()
	if err != nil {
		return err
	}
	if _, err := o.Out.Write(raw); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	terminal.Say(o.ErrOut, "exported %s", status.Count(len(s.Registrations), "cluster"))
	return nil
}
