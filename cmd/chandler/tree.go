// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/chandler-hub/chandler/internal/course"
	"github.com/chandler-hub/chandler/internal/tree"
)

func treeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tree",
		Short: "Show what hangs on a cluster or a set",
		Long: `Shows what hangs on what: on a cluster its sets, their add-ons and the Flux objects, each with its state; on a set its clusters.
A name is NAME or NAMESPACE/NAME; without -n it is looked for in all namespaces.`,
		Example: `  chandler tree cluster tenant1
  chandler tree set cert-manager -n flux-system`,
	}
	cmd.RunE = oneOf(cmd)
	cmd.AddCommand(treeClusterCommand(), treeSetCommand())
	return cmd
}

func treeClusterCommand() *cobra.Command {
	h := &hubOptions{}
	cmd := &cobra.Command{
		Use:   "cluster NAME",
		Short: "Show the sets of a cluster, their add-ons and the Flux objects",
		Long: `Shows the sets that deliver to a cluster, their add-ons, and the Flux object of each: whether it is Ready, and who has suspended
it. It reads what belongs to that cluster alone. chandler explain says why an add-on is not there.`,
		Example: `  chandler tree cluster tenant1
  chandler tree cluster tenants/tenant1`,
		Args: oneName("cluster"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := h.ask(cmd); err != nil {
				return err
			}
			reg, err := h.reader.Find(cmd.Context(), args[0], *h.flags.Namespace)
			if err != nil {
				return err
			}
			t, notes, err := h.reader.Tree(cmd.Context(), reg, now())
			if err != nil {
				return err
			}
			for _, n := range notes {
				sayLine(cmd.ErrOrStderr(), "Note: %s", n)
			}
			return t.Tree().Print(cmd.OutOrStdout())
		},
	}
	h.add(cmd)
	h.addIdentity(cmd)
	cmd.ValidArgsFunction = completeNames(h.flags, "ClusterRegistration", false)
	return cmd
}

func treeSetCommand() *cobra.Command {
	h := &hubOptions{}
	cmd := &cobra.Command{
		Use:   "set NAME",
		Short: "Show the clusters of a set",
		Long:  "Shows each cluster that a set delivers to: how many of its add-ons are Ready there, and which revision the cluster has.",
		Example: `  chandler tree set cert-manager
  chandler tree set flux-system/cert-manager`,
		Args: oneName("set"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := h.connect(); err != nil {
				return err
			}
			set, err := h.reader.FindSet(cmd.Context(), args[0], *h.flags.Namespace)
			if err != nil {
				return err
			}
			in := &course.Input{Set: set}
			if err := h.reader.Deliveries(cmd.Context(), in); err != nil {
				return err
			}
			return tree.Set(set, in.Own()).Print(cmd.OutOrStdout())
		},
	}
	h.add(cmd)
	cmd.ValidArgsFunction = completeNames(h.flags, "AddonSet", false)
	return cmd
}
