// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/chronicle"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/live"
	"github.com/chandler-hub/chandler/internal/page"
)

// eventsOptions are the flags of `chandler events`.
type eventsOptions struct {
	hubOptions
	watch bool
	list  *page.List
	cmd   *cobra.Command
	// shown are the resource versions of the events that were printed, while it watches.
	shown map[types.UID]string
}

func eventsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "events [[cluster|set] NAME]",
		Short: "Show what has happened to a cluster or a set, the newest last",
		Long: `Shows the Kubernetes events of a cluster: of its registration and its origin, and of what is delivered there, with Flux's own.
Or those of a set and its deliveries. Without a NAME it shows what the hub tells of all. Events are kept for an hour, unless your
API server is told otherwise.

` + subjectNames,
		Example: `  chandler events edge1
  chandler events set base -n flux-system -w`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return subjectArgs("events")(cmd, args)
		},
	}
	o := &eventsOptions{cmd: cmd, shown: map[types.UID]string{}}
	o.add(cmd)
	cmd.ValidArgsFunction = o.completeSubject
	o.addAll(cmd)
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "go on, and print what happens")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o.list = &page.List{Columns: chronicle.Columns, Colour: coloured(cmd.OutOrStdout())}
		if err := o.oneOrAll(cmd); err != nil {
			return err
		}
		scope, err := o.scope(cmd.Context(), args)
		if err != nil {
			return err
		}
		return o.run(cmd.Context(), scope)
	}
	return cmd
}

// scope returns which events are wanted.
func (o *eventsOptions) scope(ctx context.Context, args []string) (*chronicle.Scope, error) {
	if len(args) == 0 {
		scope := chronicle.Hub()
		if *o.flags.Namespace != "" {
			scope.Namespaces = []string{*o.flags.Namespace}
		}
		return scope, o.connect(ctx)
	}
	s, err := o.subject(ctx, "events", args)
	if err != nil {
		return nil, err
	}
	if s.cluster != nil {
		deliveries, err := o.deliveries(ctx, s.cluster)
		return chronicle.Cluster(s.cluster, deliveries), err
	}
	scope := chronicle.Set(s.set)
	q := &live.Query{Client: o.client, Kinds: "AddonDeliveries", Namespace: s.set.Namespace,
		List:    func() client.ObjectList { return &hubv1.AddonDeliveryList{} },
		Options: []client.ListOption{client.MatchingLabels{hubv1.AddonSetLabel: identity.LabelValue(s.set.Name)}}}
	_, err = q.Pages(ctx, func(objects []client.Object) error {
		for _, object := range objects {
			if d, ok := object.(*hubv1.AddonDelivery); ok && d.Spec.AddonSetRef.Name == s.set.Name {
				scope.Delivery(d)
			}
		}
		return nil
	})
	return scope, err
}

func (o *eventsOptions) run(ctx context.Context, scope *chronicle.Scope) error {
	// A watch is of one namespace, or of all.
	namespaces := scope.Namespaces
	if len(namespaces) == 0 || o.watch && len(namespaces) > 1 {
		namespaces = []string{""}
	}
	for {
		found, version, err := o.read(ctx, scope, namespaces)
		if err == nil {
			err = o.print(found)
		}
		if err == nil && o.watch {
			err = o.query(namespaces[0]).Follow(ctx, version, func(object client.Object, deleted bool) error {
				if e, ok := object.(*corev1.Event); ok && !deleted && scope.Has(e) {
					return o.print([]corev1.Event{*e})
				}
				return nil
			})
		}
		switch {
		case o.watch && ctx.Err() != nil:
			return nil // somebody has seen enough
		case err != nil:
			return err
		case !o.watch && len(found) == 0:
			fmt.Fprintln(o.cmd.ErrOrStderr(), "No events found.")
			return nil
		case !o.watch:
			return nil
		}
	}
}

func (o *eventsOptions) query(namespace string) *live.Query {
	return &live.Query{Client: o.client, Kinds: "Events", Namespace: namespace, List: func() client.ObjectList { return &corev1.EventList{} }}
}

// read reads the events that are wanted, in the order in which they came. Of the others it holds no more than a page.
func (o *eventsOptions) read(ctx context.Context, scope *chronicle.Scope, namespaces []string) (found []corev1.Event, version string,
	err error) {
	for _, namespace := range namespaces {
		version, err = o.query(namespace).Pages(ctx, func(objects []client.Object) error {
			for _, object := range objects {
				if e, ok := object.(*corev1.Event); ok && scope.Has(e) {
					found = append(found, *e)
				}
			}
			return nil
		})
		if err != nil {
			return nil, "", err
		}
	}
	chronicle.Sort(found)
	return found, version, nil
}

// print writes events that have not been written yet as they are.
func (o *eventsOptions) print(events []corev1.Event) error {
	events = slices.DeleteFunc(events, func(e corev1.Event) bool { return o.watch && o.shown[e.UID] == e.ResourceVersion })
	rows := make([]page.Row, len(events))
	for i := range events {
		rows[i] = chronicle.Row(&events[i], time.Now())
		if o.watch {
			o.shown[events[i].UID] = events[i].ResourceVersion
		}
	}
	return o.list.Write(o.cmd.OutOrStdout(), rows)
}
