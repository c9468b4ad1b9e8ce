// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/preview"
	"github.com/chandler-hub/chandler/internal/snapshot"
	"github.com/chandler-hub/chandler/internal/status"
)

func exportCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "export",
		Short:   "Export the fleet to a file",
		Example: `  chandler export fleet > fleet.yaml`,
	}
	return group(cmd, exportFleetCommand())
}

func exportFleetCommand() *cobra.Command {
	o := &hubOptions{}
	cmd := &cobra.Command{
		Use:   "fleet",
		Short: "Export the clusters of a hub, for chandler diff --fleet",
		Long: `Writes what the hub knows of its clusters: registrations with labels and facts, their origins, the hub's
flags, and the ConfigMaps that sets use. Of Secrets it writes the names of keys only. With this file, chandler diff --fleet
needs no access to the hub.`,
		Example: `  chandler export fleet > fleet.yaml
  chandler diff -f addons/ --against main --fleet fleet.yaml`,
		Args: onlyFlags,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.exportFleet(cmd) },
	}
	o.add(cmd)
	o.addShared(cmd)
	cmd.Flags().Lookup("namespace").Hidden = true // a fleet is that of all namespaces
	return cmd
}

func (o *hubOptions) exportFleet(cmd *cobra.Command) error {
	from, err := o.hub(cmd)
	if err != nil {
		return err
	}
	fleet, err := preview.NewFleet(from.Objects, o.reader.Hub.Origins)
	if err != nil {
		return err
	}
	fleet.ReadBy(from.Document)
	now := time.Now()
	// Which ConfigMaps sets refer to may depend on the cluster: so everything is rendered once. What is wrong is no matter here.
	preview.Render(fleet, preview.Options{Shared: o.reader.Hub, Now: now})
	for _, n := range from.Notes {
		sayLine(cmd.ErrOrStderr(), "warning: %s", n)
	}
	s := snapshot.Of(from.Objects, from.Documents, hubconfig.OnlyShared(o.reader.Published(cmd.Context(), o.hubNamespace)), now)
	raw, err := s.Write()
	if err != nil {
		return err
	}
	if _, err := cmd.OutOrStdout().Write(raw); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	sayLine(cmd.ErrOrStderr(), "exported %s", status.Count(len(s.Registrations), "cluster"))
	return nil
}
