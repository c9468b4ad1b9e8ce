// SPDX-License-Identifier: Apache-2.0

// Package events is `chandler events`.
package events

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/cli/command"
	"github.com/chandler-hub/chandler/internal/cli/exit"
	"github.com/chandler-hub/chandler/internal/cli/factory"
	"github.com/chandler-hub/chandler/internal/cli/hub"
	"github.com/chandler-hub/chandler/internal/cli/terminal"
	"github.com/chandler-hub/chandler/internal/eventview"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/live"
	"github.com/chandler-hub/chandler/internal/page"
)

// Options are the flags of `chandler events`.
type Options struct {
	hub.Connection
	terminal.Streams
	// Args are nothing, a cluster, a set, or a cluster and one of its add-ons.
	Args   []string
	Follow bool
	Tail   int
	Output command.Format
	list   *page.List
	// shown are the resource versions of the events that were printed, while it follows.
	shown map[types.UID]string
}

// New returns the command. run is what it does; nil is what it usually does.
func New(from *factory.Factory, run func(context.Context, *Options) error) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "events [[cluster|set] NAME | CLUSTER ADDON]",
		Short: "Show what happened to a cluster, a set or an add-on",
		Long: `Shows the events of a cluster with its origin, its deliveries and their Flux objects, or of a set and its
deliveries; without a NAME all events of the hub. The newest comes last. Kubernetes keeps events for an hour by default.
Deliveries that are gone count for a cluster, unless set and cluster have so long names that the delivery's was cut.

For an ADDON of a CLUSTER it shows more: also when conditions changed, and which Helm releases were made. It reads the
management cluster only; logs of Pods are on the workload cluster.

NAME is NAME or NAMESPACE/NAME. If there is both a cluster and a set, write cluster NAME or set NAME.`,
		Example: `  chandler events edge1
  chandler events edge1 cert-manager --follow
  chandler events set base -n flux-system`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 3 || len(args) == 3 && args[0] == hub.Subjects[0] {
				return nil
			}
			return errors.New("events: write a cluster, a set, or a cluster and one of its add-ons: chandler events CLUSTER ADDON")
		},
	}
	o := &Options{shown: map[types.UID]string{}}
	o.AddFlags(cmd, from)
	cmd.ValidArgsFunction = o.completeStory
	o.AddAll(cmd)
	f := cmd.Flags()
	f.BoolVar(&o.Follow, "follow", false, "go on, and print new events")
	f.IntVar(&o.Tail, "tail", 200, "how many of the newest lines to print; 0 is all")
	o.Output.AddFlag(cmd)
	command.Wants(cmd, func() error {
		if o.Follow && !o.Output.IsText() {
			return errors.New("events: --follow prints lines: leave out -o, or --follow")
		}
		return nil
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o.Streams, o.Args = terminal.Of(cmd), args
		return command.Run(cmd.Context(), o, run, o.run)
	}
	exit.Means(cmd, "", "no such cluster, set or add-on")
	return cmd
}

func (o *Options) run(ctx context.Context) error {
	if cluster, addon, both := ofAddon(o.Args); both {
		return o.storyOf(ctx, cluster, addon)
	}
	o.list = &page.List{Columns: eventview.Columns, Colour: terminal.Coloured(o.Out)}
	scope, err := o.scope(ctx, o.Args)
	if err != nil {
		return err
	}
	return o.show(ctx, scope)
}

// ofAddon returns the cluster and the add-on of arguments that name both.
func ofAddon(args []string) (cluster, addon string, both bool) {
	if len(args) < 2 || len(args) == 2 && slices.Contains(hub.Subjects, args[0]) {
		return "", "", false
	}
	return args[len(args)-2], args[len(args)-1], true
}

// storyOf shows the events of one add-on on one cluster.
func (o *Options) storyOf(ctx context.Context, cluster, addon string) error {
	s := &teller{Options: o, shown: map[string]bool{}, said: map[string]bool{}}
	s.list = &page.List{Columns: eventview.StoryColumns, Colour: terminal.Coloured(o.Out)}
	return s.run(ctx, cluster, addon)
}

// completeStory completes a cluster or a set, and then the add-ons of a cluster.
func (o *Options) completeStory(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	switch {
	case len(args) == 2 && args[0] == hub.Subjects[0]:
		return o.CompleteAddon(cmd, args[1:], begun)
	case len(args) == 1 && !slices.Contains(hub.Subjects, args[0]):
		return o.CompleteAddon(cmd, args, begun)
	}
	return o.CompleteSubject(cmd, args, begun)
}

