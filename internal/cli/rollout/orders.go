// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/chandler-hub/chandler/internal/cli/factory"
	"github.com/chandler-hub/chandler/internal/cli/order"
	"github.com/chandler-hub/chandler/internal/rolloutview"
)

func approveCommand(from *factory.Factory, run Run) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "approve SET [WAVE]",
		Short: "Approve a wave, so that the next one can start",
		Long: `Lets the next wave start where a wave has approval: Manual. Without WAVE it approves the wave that waits
for it. With WAVE it can approve a wave ahead of time. Sets annotation chandler.dev/approve.`,
		Example: `  chandler rollout approve cert-manager
  chandler rollout approve cert-manager canary`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return errors.New("rollout approve: write a set, and optionally a wave: chandler rollout approve SET [WAVE]")
			}
			return nil
		},
	}
	o := newOptions(cmd, from, run, func(ctx context.Context, o *Options) error {
		return o.Order(ctx, o.Args[0], false, func(in *rolloutview.Input) (*rolloutview.Order, error) {
			wave := ""
			if len(o.Args) > 1 {
				wave = o.Args[1]
			}
			return rolloutview.Approve(in, wave, o.Revision)
		})
	})
	order.AddSeen(cmd, &o.Revision)
	cmd.ValidArgsFunction = o.CompleteWave
	return cmd
}

func expediteCommand(from *factory.Factory, run Run) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "expedite SET",
		Short: "Skip soak times and maintenance windows for a revision",
		Long: `Ends the soak times of the current revision, and lets clusters get it outside of the windows. Waves, limits
and approvals stay. Sets annotation chandler.dev/expedite.`,
		Example: `  chandler rollout expedite cert-manager --reason CVE-2026-0001`,
		Args:    order.OneSet("expedite"),
	}
	o := newOptions(cmd, from, run, func(ctx context.Context, o *Options) error {
		return o.Order(ctx, o.Args[0], false, func(in *rolloutview.Input) (*rolloutview.Order, error) {
			return rolloutview.Expedite(in, o.Reason, o.Revision)
		})
	})
	order.AddSeen(cmd, &o.Revision)
	order.AddReason(cmd, &o.Reason)
	return cmd
}

func retryCommand(from *factory.Factory, run Run) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "retry SET",
		Short: "Retry a revision that failed",
		Long: `Rolls out the newest revision, which failed, again from the first wave on. Sets annotation
chandler.dev/retry.`,
		Example: `  chandler rollout retry cert-manager`,
		Args:    order.OneSet("retry"),
	}
	o := newOptions(cmd, from, run, func(ctx context.Context, o *Options) error {
		return o.Order(ctx, o.Args[0], false, func(in *rolloutview.Input) (*rolloutview.Order, error) {
			return rolloutview.Retry(in, o.Revision)
		})
	})
	order.AddSeen(cmd, &o.Revision)
	return cmd
}

func undoCommand(from *factory.Factory, run Run) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "undo SET",
		Short: "Go back to an older revision",
		Long: `Goes back to the last revision that was Ready on every cluster of its rollout and has not failed since, or
to the one of --to. It goes wave by wave, without soak times, windows and approvals. It holds until the set changes, or
until chandler rollout redo. The set itself, and Git, stay as they are. Sets annotation chandler.dev/undo.`,
		Example: `  chandler rollout undo cert-manager
  chandler rollout undo cert-manager --to 3 --now`,
		Args: order.OneSet("undo"),
	}
	o := newOptions(cmd, from, run, func(ctx context.Context, o *Options) error {
		return o.Order(ctx, o.Args[0], true, func(in *rolloutview.Input) (*rolloutview.Order, error) {
			return rolloutview.Undo(in, o.To, o.Immediate)
		})
	})
	cmd.Flags().StringVar(&o.To, "to", "", "revision to go back to, name or number (see chandler rollout history)")
	cmd.Flags().BoolVar(&o.Immediate, "now", false, "all clusters at once, not wave by wave")
	return cmd
}

func redoCommand(from *factory.Factory, run Run) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "redo SET",
		Short: "End an undo, and roll out the newest revision again",
		Long: `Removes annotation chandler.dev/undo. The newest revision goes out again, wave by wave. If it failed
before, chandler rollout retry has it tried again.`,
		Example: `  chandler rollout redo cert-manager`,
		Args:    order.OneSet("redo"),
	}
	newOptions(cmd, from, run, func(ctx context.Context, o *Options) error {
		return o.Order(ctx, o.Args[0], false, rolloutview.Redo)
	})
	return cmd
}
