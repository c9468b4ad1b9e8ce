// SPDX-License-Identifier: Apache-2.0

// Package hubconfig holds the settings of a hub that its operator chooses by flags. They are read once, and passed to
// the packages that need them.
package hubconfig

import (
	"slices"
	"time"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/origin"
	"github.com/chandler-hub/chandler/internal/render"
)

// Shared is the part of a hub's configuration that decides what comes of a fleet. The command line has it in common with the hub.
type Shared struct {
	// HubID tells this hub's objects from those of other hubs. It must never change while add-ons are delivered.
	HubID string
	// PlatformNamespaces are the namespaces whose AddonSets may select clusters everywhere.
	PlatformNamespaces []string
	// Origins says what is registered.
	Origins origin.Policy
	// Chart is the chart that delivers plain manifests, as Flux reaches it.
	Chart render.ManifestChart
	// FluxShards are the shards of Flux's controllers, of which one serves a cluster; none if they are not sharded.
	FluxShards []string
}

// IsPlatform returns whether a namespace is a platform namespace.
func (s *Shared) IsPlatform(namespace string) bool {
	return slices.Contains(s.PlatformNamespaces, namespace)
}

// Config is the configuration of a hub.
type Config struct {
	Shared
	// Rules are what kubeconfigs and the addresses in them are held against; see RulesFor.
	Rules kubeconfig.Rules
	// UnregisterDelay is how long an origin without the label stays registered.
	UnregisterDelay time.Duration
	// TeardownGrace is how long a cluster that does not answer is waited for before its add-ons are let go.
	TeardownGrace time.Duration
	// RemovalDelay is how long an add-on that was dropped stays before it is uninstalled: time for another set to take it over.
	RemovalDelay time.Duration
	// ChartRetention is how long a HelmChart or source that clusters share stays after its last use.
	ChartRetention time.Duration
	// ProbeInterval is the time between two probes of a cluster that answers.
	ProbeInterval time.Duration
	// Concurrency is how many clusters each room works on at a time.
	Concurrency int
}

// RulesFor returns the rules for the kubeconfig of a registration. Kamaji and Cluster API write kubeconfigs that name Services of the
// management cluster; in one that anybody else has written such a name would lead the hub, and Flux, to what runs beside them.
func (c *Config) RulesFor(reg *hubv1.ClusterRegistration) kubeconfig.Rules {
	rules := c.Rules
	if ref := reg.Spec.OriginRef; ref != nil && reg.Spec.KubeConfig == nil {
		if kind, err := origin.KindOf(*ref); err == nil && kind != origin.Secret {
			rules.AllowServices = true
		}
	}
	return rules
}
