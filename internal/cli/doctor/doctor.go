// SPDX-License-Identifier: Apache-2.0

// Package doctor is `chandler doctor`.
package doctor

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/chandler-hub/chandler/internal/cli/command"
	"github.com/chandler-hub/chandler/internal/cli/exit"
	"github.com/chandler-hub/chandler/internal/cli/factory"
	"github.com/chandler-hub/chandler/internal/cli/hub"
	"github.com/chandler-hub/chandler/internal/cli/terminal"
	"github.com/chandler-hub/chandler/internal/doctor"
	"github.com/chandler-hub/chandler/internal/doctorreader"
	"github.com/chandler-hub/chandler/internal/manifests"
)

// Options are the flags of `chandler doctor`.
type Options struct {
	hub.Connection
	terminal.Streams
	At     doctorreader.Where
	Output command.Format
}

// New returns the command. run is what it does; nil is what it usually does.
func New(from *factory.Factory, run func(context.Context, *Options) error) *cobra.Command {
	o := &Options{}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the hub, Flux and the fleet, and say what to fix",
		Long: `Checks the hub, its Flux and its fleet, and says what is wrong and what to do. It only reads, and prints no
secrets. What you may not read is listed as not checked. docs/doctor.md explains every finding.`,
		Example: `  chandler doctor
  chandler doctor --context management -o json`,
		Args: command.OnlyFlags,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Streams = terminal.Of(cmd)
			return command.Run(cmd.Context(), o, run, o.run)
		},
	}
	o.AddBare(cmd, from) // it looks at a whole hub
	o.Output.AddFlag(cmd)
	hub.AddNamespace(cmd.Flags(), &o.At.HubNamespace)
	cmd.Flags().StringVar(&o.At.FluxNamespace, "flux-namespace", manifests.FluxNamespace, "namespace of Flux")
	exit.Means(cmd, "no errors, maybe warnings", "at least one error")
	return cmd
}

func (o *Options) run(ctx context.Context) error {
	config, err := o.Reach(ctx, o.Flags)
	if err != nil {
		return err
	}
	facts, err := doctorreader.Read(ctx, config, o.At)
	if err != nil {
		return exit.Wrong(err)
	}
	report := doctor.Examine(facts)
	if o.Output.IsText() {
		err = report.Page(terminal.Coloured(o.Out)).Flush(o.Out)
	} else {
		err = o.Output.Write(o.Out, report)
	}
	switch {
	case err != nil:
		return exit.Wrong(err)
	case report.Errors > 0:
		return exit.Silent(exit.Failed)
	}
	return nil
}
