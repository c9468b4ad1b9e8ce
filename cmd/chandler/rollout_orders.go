// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/chandler-hub/chandler/internal/course"
)

func addSeen(cmd *cobra.Command, seen *string) {
	cmd.Flags().StringVar(seen, "revision", "", "the revision that you mean; if the set has another one by now, nothing is changed")
}

func addReason(cmd *cobra.Command, reason *string) {
	cmd.Flags().StringVar(reason, "reason", "", "reason, shown to others")
}

func approveCommand() *cobra.Command {
	var seen string
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
	o := newRollout(cmd)
	addSeen(cmd, &seen)
	cmd.ValidArgsFunction = o.completeWave
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return o.order(cmd, args[0], false, func(in *course.Input) (*course.Order, error) {
			wave := ""
			if len(args) > 1 {
				wave = args[1]
			}
			return course.Approve(in, wave, seen)
		})
	}
	return cmd
}

func expediteCommand() *cobra.Command {
	var seen, reason string
	cmd := &cobra.Command{
		Use:   "expedite SET",
		Short: "Skip soak times and maintenance windows for a revision",
		Long: `Ends the soak times of the current revision, and lets clusters get it outside of the windows. Waves, limits
and approvals stay. Sets annotation chandler.dev/expedite.`,
		Example: `  chandler rollout expedite cert-manager --reason CVE-2026-0001`,
		Args:    oneSet("expedite"),
	}
	o := newRollout(cmd)
	addSeen(cmd, &seen)
	addReason(cmd, &reason)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return o.order(cmd, args[0], false, func(in *course.Input) (*course.Order, error) { return course.Expedite(in, reason, seen) })
	}
	return cmd
}

func retryCommand() *cobra.Command {
	var seen string
	cmd := &cobra.Command{
		Use:   "retry SET",
		Short: "Retry a revision that failed",
		Long: `Rolls out the newest revision, which failed, again from the first wave on. Sets annotation
chandler.dev/retry.`,
		Example: `  chandler rollout retry cert-manager`,
		Args:    oneSet("retry"),
	}
	o := newRollout(cmd)
	addSeen(cmd, &seen)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return o.order(cmd, args[0], false, func(in *course.Input) (*course.Order, error) { return course.Retry(in, seen) })
	}
	return cmd
}

func undoCommand() *cobra.Command {
	var to string
	var now bool
	cmd := &cobra.Command{
		Use:   "undo SET",
		Short: "Go back to an older revision",
		Long: `Goes back to the last revision that was Ready on every cluster of its rollout and has not failed since, or
to the one of --to. It goes wave by wave, without soak times, windows and approvals. It holds until the set changes, or
until chandler rollout redo. The set itself, and Git, stay as they are. Sets annotation chandler.dev/undo.`,
		Example: `  chandler rollout undo cert-manager
  chandler rollout undo cert-manager --to 3 --now`,
		Args: oneSet("undo"),
	}
	o := newRollout(cmd)
	cmd.Flags().StringVar(&to, "to", "", "revision to go back to, name or number (see chandler rollout history)")
	cmd.Flags().BoolVar(&now, "now", false, "all clusters at once, not wave by wave")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return o.order(cmd, args[0], true, func(in *course.Input) (*course.Order, error) { return course.Undo(in, to, now) })
	}
	return cmd
}

func redoCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "redo SET",
		Short: "End an undo, and roll out the newest revision again",
		Long: `Removes annotation chandler.dev/undo. The newest revision goes out again, wave by wave. If it failed
before, chandler rollout retry has it tried again.`,
		Example: `  chandler rollout redo cert-manager`,
		Args:    oneSet("redo"),
	}
	o := newRollout(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return o.order(cmd, args[0], false, course.Redo) }
	return cmd
}
