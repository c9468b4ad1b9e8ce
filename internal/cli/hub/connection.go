// SPDX-License-Identifier: Apache-2.0

// Package hub is the live hub that a command asks: the flags by which it is found, what is read from it, and its names for completion.
package hub

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/internal/cli/command"
	"github.com/chandler-hub/chandler/internal/cli/exit"
	"github.com/chandler-hub/chandler/internal/cli/factory"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/live"
)

// Connection is the flags by which a command finds a live hub, and what reads from it.
type Connection struct {
	*factory.Factory
	// Flags are kubectl's. A command whose -n is something else has no namespace in them.
	Flags *genericclioptions.ConfigFlags
	// HubNamespace is where the hub publishes its flags.
	HubNamespace string
	Reader       live.Reader
	Client       client.WithWatch // the reader's, once it is connected
	// Written are the flags of the command: the hub is not asked for those that the user wrote.
	Written *pflag.FlagSet
	all     bool
}

// AddFlags adds the flags by which the hub is found.
func (c *Connection) AddFlags(cmd *cobra.Command, f *factory.Factory) {
	c.Factory, c.Flags, c.Written = f, factory.KubectlFlags(), cmd.Flags()
	AddKubectl(cmd.Flags(), c.Flags)
}

// AddBare adds the flags by which the hub is found to a command that has no -n, or one that is not kubectl's.
func (c *Connection) AddBare(cmd *cobra.Command, f *factory.Factory) {
	c.Factory, c.Flags, c.Written = f, factory.KubectlFlags(), cmd.Flags()
	c.Flags.Namespace = nil
	c.Flags.AddFlags(cmd.Flags())
}

// AddKubectl adds kubectl's flags to a command whose -n says where to look.
func AddKubectl(f *pflag.FlagSet, flags *genericclioptions.ConfigFlags) {
	flags.AddFlags(f)
	f.Lookup("namespace").Usage = "look in this namespace (default: all)"
}

// AddAll adds the flag for all namespaces, which is what goes without -n, for people who are used to it.
func (c *Connection) AddAll(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&c.all, "all-namespaces", "A", false, "look in all namespaces (the default)")
	command.Wants(cmd, func() error {
		if c.all && *c.Flags.Namespace != "" {
			return exit.Wrong(fmt.Errorf("%s: %w", command.Name(cmd), errOneOrAll))
		}
		return nil
	})
}

var errOneOrAll = errors.New("write -n for one namespace, or -A for all, and not both")

// AddIdentity adds the flags that say which objects are the hub's. Ask asks the hub for what is not written.
func (c *Connection) AddIdentity(cmd *cobra.Command) {
	c.Reader.Hub.AddIdentityFlags(cmd.Flags(), hubconfig.DefaultNamespace)
	AddNamespace(cmd.Flags(), &c.HubNamespace)
}

// AddShared adds the flags that decide what is rendered for a fleet. Ask asks the hub for what is not written.
func (c *Connection) AddShared(cmd *cobra.Command) {
	c.Reader.Hub.AddFlags(cmd.Flags(), hubconfig.DefaultNamespace)
	AddNamespace(cmd.Flags(), &c.HubNamespace)
}

// AddNamespace adds the flag for the namespace of the hub.
func AddNamespace(f *pflag.FlagSet, to *string) {
	f.StringVar(to, "hub-namespace", hubconfig.DefaultNamespace, "namespace of the hub, with its flags in ConfigMap chandler-hub")
}

// Connect connects to the hub, unless that is done.
func (c *Connection) Connect(ctx context.Context) error {
	if c.Reader.Client != nil {
		return nil
	}
	connected, _, err := c.Factory.Connect(ctx, c.Flags)
	if err != nil {
		return err
	}
	c.Reader.Client, c.Client = connected, connected
	return nil
}

// Ask connects, and asks the hub for the flags that are not written.
func (c *Connection) Ask(ctx context.Context) error {
	if err := c.Connect(ctx); err != nil {
		return err
	}
	return c.Reader.Ask(ctx, c.HubNamespace, c.Written)
}
