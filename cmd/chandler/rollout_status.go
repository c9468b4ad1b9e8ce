// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/chandler-hub/chandler/internal/course"
)

// again is how often `chandler rollout status --watch` looks.
const again = 2 * time.Second

func rolloutStatusCommand() *cobra.Command {
	var clusters, wait bool
	var format output
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "status SET",
		Short: "Show rollout status and the next command to run",
		Long: `Shows the rollout of a set: its revision, its waves, what it waits for, and the command to go on.
--per-cluster lists each cluster with its wave. --watch prints changes until every wave is done; it fails if the rollout
fails or goes back.`,
		Example: `  chandler rollout status cert-manager --per-cluster
  chandler rollout status cert-manager --watch --timeout 1h`,
		Args: oneSet("status"),
	}
	o := newRollout(cmd)
	o.addHub(cmd)
	f := cmd.Flags()
	f.BoolVar(&clusters, "per-cluster", false, "list each cluster with its wave and revision")
	f.BoolVarP(&wait, "watch", "w", false, "watch for changes, until the rollout is complete")
	addTimeout(f, &timeout, 0, "how long to watch")
	format.addOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if timeout != 0 && !wait {
			return &exit{uncertain, errors.New("rollout status: --timeout is how long to wait: write --watch too")}
		}
		if wait {
			if err := o.wait(cmd, args[0], timeout); err != nil {
				return err
			}
		}
		in, err := o.find(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		if clusters {
			if err := o.clusters(cmd, in); err != nil {
				return err
			}
		}
		if !format.isText() {
			d, err := course.StatusOf(in, clusters)
			if err != nil {
				return err
			}
			return format.write(cmd.OutOrStdout(), d)
		}
		p, err := course.Status(in, clusters)
		if err != nil {
			return err
		}
		return p.Flush(cmd.OutOrStdout())
	}
	return cmd
}

// wait waits until a rollout is complete, and says what changes meanwhile.
func (o *rolloutOptions) wait(cmd *cobra.Command, name string, timeout time.Duration) error {
	if err := o.connect(cmd.Context()); err != nil { // for what comes after the wait too
		return err
	}
	ctx, cancel := limited(cmd.Context(), timeout)
	defer cancel()
	said := ""
	for {
		in, err := o.find(ctx, name)
		if ctx.Err() != nil {
			return fmt.Errorf("%w; the last that was seen of the rollout: %s", context.Cause(ctx), cmp.Or(said, "nothing"))
		}
		if err != nil {
			return err
		}
		if over, err := course.Reached(in.Set); over {
			return err
		}
		if text := course.Progress(in.Set); text != said {
			sayLine(cmd.ErrOrStderr(), "%s", text)
			said = text
		}
		select {
		case <-ctx.Done():
		case <-time.After(again):
		}
	}
}
