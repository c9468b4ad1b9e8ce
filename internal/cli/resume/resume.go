// SPDX-License-Identifier: Apache-2.0

// Package resume is `chandler resume`.
package resume

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/chandler-hub/chandler/internal/cli/command"
	"github.com/chandler-hub/chandler/internal/cli/exit"
	"github.com/chandler-hub/chandler/internal/cli/factory"
	"github.com/chandler-hub/chandler/internal/cli/hub"
	"github.com/chandler-hub/chandler/internal/cli/order"
	"github.com/chandler-hub/chandler/internal/cli/terminal"
	"github.com/chandler-hub/chandler/internal/rolloutview"
)

// Options are the flags of `chandler resume`.
type Options struct {
	order.Hub
	// Args are a cluster or a set.
	Args []string
}

// New returns the command. run is what it does; nil is what it usually does.
func New(from *factory.Factory, run func(context.Context, *Options) error) *cobra.Command {
	o := &Options{}
	cmd := &cobra.Command{
		Use:   "resume [cluster|set] NAME",
		Short: "Resume a cluster or a set",
		Long: `Removes spec.pause. On a cluster, the hub resumes the Flux objects, except those that a user suspended by
hand. For a set, new revisions go out again. If Flux applies the object from Git and spec.pause is there, remove it there.

NAME is NAME or NAMESPACE/NAME. If there is both a cluster and a set, write cluster NAME or set NAME.`,
		Example: `  chandler resume tenant1
  chandler resume set cert-manager`,
		Args: hub.SubjectArgs("resume"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Streams, o.Args = terminal.Of(cmd), args
			return command.Run(cmd.Context(), o, run, o.run)
		},
	}
	o.AddFlags(cmd, from)
	cmd.ValidArgsFunction = o.CompleteSubject
	exit.Means(cmd, "", "no such cluster or set, or it is not paused")
	return cmd
}

func (o *Options) run(ctx context.Context) error {
	return o.Give(ctx, "resume", o.Args, rolloutview.ResumeCluster, rolloutview.Resume)
}
