// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/probe"
)

// answered is the outcome of a probe that did not fail.
const answered = "Answered"

// probes measures probes. Its label is the outcome, and never the cluster.
type probes struct{ seconds *prometheus.HistogramVec }

func newProbes() probes {
	p := probes{prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "chandler_probe_duration_seconds",
		Help:    "How long a probe of a cluster took, by its outcome: Answered, or the reason of the failure.",
		Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
	}, []string{"outcome"})}
	p.seconds.WithLabelValues(answered)
	return p
}

// Measured returns a prober that measures each probe.
func (p probes) Measured(do probe.Prober) probe.Prober {
	return func(ctx context.Context, cfg *kubeconfig.Config) probe.Result {
		start := time.Now()
		result := do(ctx, cfg)
		outcome := answered
		if result.Err != nil {
			outcome = result.Err.Reason
		}
		if outcome != probe.ReasonCanceled { // the answer was not needed any more, so it says nothing about a cluster
			p.seconds.WithLabelValues(outcome).Observe(time.Since(start).Seconds())
		}
		return result
	}
}

var (
	probeTargets = prometheus.NewDesc("chandler_probe_targets",
		"Kubeconfigs that are probed: healthy, failing, or unknown, which have not been probed yet.", []string{"state"}, nil)
	probesRunning = prometheus.NewDesc("chandler_probes_running", "Probes at work.", nil, nil)
)

// poolCollector reports the work of a pool.
type poolCollector struct{ *probe.Pool }

// Describe says which metrics there are.
func (p poolCollector) Describe(out chan<- *prometheus.Desc) {
	out <- probeTargets
	out <- probesRunning
}

// Collect asks the pool.
func (p poolCollector) Collect(out chan<- prometheus.Metric) {
	s := p.Stats()
	gauge(out, probeTargets, float64(s.Healthy), "healthy")
	gauge(out, probeTargets, float64(s.Failing), "failing")
	gauge(out, probeTargets, float64(s.Unknown), "unknown")
	gauge(out, probesRunning, float64(s.Running))
}
