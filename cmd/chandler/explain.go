// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/internal/explain"
	"github.com/chandler-hub/chandler/internal/explain/live"
	"github.com/chandler-hub/chandler/internal/hubconfig"
)

// explainOptions are the flags of `chandler explain`.
type explainOptions struct {
	genericiooptions.IOStreams
	flags        *genericclioptions.ConfigFlags
	hub          hubconfig.Config
	hubNamespace string
	reader       live.Reader
}

func explainCommand() *cobra.Command {
	o := &explainOptions{flags: genericclioptions.NewConfigFlags(true)}
	// --cluster names a cluster of the kubeconfig, and would be taken for the cluster to explain. Nothing is cached.
	o.flags.ClusterName, o.flags.CacheDir = nil, nil
	cmd := &cobra.Command{
		Use:   "explain CLUSTER [ADDON]",
		Short: "Say of a cluster which add-ons are there, which are not, and why",
		Long: `Reads from a live hub how the add-ons of a cluster stand: those that are delivered, those that are not, and why. With an ADDON
it says where that one stands, and who set each of its fields: the set, an overlay, the cluster's override, or a default.
It only reads, and shows nothing that is secret. CLUSTER is a ClusterRegistration, as NAME or NAMESPACE/NAME; without -n it is
looked for in all namespaces.`,
		Example: `  chandler explain tenant1
  chandler explain tenants/tenant1 cert-manager`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return errors.New("explain: write a cluster, and perhaps one of its add-ons: chandler explain CLUSTER [ADDON]")
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
	o.hub.AddIdentityFlags(f, hubconfig.DefaultNamespace)
	f.StringVar(&o.hubNamespace, "hub-namespace", hubconfig.DefaultNamespace, "where the hub is installed; what it was started with is asked there")
	return cmd
}

func (o *explainOptions) run(cmd *cobra.Command, args []string) error {
	if err := o.connect(); err != nil {
		return err
	}
	ctx := cmd.Context()
	if err := o.ask(ctx, cmd.Flags()); err != nil {
		return err
	}
	reg, err := o.reader.Find(ctx, args[0], *o.flags.Namespace)
	if err != nil {
		return err
	}
	in, err := o.reader.Read(ctx, reg, time.Now())
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

// connect makes a client for the hub that the flags and the kubeconfig name. It has no cache: everything is read once.
func (o *explainOptions) connect() error {
	config, err := o.flags.ToRESTConfig()
	if err != nil {
		return fmt.Errorf("find the hub: %w", err)
	}
	config.QPS, config.Burst = 50, 100 // a few dozen reads, and then it is over
	scheme, err := live.Scheme()
	if err != nil {
		return err
	}
	if o.reader.Client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("reach the hub at %s: %w", config.Host, err)
	}
	return nil
}

// ask has the hub say what it was started with. A hub that says nothing, and a caller who may not read it, get the defaults, or what is
// written in flags.
func (o *explainOptions) ask(ctx context.Context, flags *pflag.FlagSet) error {
	published := &corev1.ConfigMap{}
	err := o.reader.Client.Get(ctx, client.ObjectKey{Namespace: o.hubNamespace, Name: hubconfig.Published}, published)
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		return fmt.Errorf("read ConfigMap %s/%s: %w", o.hubNamespace, hubconfig.Published, err)
	}
	if err := hubconfig.AdoptShared(flags, published.Data); err != nil {
		return fmt.Errorf("ConfigMap %s/%s: %w", o.hubNamespace, hubconfig.Published, err)
	}
	if err := o.hub.CompleteShared(o.hubNamespace); err != nil {
		return err
	}
	o.reader.HubID, o.reader.PlatformNamespaces, o.reader.Chart = o.hub.HubID, o.hub.PlatformNamespaces, o.hub.Chart
	return nil
}
