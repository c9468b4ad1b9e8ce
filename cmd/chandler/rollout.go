// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/course"
	"github.com/chandler-hub/chandler/internal/live"
)

func rolloutCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rollout",
		Short: "Show and steer rollouts",
		Long: `Shows the rollout of an AddonSet, plans the next one, lists revisions, and gives orders. An order names a
revision, so it never applies to another one. SET is NAME or NAMESPACE/NAME; without -n it is looked for in all namespaces.`,
		Example: `  chandler rollout status cert-manager
  chandler rollout approve cert-manager`,
	}
	return group(cmd, rolloutStatusCommand(), rolloutPlanCommand(), rolloutHistoryCommand(), approveCommand(), expediteCommand(),
		retryCommand(), undoCommand(), redoCommand())
}

// rolloutOptions are what the commands of `chandler rollout` have in common.
type rolloutOptions struct{ hubOptions }

// newRollout returns the options, and adds their flags to a command.
func newRollout(cmd *cobra.Command) *rolloutOptions {
	o := &rolloutOptions{}
	o.add(cmd)
	cmd.ValidArgsFunction = completeNames(o.flags, "AddonSet", false)
	return o
}

// addHub adds the flags for what only the hub knows: how far sets reach, and, for files, which clusters it would register.
func (o *rolloutOptions) addHub(cmd *cobra.Command) {
	o.addShared(cmd)
}

// find connects to the hub, and finds the set.
func (o *rolloutOptions) find(ctx context.Context, name string) (*course.Input, error) {
	if err := o.connect(ctx); err != nil {
		return nil, err
	}
	set, err := o.reader.FindSet(ctx, name, *o.flags.Namespace)
	if err != nil {
		return nil, err
	}
	return &course.Input{Set: set, Now: time.Now()}, nil
}

// read reads parts of what belongs to a set.
func read(ctx context.Context, in *course.Input, parts ...func(context.Context, *course.Input) error) error {
	for _, part := range parts {
		if err := part(ctx, in); err != nil {
			return err
		}
	}
	return nil
}

// clusters reads everything that says what each cluster is.
func (o *rolloutOptions) clusters(cmd *cobra.Command, in *course.Input) error {
	if err := o.reader.Ask(cmd.Context(), o.hubNamespace, cmd.Flags()); err != nil {
		return err
	}
	return read(cmd.Context(), in, o.reader.Revisions, o.reader.Deliveries, o.reader.Clusters)
}

// oneSet wants the name of a set.
func oneSet(verb string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return fmt.Errorf("rollout %s: write the name of a set: chandler rollout %s SET", verb, verb)
		}
		return nil
	}
}

func rolloutHistoryCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "history SET",
		Short: "List the revisions of a set",
		Long: `Lists the revisions of a set, oldest first: how many clusters have each, and on how many it was Ready.
"newest" is what the set has; "completed" is the last one that reached every wave.`,
		Example: `  chandler rollout history cert-manager -n flux-system`,
		Args:    oneSet("history"),
	}
	o := newRollout(cmd)
	var format output
	format.addOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		in, err := o.find(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		if err := read(cmd.Context(), in, o.reader.Revisions, o.reader.Deliveries); err != nil {
			return err
		}
		if !format.isText() {
			return format.write(cmd.OutOrStdout(), course.HistoryOf(in))
		}
		return course.History(in).Flush(cmd.OutOrStdout())
	}
	return cmd
}

// order gives an order: it reads the set, has the order made, and patches the set. If somebody else changes the set meanwhile, it
// begins anew, as long as the same revision is rolled out.
func (o *rolloutOptions) order(cmd *cobra.Command, name string, revisions bool, write func(*course.Input) (*course.Order, error)) error {
	ctx, out := cmd.Context(), visible{cmd.OutOrStdout()}
	var order *course.Order
	seen := ""
	err := live.Again(retry.DefaultBackoff, apierrors.IsConflict, func() error {
		in, err := o.find(ctx, name)
		if err != nil {
			return err
		}
		if now := revision(in.Set); seen != "" && seen != now {
			return fmt.Errorf("AddonSet %s/%s has revision %s now, and not %s; nothing is changed", in.Set.Namespace, in.Set.Name, now, seen)
		}
		seen = revision(in.Set)
		if revisions {
			if err := read(ctx, in, o.reader.Revisions); err != nil {
				return err
			}
		}
		if order, err = write(in); err != nil || order.Patch == nil {
			return err
		}
		return o.patch(ctx, in.Set, order.Patch)
	})
	if err != nil {
		return err
	}
	order.Print(out)
	return nil
}

// revision returns the revisions that a set has and rolls out.
func revision(set *hubv1.AddonSet) string {
	if set.Status.Rollout == nil {
		return set.Status.Revision
	}
	return set.Status.Revision + ", " + set.Status.Rollout.Revision
}

func (o *rolloutOptions) patch(ctx context.Context, set *hubv1.AddonSet, patch map[string]any) error {
	raw, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	err = o.reader.Client.Patch(ctx, set.DeepCopy(), client.RawPatch(types.MergePatchType, raw), client.FieldOwner(course.Manager))
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("you may not patch AddonSet %s/%s: %w", set.Namespace, set.Name, err)
	case apierrors.IsConflict(err):
		return err // is tried again
	case err != nil:
		return fmt.Errorf("patch AddonSet %s/%s: %w", set.Namespace, set.Name, err)
	}
	return nil
}

var errTimeout = errors.New("the time is over")
