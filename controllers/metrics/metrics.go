// SPDX-License-Identifier: Apache-2.0

// Package metrics exports the state of the hub's objects as numbers. It computes them from the cache at each scrape
// where it can, so a deleted object leaves no metric behind and no controller has to count. It counts only what no object
// records: probes and writes.
package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/probe"
	"github.com/chandler-hub/chandler/internal/version"
)

// readTimeout limits the wait for a cache that has not synced: then a scrape lacks these metrics, and has the others.
const readTimeout = time.Second

// The metrics. Labels name a registration or a set, or are words from a list, and never name both: a fleet of 5,000 clusters with
// 10 add-ons has 50,000 pairs. A name is one label, namespace/name, as in the logs: Prometheus gives every series a label namespace of
// its own, that of the hub, and would rename ours.
var (
	registrations = prometheus.NewDesc("chandler_registrations",
		"ClusterRegistrations, by provider and state.", []string{"provider", "state"}, nil)
	deliveries = prometheus.NewDesc("chandler_deliveries",
		"AddonDeliveries, by the reason of their condition Ready.", []string{"state"}, nil)
	addons = prometheus.NewDesc("chandler_addons",
		"Add-ons on clusters, by state.", []string{"state"}, nil)
	addonSets = prometheus.NewDesc("chandler_addonsets",
		"AddonSets, by state.", []string{"state"}, nil)

	registrationReachable = prometheus.NewDesc("chandler_registration_reachable",
		"1 if a cluster answers, 0 if it does not. None where it is not known.", []string{"registration"}, nil)
	registrationSuspended = prometheus.NewDesc("chandler_registration_suspended_timestamp_seconds",
		"Since when the hub keeps the Flux objects of a cluster suspended, in seconds since 1970, and why. None while it does not.",
		[]string{"registration", "reason"}, nil)
	credentialExpiry = prometheus.NewDesc("chandler_registration_credential_expiry_timestamp_seconds",
		"When the kubeconfig that is in use for a cluster expires, in seconds since 1970, and whether the hub renews it. None where "+
			"nothing says when.", []string{"registration", "provider", "renewed"}, nil)

	setReady = prometheus.NewDesc("chandler_addonset_ready",
		"1 if an AddonSet is Ready, else 0.", []string{"addonset"}, nil)
	setStalled = prometheus.NewDesc("chandler_addonset_stalled",
		"1 if an AddonSet does not compile, else 0.", []string{"addonset"}, nil)
	setOrphans = prometheus.NewDesc("chandler_addonset_orphans",
		"Add-ons of the set that the hub orphaned and has not delivered again, those that its status has left out included.",
		[]string{"addonset"}, nil)
	setHeld = prometheus.NewDesc("chandler_addonset_held_removals",
		"Clusters for which the removal guard of an AddonSet holds something back.", []string{"addonset"}, nil)
	setRollout = prometheus.NewDesc("chandler_addonset_rollout",
		"1 for the phase that the rollout of an AddonSet with waves is in, and 0 for the others.", []string{"addonset", "phase"}, nil)
	setWaves = prometheus.NewDesc("chandler_addonset_rollout_clusters",
		"Clusters of a wave of an AddonSet: waiting, running, done, failed and skipped.", []string{"addonset", "wave", "state"}, nil)
	setClusters = prometheus.NewDesc("chandler_addonset_clusters",
		"Clusters of an AddonSet: matched, and of these ready, updated, failed and offline; and leaving.", []string{"addonset", "state"}, nil)
	setAddons = prometheus.NewDesc("chandler_addonset_addons",
		"Clusters on which an add-on of an AddonSet is in a state. None for a state that it is in nowhere.",
		[]string{"addonset", "addon", "state"}, nil)
)

// Metrics are those of one hub.
type Metrics struct {
	writes
	probes
	registry prometheus.Registerer
}

// newBuild says which build the hub is, as Prometheus' own programs do.
func newBuild(v version.Info) prometheus.Collector {
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "chandler_build_info",
		Help:        "1, with the version of the hub, its commit, and the version of Go that built it.",
		ConstLabels: prometheus.Labels{"version": v.Version, "revision": v.Revision, "goversion": v.Go},
	})
	g.Set(1)
	return g
}

// Register registers what is counted where it happens. Collect registers the rest.
func Register(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{newWrites(), newProbes(), registry}
	if err := registry.Register(newBuild(version.Get())); err != nil {
		return nil, err
	}
	if err := registry.Register(m.writes.total); err != nil {
		return nil, err
	}
	return m, registry.Register(m.probes.seconds)
}

// Collect registers what is computed from a cache, and asked of a pool of probes.
func (m *Metrics) Collect(reader client.Reader, elected <-chan struct{}, pool *probe.Pool) error {
	if err := m.registry.Register(&Collector{reader, elected}); err != nil {
		return err
	}
	return m.registry.Register(poolCollector{pool})
}

// Collector is a prometheus.Collector that reads from Reader, a cache. It returns nothing before Elected is closed:
// of several replicas only the leader does, so that a sum counts nothing twice.
type Collector struct {
	Reader  client.Reader
	Elected <-chan struct{}
}

// Describe says which metrics there are.
func (c *Collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		registrations, deliveries, addons, addonSets, registrationReachable, registrationSuspended, credentialExpiry,
		setReady, setStalled, setHeld, setOrphans, setRollout, setWaves, setClusters, setAddons,
	} {
		out <- d
	}
}

// Collect computes them in one pass over each kind, without a copy of the objects.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	select {
	case <-c.Elected:
	default:
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	regs, sets, delivered := &hubv1.ClusterRegistrationList{}, &hubv1.AddonSetList{}, &hubv1.AddonDeliveryList{}
	for _, list := range []client.ObjectList{regs, sets, delivered} {
		if err := c.Reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return // the cache has not started, or is not complete: half of the truth would set off alarms
		}
	}
	collectRegistrations(regs, out)
	collectSets(sets, out)
	collectDeliveries(delivered, out)
}

func gauge(out chan<- prometheus.Metric, desc *prometheus.Desc, value float64, labels ...string) {
	out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
}

func is(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
