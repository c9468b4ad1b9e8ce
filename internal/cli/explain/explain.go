// SPDX-License-Identifier: Apache-2.0

// Package explain is `chandler explain`.
package explain

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/chandler-hub/chandler/internal/cli/command"
	"github.com/chandler-hub/chandler/internal/cli/exit"
	"github.com/chandler-hub/chandler/internal/cli/factory"
	"github.com/chandler-hub/chandler/internal/cli/hub"
	"github.com/chandler-hub/chandler/internal/cli/terminal"
	"github.com/chandler-hub/chandler/internal/clusterreader"
	"github.com/chandler-hub/chandler/internal/explain"
	"github.com/chandler-hub/chandler/internal/live"
)

// Options are the flags of `chandler explain`.
type Options struct {
	hub.Connection
	terminal.Streams
	// Args are a cluster, and maybe one of its add-ons.
	Args   []string
	Tree   bool
	Output command.Format
}

// New returns the command. run is what it does; nil is what it usually does.
func New(from *factory.Factory, run func(context.Context, *Options) error) *cobra.Command {
	o := &Options{}
	cmd := &cobra.Command{
		Use:   "explain CLUSTER [ADDON]",
		Short: "Show which add-ons a cluster has, and why",
		Long: `Shows the add-ons of a cluster: what is delivered, what is not, and why. With ADDON it shows the state of
that add-on, and where each of its fields comes from: the set, an overlay, an override of the cluster, or a default. --tree
shows the sets, their add-ons and the Flux object of each. It only reads, and shows no secrets.

CLUSTER is NAME or NAMESPACE/NAME; without -n it is looked for in all namespaces.`,
		Example: `  chandler explain tenant1
  chandler explain tenants/tenant1 cert-manager
  chandler explain tenant1 --tree`,
		Args: func(_ *cobra.Command, args []string) error {
			if o.Tree && len(args) == 2 {
				return errors.New("explain: --tree is of a whole cluster: leave out the add-on, or --tree")
			}
			if len(args) < 1 || len(args) > 2 {
				return errors.New("explain: write a cluster, and optionally one of its add-ons: chandler explain CLUSTER [ADDON]")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Streams, o.Args = terminal.Of(cmd), args
			return command.Run(cmd.Context(), o, run, o.run)
		},
	}
	o.AddFlags(cmd, from)
	o.AddIdentity(cmd)
	cmd.Flags().BoolVar(&o.Tree, "tree", false, "show sets, add-ons and Flux objects as a tree")
	o.Output.AddFlag(cmd)
	command.Wants(cmd, func() error {
		if o.Tree && !o.Output.IsText() {
			return errors.New("explain: --tree is text: leave out -o, or --tree")
		}
		return nil
	})
	cmd.ValidArgsFunction = o.CompleteAddon
	exit.Means(cmd, "", "no such cluster or add-on")
	return cmd
}

func (o *Options) run(ctx context.Context) error {
	if err := o.Ask(ctx); err != nil {
		return err
	}
	if o.Tree {
		return o.showTree(ctx)
	}
	in, err := o.input(ctx)
	if err != nil {
		return err
	}
	if len(o.Args) == 1 {
		report := explain.Cluster(in)
		if !o.Output.IsText() {
			return o.Output.Write(o.Out, report)
		}
		return report.Print(o.Out)
	}
	report, err := explain.Addon(in, o.Args[1])
	if err != nil {
		return err
	}
	if !o.Output.IsText() {
		return o.Output.Write(o.Out, report)
	}
	return report.Print(o.Out)
}

// input reads a cluster. A user who may not read all namespaces gets one: that of -n, or of the kubeconfig's context.
func (o *Options) input(ctx context.Context) (*explain.Input, error) {
	name := live.Bare("ClusterRegistration", o.Args[0])
	own, err := hub.OwnNamespace(o.Flags)
	if err != nil {
		return nil, err
	}
	reg, err := o.Reader.Find(ctx, name, *o.Flags.Namespace)
	if apierrors.IsForbidden(err) && *o.Flags.Namespace == "" && !strings.Contains(name, "/") {
		if there, failed := o.Reader.Find(ctx, name, own); failed == nil {
			hub.SayNarrow(o.ErrOut, "ClusterRegistrations", own)
			reg, err = there, nil
		}
	}
	if err == nil {
		return clusterreader.Read(ctx, &o.Reader, reg, own, o.Now())
	}
	if !apierrors.IsForbidden(err) {
		return nil, err
	}
	in, failed := clusterreader.ReadOwn(ctx, &o.Reader, o.Client, own, name, o.Now())
	switch {
	case errors.Is(failed, live.ErrSeveral):
		return nil, failed
	case failed != nil || in == nil:
		return nil, err // that of the registrations names what is missing
	}
	terminal.Say(o.ErrOut, "cannot list ClusterRegistrations: showing what the AddonDeliveries in namespace %s say", own)
	return in, nil
}

// showTree shows what a cluster has as a tree. It reads what is delivered there, and nothing else.
func (o *Options) showTree(ctx context.Context) error {
	reg, err := o.Reader.Find(ctx, o.Args[0], *o.Flags.Namespace)
	if err != nil {
		return err
	}
	t, notes, err := clusterreader.Tree(ctx, &o.Reader, reg, o.Now())
	if err != nil {
		return err
	}
	for _, n := range notes {
		terminal.Say(o.ErrOut, "Note: %s", n)
	}
	return t.Tree().Print(o.Out)
}
