// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/chandler-hub/chandler/internal/cli/command"
	"github.com/chandler-hub/chandler/internal/cli/exit"
	"github.com/chandler-hub/chandler/internal/cli/factory"
	"github.com/chandler-hub/chandler/internal/cli/order"
	"github.com/chandler-hub/chandler/internal/cli/terminal"
	"github.com/chandler-hub/chandler/internal/rolloutview"
)

// watchEvery is how often `chandler rollout status --watch` looks.
const watchEvery = 2 * time.Second

func statusCommand(from *factory.Factory, run Run) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status SET",
		Short: "Show rollout status and the next command to run",
		Long: `Shows the rollout of a set: its revision, its waves, what it waits for, and the command to go on.
--per-cluster lists each cluster with its wave. --watch prints changes until every wave is done; it fails if the rollout
fails or goes back.`,
		Example: `  chandler rollout status cert-manager --per-cluster
  chandler rollout status cert-manager --watch --timeout 1h`,
		Args: order.OneSet("status"),
	}
	o := newOptions(cmd, from, run, show)
	o.AddShared(cmd) // how far sets reach
	f := cmd.Flags()
	f.BoolVar(&o.PerCluster, "per-cluster", false, "list each cluster with its wave and revision")
	f.BoolVarP(&o.Watch, "watch", "w", false, "watch for changes, until the rollout is complete")
	command.AddTimeout(f, &o.Timeout, 0, "how long to watch")
	o.Output.AddFlag(cmd)
	exit.Means(cmd, "", "no such set; with --watch: the rollout failed or went back, or the time is over")
	return cmd
}

func show(ctx context.Context, o *Options) error {
	if o.Timeout != 0 && !o.Watch {
		return exit.Wrong(errors.New("rollout status: --timeout is how long to wait: write --watch too"))
	}
	if o.Watch {
		if err := o.wait(ctx); err != nil {
			return err
		}
	}
	in, err := o.Find(ctx, o.Args[0])
	if err != nil {
		return err
	}
	if o.PerCluster {
		if err := o.Clusters(ctx, in); err != nil {
			return err
		}
	}
	if !o.Output.IsText() {
		d, err := rolloutview.StatusOf(in, o.PerCluster)
		if err != nil {
			return err
		}
		return o.Output.Write(o.Out, d)
	}
	p, err := rolloutview.Status(in, o.PerCluster)
	if err != nil {
		return err
	}
	return p.Flush(o.Out)
}

// wait waits until a rollout is complete, and says what changes meanwhile.
func (o *Options) wait(ctx context.Context) error {
	if err := o.Connect(ctx); err != nil { // for what comes after the wait too
		return err
	}
	ctx, cancel := command.Limited(ctx, o.Timeout)
	defer cancel()
	said := ""
	for {
		in, err := o.Find(ctx, o.Args[0])
		if ctx.Err() != nil {
			return fmt.Errorf("%w; the last that was seen of the rollout: %s", context.Cause(ctx), cmp.Or(said, "nothing"))
		}
		if err != nil {
			return err
		}
		if over, err := rolloutview.Reached(in.Set); over {
			return err
		}
		if text := rolloutview.Progress(in.Set); text != said {
			terminal.Say(o.ErrOut, "%s", text)
			said = text
		}
		select {
		case <-ctx.Done():
		case <-time.After(watchEvery):
		}
	}
}
