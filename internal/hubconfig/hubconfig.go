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

// Shared is the part of a hub's configuration that decides what is rendered for a fleet. The command line shares it.
type Shared struct {
	// HubID tells this hub's objects from those of other hubs. It must never change while add-ons are delivered.
	HubID string
	// PlatformNamespaces are the namespaces whose AddonSets may select clusters everywhere.
	PlatformNamespaces []string
	// Origins decides which origins are registered.
	Origins origin.Policy
	// Chart is the chart that delivers plain manifests, with the URL at which Flux reaches it.
	Chart render.ManifestChart
	// FluxShards are the shards of Flux's controllers, one of which serves each cluster; none if Flux is not sharded.
	FluxShards []string
	// LearnShards is true if the hub learns FluxShards from Flux's controllers.
	LearnShards bool
	// FluxTenantShards are those of clusters that are registered outside of the platform namespaces; none if they share FluxShards.
	FluxTenantShards []string
}

// ShardsFor returns the shards of Flux's controllers, one of which serves a cluster that is registered in a namespace. Who registers
// a cluster cannot choose others: it is the namespace that decides, and no label.
func (s *Shared) ShardsFor(namespace string) []string {
	if len(s.FluxTenantShards) > 0 && !s.IsPlatform(namespace) {
		return s.FluxTenantShards
	}
	return s.FluxShards
}

// Shards returns all shards that the hub gives to clusters; "" is that of what has no shard.
func (s *Shared) Shards() []string {
	if len(s.FluxShards) == 0 && len(s.FluxTenantShards) > 0 {
		return append([]string{""}, s.FluxTenantShards...)
	}
	return slices.Concat(s.FluxShards, s.FluxTenantShards)
}

// IsPlatform returns whether a namespace is a platform namespace.
func (s *Shared) IsPlatform(namespace string) bool {
	return slices.Contains(s.PlatformNamespaces, namespace)
}

// Config is the configuration of a hub.
type Config struct {
	Shared
	// Rules are the rules for kubeconfigs and the addresses in them; see RulesFor.
	Rules kubeconfig.Rules
	// DeselectionDelay is how long a cluster keeps what it has after a label was removed, or a selector edited: an origin
	// without the label stays registered, and a set that does not select a cluster any more stays there.
	DeselectionDelay time.Duration
	// TeardownGrace is how long the hub waits for a cluster that does not answer before it lets the cluster's add-ons
	// go.
	TeardownGrace time.Duration
	// RemovalDelay is how long a dropped add-on stays before it is uninstalled. In this time another set can take it
	// over.
	RemovalDelay time.Duration
	// RemovalWindow is the time that the limit of a removal guard is about, if the set does not say another one.
	RemovalWindow time.Duration
	// ChartRetention is how long a shared HelmChart or source stays after its last use.
	ChartRetention time.Duration
	// ProbeInterval is the time between two probes of a cluster that answers.
	ProbeInterval time.Duration
	// DocsURL is where the page of runbooks is; empty if messages lead to none.
	DocsURL string
	// Concurrency is how many clusters each controller works on at a time.
	Concurrency int
	// WritesOfCluster is how many Flux objects of one cluster are written at a time. 0 and 1 mean one after the other. It is no flag: how
	// much the API server takes of all clusters is found out by internal/pressure.
	WritesOfCluster int
	// ClusterProfiles has the hub make a ClusterProfile of each registration.
	ClusterProfiles bool
}

// RulesFor returns the rules for the kubeconfig of a registration. Kamaji and Cluster API write kubeconfigs that name
// Services of the management cluster. In a tenant's kubeconfig, such a name would lead the hub and Flux to other
// programs on the management cluster.
func (c *Config) RulesFor(reg *hubv1.ClusterRegistration) kubeconfig.Rules {
	rules := c.Rules
	if ref := reg.Spec.OriginRef; ref != nil && reg.Spec.KubeConfig == nil {
		if kind, err := origin.KindOf(*ref); err == nil && kind.IsCluster() {
			rules.AllowServices = true
		}
	}
	return rules
}
