// SPDX-License-Identifier: Apache-2.0

// Package rollout is `chandler rollout`.
package rollout

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/chandler-hub/chandler/internal/cli/command"
	"github.com/chandler-hub/chandler/internal/cli/exit"
	"github.com/chandler-hub/chandler/internal/cli/factory"
	"github.com/chandler-hub/chandler/internal/cli/order"
	"github.com/chandler-hub/chandler/internal/cli/terminal"
	"github.com/chandler-hub/chandler/internal/rolloutreader"
	"github.com/chandler-hub/chandler/internal/rolloutview"
)

// New returns the command. run is what it does; nil is what it usually does.
func New(from *factory.Factory, run Run) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rollout",
		Short: "Show and steer rollouts",
		Long: `Shows the rollout of an AddonSet, plans the next one, lists revisions, and gives orders. An order names a
revision, so it never applies to another one. SET is NAME or NAMESPACE/NAME; without -n it is looked for in all namespaces.`,
		Example: `  chandler rollout status cert-manager
  chandler rollout approve cert-manager`,
	}
	exit.Means(cmd, "", "the set does not exist, or the command does not apply to it")
	return command.Group(cmd, statusCommand(from, run), planCommand(from, run), historyCommand(from, run), approveCommand(from, run),
		expediteCommand(from, run), retryCommand(from, run), undoCommand(from, run), redoCommand(from, run))
}

// Run is what a command does. A test replaces it.
type Run = func(context.Context, *Options) error

// Options are the flags of the commands of `chandler rollout`. Each command has some of them.
type Options struct {
	order.Hub
	// Args are a set, and for approve maybe one of its waves.
	Args       []string
	Files      []string
	Output     command.Format
	PerCluster bool
	Watch      bool
	Timeout    time.Duration
	// Revision is the revision that the user has seen, and To the one to go back to.
	Revision, To string
	Reason       string
	Immediate    bool
}

// newOptions returns the options of a command, which does what run says, or else what it usually does.
func newOptions(cmd *cobra.Command, from *factory.Factory, run, usual Run) *Options {
	if run == nil {
		run = usual
	}
	o := &Options{}
	o.AddSet(cmd, from)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o.Streams, o.Args = terminal.Of(cmd), args
		return run(cmd.Context(), o)
	}
	return o
}

func historyCommand(from *factory.Factory, run Run) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "history SET",
		Short: "List the revisions of a set",
		Long: `Lists the revisions of a set, oldest first: how many clusters have each, and on how many it was Ready.
"newest" is what the set has; "completed" is the last one that reached every wave.`,
		Example: `  chandler rollout history cert-manager -n flux-system`,
		Args:    order.OneSet("history"),
	}
	o := newOptions(cmd, from, run, history)
	o.Output.AddFlag(cmd)
	exit.Means(cmd, "", "no such set")
	return cmd
}

func history(ctx context.Context, o *Options) error {
	in, err := o.Find(ctx, o.Args[0])
	if err != nil {
		return err
	}
	if err := rolloutreader.Read(ctx, &o.Reader, in, rolloutreader.Revisions, rolloutreader.Deliveries); err != nil {
		return err
	}
	if !o.Output.IsText() {
		return o.Output.Write(o.Out, rolloutview.HistoryOf(in))
	}
	return rolloutview.History(in).Flush(o.Out)
}
