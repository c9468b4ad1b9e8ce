// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/chandler-hub/chandler/internal/explain"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/live"
)

// explainOptions are the flags of `chandler explain`.
type explainOptions struct {
	genericiooptions.IOStreams
	flags        *genericclioptions.ConfigFlags
	hubNamespace string
	reader       live.Reader
}

func explainCommand() *cobra.Command {
	o := &explainOptions{flags: genericclioptions.NewConfigFlags(true)}
	// kubectl's --cluster names a cluster of the kubeconfig; people would take it for the cluster to explain. The
	// command caches nothing.
	o.flags.ClusterName, o.flags.CacheDir = nil, nil
	cmd := &cobra.Command{
		Use:   "explain CLUSTER [ADDON]",
		Short: "Show which add-ons a cluster has, which it does not have, and why",
		Long: `Reads from a live hub how the add-ons of a cluster stand: those that are delivered, those that are not, and why. With an ADDON
it says where that one stands, and who set each of its fields: the set, an overlay, the cluster's override, or a default.
It only reads, and shows nothing that is secret. CLUSTER is a ClusterRegistration, as NAME or NAMESPACE/NAME; without -n it is
looked for in all namespaces.`,
		Example: `  chandler explain tenant1
  chandler explain tenants/tenant1 cert-manager`,
		Args: func(_ *cobra.Command, args []string) error {
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
	f := cmd.Flags()
	o.flags.AddFlags(f)
	cmd.ValidArgsFunction = completeNames(o.flags, "ClusterRegistration", false)
	o.reader.Hub.AddIdentityFlags(f, hubconfig.DefaultNamespace)
	f.StringVar(&o.hubNamespace, "hub-namespace", hubconfig.DefaultNamespace,
		"the hub's namespace, where the hub publishes its flags in a ConfigMap")
	return cmd
}

func (o *explainOptions) run(cmd *cobra.Command, args []string) error {
	config, err := o.flags.ToRESTConfig()
	if err != nil {
		return fmt.Errorf("find the hub: %w", err)
	}
	if o.reader.Client, err = live.Connect(config); err != nil {
		return err
	}
	ctx := cmd.Context()
	if err := o.reader.Ask(ctx, o.hubNamespace, cmd.Flags()); err != nil {
		return err
	}
	reg, err := o.reader.Find(ctx, args[0], *o.flags.Namespace)
	if err != nil {
		return err
	}
	in, err := o.reader.Cluster(ctx, reg, time.Now())
	if err != nil {
		return err
	}
	if len(args) == 1 {
		return explain.Cluster(in).Print(o.Out)
	}
	report, err := explain.Addon(in, args[1])
	if err != nil {
		return err
	}
	return report.Print(o.Out)
}