// scope returns which events are wanted.
func (o *Options) scope(ctx context.Context, args []string) (*eventview.Scope, error) {
	if len(args) == 0 {
		scope := eventview.Hub()
		if *o.Flags.Namespace != "" {
			scope.Namespaces = []string{*o.Flags.Namespace}
		}
		return scope, o.Connect(ctx)
	}
	s, err := o.Subject(ctx, "events", args)
	if err != nil {
		return nil, err
	}
	if s.Cluster != nil {
		deliveries, err := o.Deliveries(ctx, s.Cluster)
		return eventview.Cluster(s.Cluster, deliveries), err
	}
	scope := eventview.Set(s.Set)
	q := &live.Query{Client: o.Client, Kinds: "AddonDeliveries", Namespace: s.Set.Namespace,
		List:    func() client.ObjectList { return &hubv1.AddonDeliveryList{} },
		Options: []client.ListOption{client.MatchingLabels{hubv1.AddonSetLabel: identity.LabelValue(s.Set.Name)}}}
	_, err = q.Pages(ctx, func(objects []client.Object) error {
		for _, object := range objects {
			if d, ok := object.(*hubv1.AddonDelivery); ok && d.Spec.AddonSetRef.Name == s.Set.Name {
				scope.Delivery(d)
			}
		}
		return nil
	})
	return scope, err
}

func (o *Options) show(ctx context.Context, scope *eventview.Scope) error {
	// A watch is of one namespace, or of all.
	namespaces := scope.Namespaces
	if len(namespaces) == 0 || scope.Cluster != nil || o.Follow && len(namespaces) > 1 {
		namespaces = []string{""}
	}
	for {
		found, version, read, err := o.readAllowed(ctx, scope, namespaces)
		namespaces = read
		if n := len(found) - o.Tail; err == nil && o.Tail > 0 && n > 0 {
			terminal.Say(o.ErrOut, "%d older events are left out: --tail 0 prints all", n)
			found = found[n:]
		}
		if err == nil {
			err = o.print(found)
		}
		if err == nil && o.Follow {
			err = o.query(namespaces[0]).Follow(ctx, version, func(object client.Object, deleted bool) error {
				if e, ok := object.(*corev1.Event); ok && !deleted && scope.Has(e) {
					return o.print([]corev1.Event{*e})
				}
				return nil
			})
		}
		switch {
		case o.Follow && ctx.Err() != nil:
			return nil // the user has seen enough
		case err != nil:
			return err
		case !o.Output.IsText():
			return nil
		case !o.Follow && len(found) == 0:
			fmt.Fprintln(o.ErrOut, "No events found.")
			return nil
		case !o.Follow:
			return nil
		}
	}
}

// readAllowed reads the events that are wanted, of all namespaces or, if the user may not read all, of those of the scope. It returns
// which namespaces it has read.
func (o *Options) readAllowed(ctx context.Context, scope *eventview.Scope, namespaces []string) (found []corev1.Event, version string,
	read []string, err error) {
	found, version, err = o.read(ctx, scope, namespaces)
	own := scope.Namespaces
	if !apierrors.IsForbidden(err) || namespaces[0] != "" || len(own) == 0 || o.Follow && len(own) > 1 {
		return found, version, namespaces, err
	}
	found, version, err = o.read(ctx, scope, own)
	return found, version, own, err
}

func (o *Options) query(namespace string) *live.Query {
	return &live.Query{Client: o.Client, Kinds: "Events", Namespace: namespace, List: func() client.ObjectList { return &corev1.EventList{} }}
}

// read reads the events that are wanted, in the order in which they came. Of the others it holds no more than a page.
func (o *Options) read(ctx context.Context, scope *eventview.Scope, namespaces []string) (found []corev1.Event, version string,
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
	eventview.Sort(found)
	return found, version, nil
}

// print writes events that have not been written yet as they are.
func (o *Options) print(events []corev1.Event) error {
	if !o.Output.IsText() {
		d := eventview.Document{Items: []eventview.Happened{}}
		for i := range events {
			d.Items = append(d.Items, eventview.Of(&events[i]))
		}
		return o.Output.Write(o.Out, d)
	}
	events = slices.DeleteFunc(events, func(e corev1.Event) bool { return o.Follow && o.shown[e.UID] == e.ResourceVersion })
	rows := make([]page.Row, len(events))
	for i := range events {
		rows[i] = eventview.Row(&events[i], o.Now())
		if o.Follow {
			o.shown[events[i].UID] = events[i].ResourceVersion
		}
	}
	return o.list.Write(o.Out, rows)
}
