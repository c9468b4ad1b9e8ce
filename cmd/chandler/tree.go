// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/chandler-hub/chandler/internal/course"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/live"
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

// hubFlags are where the hub is, and who it is.
type hubFlags struct {
	flags        *genericclioptions.ConfigFlags
	hubNamespace string
	reader       live.Reader
}

func (h *hubFlags) add(cmd *cobra.Command) {
	h.flags = genericclioptions.NewConfigFlags(true)
	// As in `chandler explain`: --cluster would be one of the kubeconfig.
	h.flags.ClusterName, h.flags.CacheDir = nil, nil
	f := cmd.Flags()
	h.flags.AddFlags(f)
}

// addIdentity adds the flags of ask.
func (h *hubFlags) addIdentity(cmd *cobra.Command) {
	f := cmd.Flags()
	h.reader.Hub.AddIdentityFlags(f, hubconfig.DefaultNamespace)
	f.StringVar(&h.hubNamespace, "hub-namespace", hubconfig.DefaultNamespace,
		"the hub's namespace, where the hub publishes its flags in a ConfigMap")
}

func (h *hubFlags) connect() error {
	config, err := h.flags.ToRESTConfig()
	if err != nil {
		return fmt.Errorf("find the hub: %w", err)
	}
	h.reader.Client, err = live.Connect(config)
	return err
}

// ask connects, and asks the hub who it is.
func (h *hubFlags) ask(cmd *cobra.Command) error {
	if err := h.connect(); err != nil {
		return err
	}
	return h.reader.Ask(cmd.Context(), h.hubNamespace, cmd.Flags())
}

func treeClusterCommand() *cobra.Command {
	h := &hubFlags{}
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
	h := &hubFlags{}
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
