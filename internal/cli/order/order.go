// SPDX-License-Identifier: Apache-2.0

// Package order gives orders to a hub: it reads a set or a cluster, has the order made, and writes it into the object.
package order

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/cli/factory"
	"github.com/chandler-hub/chandler/internal/cli/hub"
	"github.com/chandler-hub/chandler/internal/cli/terminal"
	"github.com/chandler-hub/chandler/internal/live"
	"github.com/chandler-hub/chandler/internal/rolloutreader"
	"github.com/chandler-hub/chandler/internal/rolloutview"
)

// Hub is a live hub that takes orders.
type Hub struct {
	hub.Connection
	terminal.Streams
}

// AddSet adds the flags of a command that is about one set.
func (o *Hub) AddSet(cmd *cobra.Command, from *factory.Factory) {
	o.AddFlags(cmd, from)
	cmd.ValidArgsFunction = o.CompleteNames("AddonSet", false)
}

// Find connects to the hub, and finds the set.
func (o *Hub) Find(ctx context.Context, name string) (*rolloutview.Input, error) {
	if err := o.Connect(ctx); err != nil {
		return nil, err
	}
	set, err := o.Reader.FindSet(ctx, name, *o.Flags.Namespace)
	if err != nil {
		return nil, err
	}
	return &rolloutview.Input{Set: set, Now: o.Now()}, nil
}

// Clusters reads everything that says what each cluster is.
func (o *Hub) Clusters(ctx context.Context, in *rolloutview.Input) error {
	if err := o.Ask(ctx); err != nil {
		return err
	}
	return rolloutreader.Read(ctx, &o.Reader, in, rolloutreader.Revisions, rolloutreader.Deliveries, rolloutreader.Clusters)
}

// OneSet wants the name of a set.
func OneSet(verb string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return fmt.Errorf("rollout %s: write the name of a set: chandler rollout %s SET", verb, verb)
		}
		return nil
	}
}

// AddSeen adds the flag for the revision that the user has seen.
func AddSeen(cmd *cobra.Command, seen *string) {
	cmd.Flags().StringVar(seen, "revision", "", "the revision that you mean; if the set has another one by now, nothing is changed")
}

// AddReason adds the flag for the reason of an order.
func AddReason(cmd *cobra.Command, reason *string) {
	cmd.Flags().StringVar(reason, "reason", "", "reason, shown to others")
}

// CompleteWave completes a set, and then its waves.
func (o *Hub) CompleteWave(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return hub.Second(o.CompleteNames("AddonSet", false), func(ctx context.Context, set string) (names []string, err error) {
		in, err := o.Find(ctx, set)
		if err != nil || in.Set.Status.Rollout == nil {
			return nil, err
		}
		for i := range in.Set.Status.Rollout.Waves {
			names = append(names, in.Set.Status.Rollout.Waves[i].Name)
		}
		return names, nil
	})(cmd, args, begun)
}

// Order gives an order to a set: it reads the set, has the order made, and patches the set. If the set changes meanwhile, the order
// begins anew, as long as the same revision is rolled out.
func (o *Hub) Order(ctx context.Context, name string, revisions bool, write func(*rolloutview.Input) (*rolloutview.Order, error)) error {
	var order *rolloutview.Order
	seen := ""
	err := live.Again(retry.DefaultBackoff, apierrors.IsConflict, func() error {
		in, err := o.Find(ctx, name)
		if err != nil {
			return err
		}
		if now := revision(in.Set); seen != "" && seen != now {
			return fmt.Errorf("AddonSet %s/%s has revision %s now, and not %s; nothing is changed", in.Set.Namespace, in.Set.Name, now, seen)
		}
		seen = revision(in.Set)
		if revisions {
			if err := rolloutreader.Revisions(ctx, &o.Reader, in); err != nil {
				return err
			}
		}
		if order, err = write(in); err != nil || order.Patch == nil {
			return err
		}
		if err = o.write(ctx, in.Set.DeepCopy(), order.Patch); apierrors.IsConflict(err) {
			return err // is tried again
		}
		return told("AddonSet", in.Set, err)
	})
	if err != nil {
		return err
	}
	order.Print(terminal.Visible(o.Out))
	return nil
}

// revision returns the revisions that a set has and rolls out.
func revision(set *hubv1.AddonSet) string {
	if set.Status.Rollout == nil {
		return set.Status.Revision
	}
	return set.Status.Revision + ", " + set.Status.Rollout.Revision
}

// write writes the patch of an order into a set or a cluster.
func (o *Hub) write(ctx context.Context, object client.Object, patch map[string]any) error {
	raw, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	return o.Reader.Client.Patch(ctx, object, client.RawPatch(types.MergePatchType, raw), client.FieldOwner(rolloutview.Manager))
}

// told says in an error of write what could not be patched.
func told(kind string, object client.Object, err error) error {
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("you may not patch %s %s/%s: %w", kind, object.GetNamespace(), object.GetName(), err)
	case err != nil:
		return fmt.Errorf("patch %s %s/%s: %w", kind, object.GetNamespace(), object.GetName(), err)
	}
	return nil
}

// Give gives an order to a cluster or to a set, whichever the words after a verb name.
func (o *Hub) Give(ctx context.Context, verb string, args []string,
	cluster func(*hubv1.ClusterRegistration, time.Time) (*rolloutview.Order, error), set func(*rolloutview.Input) (*rolloutview.Order, error),
) error {
	s, err := o.Subject(ctx, verb, args)
	switch {
	case err != nil:
		return err
	case s.Cluster != nil:
		return o.toCluster(ctx, s.Cluster, cluster)
	}
	return o.Order(ctx, s.Set.Namespace+"/"+s.Set.Name, false, set)
}

// toCluster has an order made for a registration, and patches the registration.
func (o *Hub) toCluster(ctx context.Context, reg *hubv1.ClusterRegistration,
	write func(*hubv1.ClusterRegistration, time.Time) (*rolloutview.Order, error),
) error {
	order, err := write(reg, o.Now())
	if err != nil {
		return err
	}
	if err := told("ClusterRegistration", reg, o.write(ctx, reg, order.Patch)); err != nil {
		return err
	}
	order.Print(terminal.Visible(o.Out))
	return nil
}
