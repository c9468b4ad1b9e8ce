// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/chandler-hub/chandler/test/localfleet/parts"
)

// fluxSetting is a way to run Flux's two controllers.
type fluxSetting struct {
	name string
	args []string
}

// fluxSettings are those that are measured, on one fleet. The first is Flux as it is installed, and comes again at the end: what differs
// between the two is the machine.
var fluxSettings = []fluxSetting{
	{"as installed", nil},
	{"--concurrent=2", []string{"--concurrent=2"}},
	{"--concurrent=10", []string{"--concurrent=10"}},
	{"--concurrent=20", []string{"--concurrent=20"}},
	{"--concurrent=10, --kube-api-qps=500", []string{"--concurrent=10", "--kube-api-qps=500", "--kube-api-burst=1000"}},
	{"--concurrent=10, Secrets from a cache", []string{"--concurrent=10", "--feature-gates=CacheSecretsAndConfigMaps=true"}},
	{"as installed, again", nil},
}

// fluxParts are the controllers, each with the name of its kind in its metrics.
var fluxParts = []struct{ part, kind string }{{parts.HelmController, "helmrelease"}, {parts.KustomizeController, "kustomization"}}

// fluxRound is what one controller did from its start until it had reconciled everything once. Nothing had to be changed.
type fluxRound struct {
	reconciles, seconds, cpu, mib float64
	// holds is for how long one reconcile took a worker, in seconds.
	holds float64
}

// benchFluxSettings delivers a set to a fleet by Flux's controllers, and starts these again by each setting in turn. It
// prints how fast they reconcile a fleet in which nothing is to be done, what that costs, and how long a change of one
// add-on takes until all of it is Ready.
func benchFluxSettings(ctx context.Context, out io.Writer, p Parameters) (err error) {
	p.Flux = true
	f, err := startFleet(ctx, p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.stop()) }()
	r, err := newRun(f, p, out)
	if err != nil {
		return err
	}
	begin := time.Now()
	if err := r.registerFleet(ctx); err != nil {
		return err
	}
	if err := r.createSet(ctx, p); err != nil {
		return err
	}
	last, err := r.delivered(ctx)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "%d clusters x %d add-ons installed by Flux in %.0f s\n", p.Clusters, p.Addons, last.Sub(begin).Seconds())
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "SETTING\tCONTROLLER\tRECONCILES\tIN\tA SECOND\tWORKER HELD\tCPU OF EACH\tMEMORY\tCHANGE READY")
	for i, s := range fluxSettings {
		started := time.Now()
		rounds, err := r.fluxRounds(ctx, s)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		begin := time.Now()
		if err := r.changeSet(ctx, fmt.Sprintf("v%d", i+1)); err != nil {
			return err
		}
		last, err := r.delivered(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		change := fmt.Sprintf("%.0fs", last.Sub(begin).Seconds())
		_, _ = fmt.Fprintf(out, "%d of %d measured: %s, %.0f s, change ready after %s\n", i+1, len(fluxSettings), s.name,
			time.Since(started).Seconds(), change)
		for j, m := range rounds {
			row := fmt.Sprintf("%s\t%s\t%.0f\t%.1fs\t%.1f\t%.2fs\t%.0fms\t%.0fMiB\t%s\n", s.name, fluxParts[j].part,
				m.reconciles, m.seconds, m.reconciles/m.seconds, m.holds, 1000*m.cpu/m.reconciles, m.mib, change)
			_, _ = io.WriteString(out, strings.ReplaceAll(row, "\t", "  ")) // a run that is ended has measured something
			_, _ = io.WriteString(w, row)
			change = "" // it is of both
		}
	}
	return w.Flush()
}

// fluxRounds starts the controllers with a setting, beside each other as in a cluster, and measures their first round.
func (r *run) fluxRounds(ctx context.Context, s fluxSetting) ([]fluxRound, error) {
	out := make([]fluxRound, len(fluxParts))
	var g errgroup.Group
	for i, c := range fluxParts {
		g.Go(func() error {
			address, err := freeAddress()
			if err != nil {
				return err
			}
			begin := time.Now()
			p, err := r.management.RestartFlux(ctx, c.part, append([]string{"--metrics-addr=" + address}, s.args...)...)
			if err != nil {
				return err
			}
			if out[i], err = r.fluxRound(ctx, address, c.kind, begin); err != nil {
				return err
			}
			cpu, err := p.CPU()
			if err != nil {
				return err
			}
			resident, err := memory(p, residentNow)
			out[i].cpu, out[i].mib = cpu.Seconds(), resident/(1<<20)
			return err
		})
	}
	return out, g.Wait()
}

// fluxRound waits until a controller has reconciled all of its objects.
func (r *run) fluxRound(ctx context.Context, address, kind string, begin time.Time) (m fluxRound, err error) {
	all := 0
	for _, o := range r.observer.in(sets) {
		if o.kind.Resource == kind+"s" {
			all++
		}
	}
	for {
		f, err := scrape(ctx, address)
		if err != nil {
			return m, err
		}
		m.reconciles = f.sum("controller_runtime_reconcile_total", "controller", kind)
		busy := f.sum("workqueue_depth", "name", kind) + f.sum("controller_runtime_active_workers", "controller", kind)
		if m.reconciles >= float64(all) && busy == 0 {
			m.seconds = time.Since(begin).Seconds()
			for _, h := range f["controller_runtime_reconcile_time_seconds"].GetMetric() {
				if has(h, []string{"controller", kind}) {
					m.holds += h.GetHistogram().GetSampleSum() / m.reconciles
				}
			}
			return m, nil
		}
		if err := r.wait(ctx, 250*time.Millisecond); err != nil {
			return m, err
		}
	}
}
