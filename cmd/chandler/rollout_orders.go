// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandler-hub/chandler/internal/course"
)

func rolloutOrderCommands() []*cobra.Command {
	return []*cobra.Command{approveCommand(), expediteCommand(), retryCommand(), undoCommand(), resumeCommand(), pauseCommand(),
		unpauseCommand()}
}

func addSeen(cmd *cobra.Command, seen *string) {
	cmd.Flags().StringVar(seen, "revision", "", "the revision that this is about; if it is another one by now, nothing is changed")
}

func addReason(cmd *cobra.Command, reason *string) {
	cmd.Flags().StringVar(reason, "reason", "", "why, for people")
	if err := cmd.MarkFlagRequired("reason"); err != nil {
		panic(err)
	}
	wants(cmd, func() error {
		if strings.TrimSpace(*reason) == "" {
			return errors.New("say why: --reason TEXT")
		}
		return nil
	})
}

func approveCommand() *cobra.Command {
	var seen string
	cmd := &cobra.Command{
		Use:   "approve SET [WAVE]",
		Short: "Let the wave after one with approval: Manual begin",
		Long: `Lets the next wave begin where a wave has approval: Manual. Without a WAVE it is the one that waits for it. A wave that is named is
approved also before it is done. It sets annotation chandler.dev/approve.`,
		Example: `  chandler rollout approve cert-manager
  chandler rollout approve cert-manager canary --revision cert-manager-4f24bf35d8-e4`,
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
		Use:   "expedite SET --reason TEXT",
		Short: "End the soaks of a revision, and let it out of the windows",
		Long: `Ends the soaks of the revision that is rolled out, and lets clusters get it outside of the windows. Waves, limits and
approvals stay. It sets annotation chandler.dev/expedite.`,
		Example: "  chandler rollout expedite cert-manager --reason CVE-2026-0001",
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
		Short: "Roll out a revision again that has failed",
		Long: `Rolls out the newest revision again, which has failed, from the first wave on. The clusters that failed begin anew.
It sets annotation chandler.dev/retry.`,
		Example: "  chandler rollout retry cert-manager",
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
		Use:   "undo SET [--to REVISION] [--now]",
		Short: "Give the clusters an older revision, until the set changes",
		Long: `Gives the clusters an older revision: the last one that was Ready on every cluster that took part in its rollout, and has not
failed since. If there is none, it refuses. It holds until the set changes; the set itself, and Git, stay ahead. It goes wave by wave, and
waits for no soak, window or approval. It sets annotation chandler.dev/undo, and chandler rollout resume takes it off.`,
		Example: `  chandler rollout undo cert-manager
  chandler rollout undo cert-manager --to 3 --now`,
		Args: oneSet("undo"),
	}
	o := newRollout(cmd)
	cmd.Flags().StringVar(&to, "to", "", "the revision to go to, by its name or number; see chandler rollout history")
	cmd.Flags().BoolVar(&now, "now", false, "all clusters at once, and not wave by wave")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return o.order(cmd, args[0], true, func(in *course.Input) (*course.Order, error) { return course.Undo(in, to, now) })
	}
	return cmd
}

func resumeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "resume SET",
		Short: "Take an undo off, or end a pause",
		Long: `Takes annotation chandler.dev/undo off. The newest revision is rolled out again, wave by wave, unless it has failed: then
chandler rollout retry has it tried again. If nothing is undone, it ends a pause, as chandler rollout unpause does.`,
		Example: "  chandler rollout resume cert-manager",
		Args:    oneSet("resume"),
	}
	o := newRollout(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return o.order(cmd, args[0], false, course.Resume) }
	return cmd
}

func pauseCommand() *cobra.Command {
	var until, reason string
	cmd := &cobra.Command{
		Use:   "pause SET [--until TIME|DURATION] --reason TEXT",
		Short: "Hold back new revisions of a set",
		Long: `Holds back new revisions of a set, by spec.pause. No cluster that has the set gets another revision; nothing is suspended, and new
clusters get what is completed. If Flux applies the set from Git, the place for spec.pause is there.`,
		Example: `  chandler rollout pause cert-manager --until 12h --reason 'change freeze'
  chandler rollout pause cert-manager --until 2027-01-02T08:00:00Z --reason holidays`,
		Args: oneSet("pause"),
	}
	o := newRollout(cmd)
	addUntil(cmd, &until)
	addReason(cmd, &reason)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return o.order(cmd, args[0], false, func(in *course.Input) (*course.Order, error) { return course.Pause(in, until, reason) })
	}
	return cmd
}

func unpauseCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "unpause SET",
		Short:   "Go on with new revisions of a set",
		Long:    "Removes spec.pause from a set. If Flux applies the set from Git, and spec.pause is there, remove it there.",
		Example: "  chandler rollout unpause cert-manager",
		Args:    oneSet("unpause"),
	}
	o := newRollout(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return o.order(cmd, args[0], false, course.Unpause) }
	return cmd
}
