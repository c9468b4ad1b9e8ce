// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/chandler-hub/chandler/test/localfleet"
)

// families are the metrics of one scrape.
type families map[string]*dto.MetricFamily

func (h *hub) scrape(ctx context.Context) (families, error) { return scrape(ctx, h.metrics) }

// scrape reads the metrics of a process.
func scrape(ctx context.Context, address string) (families, error) {
	return scrapeURL(ctx, http.DefaultClient, "http://"+address+"/metrics")
}

// scrapeURL reads the metrics behind an address.
func scrapeURL(ctx context.Context, c *http.Client, url string) (families, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	res, err := c.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(res.Body)
}

// sum adds up a counter or gauge where it has these labels.
func (f families) sum(name string, labels ...string) float64 {
	total := 0.0
	for _, m := range f[name].GetMetric() {
		if has(m, labels) {
			total += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return total
}

func has(m *dto.Metric, labels []string) bool {
	for i := 0; i < len(labels); i += 2 {
		found := false
		for _, l := range m.GetLabel() {
			found = found || l.GetName() == labels[i] && l.GetValue() == labels[i+1]
		}
		if !found {
			return false
		}
	}
	return true
}

// writes are what the hub had written; with kinds, of objects of these.
func (f families) writes(kinds ...string) float64 {
	if len(kinds) == 0 {
		return f.sum("chandler_writes_total")
	}
	total := 0.0
	for _, kind := range kinds {
		total += f.sum("chandler_writes_total", "kind", kind)
	}
	return total
}

// writes are what the hub has written so far.
func (h *hub) writes(ctx context.Context) (float64, error) {
	f, err := h.scrape(ctx)
	return f.writes(), err
}

// probes is how many clusters it has probed so far.
func (h *hub) probes(ctx context.Context) (float64, error) {
	f, err := h.scrape(ctx)
	total := 0.0
	for _, m := range f["chandler_probe_duration_seconds"].GetMetric() {
		total += float64(m.GetHistogram().GetSampleCount())
	}
	return total, err
}

// quiet waits until the hub has written nothing for a while and its queues are empty. It returns when the last write was seen.
func (h *hub) quiet(ctx context.Context, still time.Duration) (last time.Time, err error) {
	before := -1.0
	last = time.Now()
	for {
		f, err := h.scrape(ctx)
		if err != nil {
			return last, err
		}
		now, busy := f.writes(), f.sum("workqueue_depth")
		if now != before || busy > 0 {
			before, last = now, time.Now()
		}
		if time.Since(last) > still {
			return last, nil
		}
		select {
		case <-ctx.Done():
			return last, fmt.Errorf("the hub does not come to rest: %w", context.Cause(ctx))
		case <-time.After(h.pause): // a scrape reads the whole fleet
		}
	}
}

// heap returns the bytes that live in the hub after a garbage collection.
func (h *hub) heap(ctx context.Context) (float64, error) {
	for range 2 { // what a first collection leaves to finalizers is gone after a second
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+h.pprof+"/debug/pprof/heap?gc=1", nil)
		if err != nil {
			return 0, err
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return 0, err
		}
		_ = res.Body.Close()
	}
	f, err := h.scrape(ctx)
	return f.sum("go_memstats_heap_alloc_bytes"), err
}

// cpu is the time that the hub has spent so far.
func (h *hub) cpu() (time.Duration, error) { return h.process.CPU() }

// Lines of /proc/PID/status.
const (
	residentNow = "VmRSS:"
	residentMax = "VmHWM:" // since the start of the process
)

// memory is what a line of the hub's status says, in bytes.
func (h *hub) memory(of string) (float64, error) { return memory(h.process, of) }

// memory is what a line of a process's status says, in bytes.
func memory(p *localfleet.Process, of string) (float64, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(line, of); ok {
			kib, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 64)
			return kib * 1024, err
		}
	}
	return 0, fmt.Errorf("the status of %s has no %s", p.Name, of)
}
