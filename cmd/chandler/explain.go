// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/chandler-hub/chandler/internal/explain"
	"github.com/chandler-hub/chandler/internal/live"
)

// explainOptions are the flags of `chandler explain`.
type explainOptions struct {
	genericiooptions.IOStreams
	hubOptions
	tree   bool
	output output
}

func explainCommand() *cobra.Command {
	o := &explainOptions{}
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
			if o.tree && len(args) == 2 {
				return errors.New("explain: --tree is of a whole cluster: leave out the add-on, or --tree")
			}
			if len(args) < 1 || len(args) > 2 {
				return errors.New("explain: write a cluster, and optionally one of its add-ons: chandler explain CLUSTER [ADDON]")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.IOStreams = genericiooptions.IOStreams{In: cmd.InOrStdin(), Out: cmd.OutOrStdout(), ErrOut: cmd.ErrOrStderr()}
			return o.run(cmd, args)
		},
	}
	o.add(cmd)
	o.addIdentity(cmd)
	cmd.Flags().BoolVar(&o.tree, "tree", false, "show sets, add-ons and Flux objects as a tree")
	o.output.addOutput(cmd)
	wants(cmd, func() error {
		if o.tree && !o.output.isText() {
			return errors.New("explain: --tree is text: leave out -o, or --tree")
		}
		return nil
	})
	cmd.ValidArgsFunction = o.completeAddon
	return cmd
}

func (o *explainOptions) run(cmd *cobra.Command, args []string) error {
	if err := o.ask(cmd); err != nil {
		return err
	}
	if o.tree {
		return o.showTree(cmd.Context(), args[0])
	}
	in, err := o.input(cmd.Context(), args[0])
	if err != nil {
		return err
	}
	if len(args) == 1 {
		report := explain.Cluster(in)
		if !o.output.isText() {
			return o.output.write(o.Out, report)
		}
		return report.Print(o.Out)
	}
	report, err := explain.Addon(in, args[1])
	if err != nil {
		return err
	}
	if !o.output.isText() {
		return o.output.write(o.Out, report)
	}
	return report.Print(o.Out)
}

// input reads a cluster. Who may not read all namespaces gets what his own has: that of -n, or of the kubeconfig's context.
func (o *explainOptions) input(ctx context.Context, name string) (*explain.Input, error) {
	own, err := ownNamespace(o.flags)
	if err != nil {
		return nil, err
	}
	o.reader.Own = own
	reg, err := o.reader.Find(ctx, name, *o.flags.Namespace)
	if apierrors.IsForbidden(err) && *o.flags.Namespace == "" && !strings.Contains(name, "/") {
		if there, failed := o.reader.Find(ctx, name, own); failed == nil {
			sayNarrow(o.ErrOut, "ClusterRegistrations", own)
			reg, err = there, nil
		}
	}
	if err == nil {
		return o.reader.Cluster(ctx, reg, now())
	}
	if !apierrors.IsForbidden(err) {
		return nil, err
	}
	in, failed := o.reader.OwnCluster(ctx, o.client, own, name, now())
	switch {
	case errors.Is(failed, live.ErrSeveral):
		return nil, failed
	case failed != nil || in == nil:
		return nil, err // that of the registrations names what is missing
	}
	sayLine(o.ErrOut, "cannot list ClusterRegistrations: showing what the AddonDeliveries in namespace %s say", own)
	return in, nil
}

// showTree shows what a cluster has as a tree. It reads what is delivered there, and nothing else.
func (o *explainOptions) showTree(ctx context.Context, name string) error {
	reg, err := o.reader.Find(ctx, name, *o.flags.Namespace)
	if err != nil {
		return err
	}
	t, notes, err := o.reader.Tree(ctx, reg, now())
	if err != nil {
		return err
	}
	for _, n := range notes {
		sayLine(o.ErrOut, "Note: %s", n)
	}
	return t.Tree().Print(o.Out)
}
