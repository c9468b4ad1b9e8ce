// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/live"
)

// hubOptions are the flags by which a command finds a live hub, and what reads from it.
type hubOptions struct {
	flags        *genericclioptions.ConfigFlags
	hubNamespace string
	reader       live.Reader
	client       client.WithWatch // the reader's, once it is connected
	all          bool
}

// kubectlFlags returns the flags by which kubectl finds a cluster. Its --cluster and --user are those of the kubeconfig, which --context
// chooses: people would take them for a cluster of the fleet, and for a person. The commands cache nothing.
func kubectlFlags() *genericclioptions.ConfigFlags {
	flags := genericclioptions.NewConfigFlags(true)
	flags.ClusterName, flags.AuthInfoName, flags.CacheDir = nil, nil, nil
	patience := requestTimeout
	flags.Timeout = &patience
	return flags
}

// requestTimeout is how long a command waits for an answer of an API server, unless somebody says otherwise. kubectl waits for ever, and
// the servers of a fleet hang now and then.
const requestTimeout = "30s"

// reach returns how the API server is reached that flags lead to, for as long as ctx goes on. All live commands go through it.
func reach(ctx context.Context, flags *genericclioptions.ConfigFlags) (*rest.Config, error) {
	config, err := flags.ToRESTConfig()
	if err != nil {
		return nil, &exit{uncertain, fmt.Errorf("find the hub: %w", err)}
	}
	if config, err = live.Reach(ctx, config); err != nil {
		return nil, &exit{uncertain, fmt.Errorf("find the hub: %w", err)}
	}
	return config, nil
}

// connectTo connects to the hub that flags lead to.
func connectTo(ctx context.Context, flags *genericclioptions.ConfigFlags) (client.WithWatch, error) {
	config, err := reach(ctx, flags)
	if err != nil {
		return nil, err
	}
	c, err := live.Connect(config)
	if err != nil {
		return nil, &exit{uncertain, err}
	}
	return c, nil
}

// add adds the flags by which the hub is found.
func (o *hubOptions) add(cmd *cobra.Command) {
	o.flags = kubectlFlags()
	addKubectl(cmd.Flags(), o.flags)
}

// addKubectl adds kubectl's flags to a command whose -n says where to look.
func addKubectl(f *pflag.FlagSet, flags *genericclioptions.ConfigFlags) {
	flags.AddFlags(f)
	f.Lookup("namespace").Usage = "look in this namespace (default: all)"
}

// addAll adds the flag for all namespaces, which is what goes without -n, for people who are used to it.
func (o *hubOptions) addAll(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&o.all, "all-namespaces", "A", false, "look in all namespaces (the default)")
}

// oneOrAll returns an error for one namespace and all at once.
func (o *hubOptions) oneOrAll(cmd *cobra.Command) error {
	if o.all && *o.flags.Namespace != "" {
		return &exit{uncertain, fmt.Errorf("%s: write -n for one namespace, or -A for all, and not both",
			strings.TrimPrefix(cmd.CommandPath(), "chandler "))}
	}
	return nil
}

// addIdentity adds the flags that say which objects are the hub's. ask asks the hub for what is not written.
func (o *hubOptions) addIdentity(cmd *cobra.Command) {
	o.reader.Hub.AddIdentityFlags(cmd.Flags(), hubconfig.DefaultNamespace)
	o.addNamespace(cmd)
}

// addShared adds the flags that decide what is rendered for a fleet. ask asks the hub for what is not written.
func (o *hubOptions) addShared(cmd *cobra.Command) {
	o.reader.Hub.AddFlags(cmd.Flags(), hubconfig.DefaultNamespace)
	o.addNamespace(cmd)
}

func (o *hubOptions) addNamespace(cmd *cobra.Command) {
	addHubNamespace(cmd.Flags(), &o.hubNamespace)
}

func addHubNamespace(f *pflag.FlagSet, to *string) {
	f.StringVar(to, "hub-namespace", hubconfig.DefaultNamespace, "namespace of the hub, with its flags in ConfigMap chandler-hub")
}

// connect connects to the hub, unless that is done.
func (o *hubOptions) connect(ctx context.Context) error {
	if o.reader.Client != nil {
		return nil
	}
	c, err := connectTo(ctx, o.flags)
	if err != nil {
		return err
	}
	o.reader.Client, o.client = c, c
	return nil
}

// ask connects, and asks the hub for the flags that are not written.
func (o *hubOptions) ask(cmd *cobra.Command) error {
	if err := o.connect(cmd.Context()); err != nil {
		return err
	}
	return o.reader.Ask(cmd.Context(), o.hubNamespace, cmd.Flags())
}
