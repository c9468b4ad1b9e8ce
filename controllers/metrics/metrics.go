// SPDX-License-Identifier: Apache-2.0

// Package metrics says in numbers what the objects say. Each is computed from the cache when it is asked for: nothing is left of an
// object that has gone, and no room has to count.
package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// readTimeout bounds the wait for a cache that is not there yet: a scrape then lacks these metrics, and has the others.
const readTimeout = time.Second

var credentialExpiry = prometheus.NewDesc("chandler_registration_credential_expiry_timestamp_seconds",
	"When the kubeconfig that is in use for a cluster expires, in seconds since 1970. None where nothing says when.",
	[]string{"namespace", "name"}, nil)

// Collector is a prometheus.Collector that reads from Reader, a cache.
type Collector struct{ Reader client.Reader }

// Describe says which metrics there are.
func (c *Collector) Describe(out chan<- *prometheus.Desc) { out <- credentialExpiry }

// Collect computes them.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	regs := &hubv1.ClusterRegistrationList{}
	if err := c.Reader.List(ctx, regs, client.UnsafeDisableDeepCopy); err != nil {
		return // the cache has not started, or is not complete: half of the truth would set off alarms
	}
	for i := range regs.Items {
		reg := &regs.Items[i]
		if in := reg.Status.Credential; in != nil && in.ExpirationTime != nil {
			out <- prometheus.MustNewConstMetric(credentialExpiry, prometheus.GaugeValue, float64(in.ExpirationTime.Unix()), reg.Namespace, reg.Name)
		}
	}
}
