// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/course"
	"github.com/chandler-hub/chandler/internal/tree"
)

func treeCommand() *cobra.Command {
	h := &hubOptions{}
	cmd := &cobra.Command{
		Use:   "tree [cluster|set] NAME",
		Short: "Show what hangs on a cluster or a set",
		Long: `Shows what hangs on what: on a cluster its sets, their add-ons and the Flux object of each, whether that is Ready, and who has
suspended it; on a set its clusters, how many of its add-ons are Ready there, and which revision each has. It reads what belongs to that
cluster or set alone. chandler explain says why an add-on is not there.

` + subjectNames,
		Example: `  chandler tree tenant1
  chandler tree cluster tenants/tenant1
  chandler tree set cert-manager -n flux-system`,
		Args: subjectArgs("tree"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := h.subject(cmd.Context(), "tree", args)
			switch {
			case err != nil:
				return err
			case s.cluster != nil:
				return h.treeOfCluster(cmd, s.cluster)
			}
			in := &course.Input{Set: s.set}
			if err := h.reader.Deliveries(cmd.Context(), in); err != nil {
				return err
			}
			return tree.Set(s.set, in.Own()).Print(cmd.OutOrStdout())
		},
	}
	h.add(cmd)
	h.addIdentity(cmd)
	cmd.ValidArgsFunction = h.completeSubject
	return cmd
}

func (o *hubOptions) treeOfCluster(cmd *cobra.Command, reg *hubv1.ClusterRegistration) error {
	if err := o.ask(cmd); err != nil {
		return err
	}
	t, notes, err := o.reader.Tree(cmd.Context(), reg, now())
	if err != nil {
		return err
	}
	for _, n := range notes {
		sayLine(cmd.ErrOrStderr(), "Note: %s", n)
	}
	return t.Tree().Print(cmd.OutOrStdout())
}
