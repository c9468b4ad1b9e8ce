// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/origin"
)

// options are the values of the hub's flags, not checked yet.
type options struct {
	hubconfig.Options
	namespace string
}

func (o *options) addFlags(f *pflag.FlagSet) {
	o.namespace = cmp.Or(os.Getenv("POD_NAMESPACE"), hubconfig.DefaultNamespace)
	o.AddFlags(f, o.namespace)
}

// complete checks the flags, reads the file with rules, and returns the configuration. hub is the hub's own API server.
func (o *options) complete(hub apiServer) (*hubconfig.Config, error) {
	c, err := o.Complete(o.namespace)
	if err != nil {
		return nil, err
	}
	if o.RegistrationRules != "" {
		raw, err := os.ReadFile(o.RegistrationRules)
		if err != nil {
			return nil, fmt.Errorf("--%s: %w", hubconfig.FlagRegistrationRules, err)
		}
		if c.Origins.Rules, err = origin.ParseRules(o.RegistrationRules, raw); err != nil {
			return nil, fmt.Errorf("--%s: %w", hubconfig.FlagRegistrationRules, err)
		}
	}
	c.WritesOfCluster = writesOfCluster
	c.Rules.ForbiddenHosts, c.Rules.ForbiddenAddrs = hub.hosts, hub.addrs
	return c, nil
}
