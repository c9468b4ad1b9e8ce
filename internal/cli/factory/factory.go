// SPDX-License-Identifier: Apache-2.0

// Package factory makes what commands need of their surroundings: the time, and the way to the management cluster.
package factory

import (
	"context"
	"fmt"
	"time"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/internal/cli/exit"
	"github.com/chandler-hub/chandler/internal/live"
)

// Factory makes what commands need of their surroundings. Tests replace its parts.
type Factory struct {
	// Now is the time that commands go by.
	Now func() time.Time
	// Reach returns how the API server is reached that kubectl's flags lead to, for as long as ctx goes on. All live commands go through it.
	Reach func(ctx context.Context, flags *genericclioptions.ConfigFlags) (*rest.Config, error)
	// Dial connects to an API server.
	Dial func(*rest.Config) (client.WithWatch, error)
}

// New returns the factory of the program.
func New() *Factory { return &Factory{Now: time.Now, Reach: reach, Dial: live.Connect} }

// Connect connects to the management cluster that kubectl's flags lead to.
func (f *Factory) Connect(ctx context.Context, flags *genericclioptions.ConfigFlags) (client.WithWatch, *rest.Config, error) {
	config, err := f.Reach(ctx, flags)
	if err != nil {
		return nil, nil, err
	}
	c, err := f.Dial(config)
	if err != nil {
		return nil, nil, exit.Wrong(err)
	}
	return c, config, nil
}

func reach(ctx context.Context, flags *genericclioptions.ConfigFlags) (*rest.Config, error) {
	config, err := flags.ToRESTConfig()
	if err != nil {
		return nil, exit.Wrong(fmt.Errorf("find the hub: %w", err))
	}
	if config, err = live.Reach(ctx, config); err != nil {
		return nil, exit.Wrong(fmt.Errorf("find the hub: %w", err))
	}
	return config, nil
}

// KubectlFlags returns the flags by which kubectl finds a cluster. Its --cluster and --user are those of the kubeconfig, which --context
// chooses: people would take them for a cluster of the fleet, and for a person. The commands cache nothing.
func KubectlFlags() *genericclioptions.ConfigFlags {
	flags := genericclioptions.NewConfigFlags(true)
	flags.ClusterName, flags.AuthInfoName, flags.CacheDir = nil, nil, nil
	patience := RequestTimeout
	flags.Timeout = &patience
	return flags
}

// RequestTimeout is how long a command waits for an answer of an API server, unless --request-timeout says otherwise. kubectl waits
// without an end, but of the many API servers of a fleet some hang.
const RequestTimeout = "30s"
