// SPDX-License-Identifier: Apache-2.0

// Package pair is the two clusters that register and unregister are about: the hub, and a workload cluster.
package pair

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/chandler-hub/chandler/internal/cli/command"
	"github.com/chandler-hub/chandler/internal/cli/exit"
	"github.com/chandler-hub/chandler/internal/cli/factory"
	"github.com/chandler-hub/chandler/internal/cli/hub"
	"github.com/chandler-hub/chandler/internal/cli/terminal"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/live"
	"github.com/chandler-hub/chandler/internal/register"
)

// Pair is the flags that `chandler register` and `chandler unregister` have in common.
type Pair struct {
	hub.Connection
	terminal.Streams
	// Cluster is where the API server of the workload cluster is. kubectl's own flags mean the hub, as everywhere.
	Cluster *genericclioptions.ConfigFlags
	Yes     bool
	Timeout time.Duration
}

// AddFlags adds the flags. timeout is how long the command usually waits.
func (o *Pair) AddFlags(cmd *cobra.Command, from *factory.Factory, timeout time.Duration) {
	o.Cluster = genericclioptions.NewConfigFlags(false)
	o.Cluster.Namespace = nil
	patience := factory.RequestTimeout
	o.Cluster.Timeout = &patience
	f := cmd.Flags()
	f.StringVar(o.Cluster.KubeConfig, "cluster-kubeconfig", "", "kubeconfig of the workload cluster, for an administrator; it is not kept")
	f.StringVar(o.Cluster.Context, "cluster-context", "", "context of the workload cluster")
	o.Connection.AddFlags(cmd, from)
	f.Lookup("namespace").Usage = "namespace of the registration (default: that of the context)"
	f.BoolVarP(&o.Yes, "yes", "y", false, "skip the confirmation prompt")
	command.AddTimeout(f, &o.Timeout, timeout, "how long to wait")
	o.AddShared(cmd)
	before := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		// A cluster that is hostile decides over parts of what is printed, and must not decide over the terminal.
		o.Streams = terminal.Streams{In: cmd.InOrStdin(), Out: terminal.Visible(cmd.OutOrStdout()), ErrOut: terminal.Visible(cmd.ErrOrStderr())}
		if err := exit.Plainly(cmd.Context(), before(cmd, args)); err != nil {
			code := &exit.Error{Code: exit.Failed, Err: err} // what was begun has failed, also if it is for a cluster that does not answer
			_ = errors.As(err, &code)
			return exit.With(code.Code, errors.New(excerpt.VisibleLines(err.Error())))
		}
		return nil
	}
}

// Connect finds the hub, and the cluster if a flag says where it is.
func (o *Pair) Connect(ctx context.Context) (*register.Registrar, error) {
	connected, config, err := o.Factory.Connect(ctx, o.Flags)
	if err != nil {
		return nil, err
	}
	o.Reader.Client = connected
	if err := o.Ask(ctx); err != nil {
		return nil, exit.Decide(err)
	}
	r := &register.Registrar{Hub: o.Reader, HubConfig: config, HubNamespace: o.HubNamespace, Out: o.Out, Wait: o.Timeout}
	if *o.Cluster.KubeConfig != "" || *o.Cluster.Context != "" {
		if r.Cluster, err = o.Cluster.ToRESTConfig(); err != nil {
			return nil, exit.Wrong(fmt.Errorf("find the cluster: %w", err))
		}
	}
	return r, nil
}

// Name returns the registration that a command is about: NAME, NAMESPACE/NAME, or kubectl's kind/name.
func (o *Pair) Name(arg string) (types.NamespacedName, error) {
	namespace, name, err := o.PlaceOf("cluster", live.Bare("ClusterRegistration", arg))
	if err != nil {
		return types.NamespacedName{}, err
	}
	if namespace == "" {
		if namespace, _, err = o.Flags.ToRawKubeConfigLoader().Namespace(); err != nil {
			return types.NamespacedName{}, fmt.Errorf("find the hub: %w", err)
		}
	}
	if name == "" || strings.Contains(name, "/") {
		return types.NamespacedName{}, fmt.Errorf("%q is not a cluster: write NAME or NAMESPACE/NAME", arg)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}
