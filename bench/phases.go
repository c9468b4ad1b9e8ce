// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// run is one run, phase by phase.
type run struct {
	*fleet
	p        Parameters
	out      io.Writer
	raw      *raw
	reporter *reporter
	result   Result

	manifests []manifest
	half      measured // with half of the fleet
	rates     []float64
}

// measured is what the hub holds with so many Flux objects.
type measured struct {
	objects        int
	heap, resident float64
}

const (
	still    = time.Second      // for so long nothing is written when all is done
	singles  = 60               // clusters that come one at a time
	tens     = 60               // clusters that come at ten a second
	idleTime = 60 * time.Second // of status noise
	idleRate = 20               // statuses a second
)

func newRun(f *fleet, p Parameters, out io.Writer) (*run, error) {
	r := &run{fleet: f, p: p, out: out, result: Result{Parameters: p, CPUs: runtime.NumCPU(), Objects: p.Clusters * p.Addons}}
	var err error
	if r.raw, err = newRaw(f.management.Config); err != nil {
		return nil, err
	}
	config := rest.CopyConfig(f.management.Config)
	config.QPS = -1
	d, err := dynamic.NewForConfig(config)
	r.reporter = &reporter{d}
	return r, err
}

// all runs every phase in order: each goes on with what the one before has left.
func (r *run) all(ctx context.Context) error {
	for _, phase := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"half of the fleet", r.halfFleet},
		{"the whole fleet, to be copied", r.wholeFleet},
		{"the bare client, before", r.bare},
		{"fan-out", r.fanout},
		{"until all is Ready", r.untilReady},
		{"memory", r.memory},
		{"one add-on changed everywhere", r.change},
		{"the bare client, after", r.bare},
		{"a minute of noise", r.idle},
		{"clusters that come one at a time", r.arrivals},
		{"clusters that come ten a second", r.crowd},
		{"restart", r.restart},
		{"a part of the fleet is dead", r.dead},
	} {
		begin := time.Now()
		if err := phase.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", phase.name, err)
		}
		_, _ = fmt.Fprintf(r.out, "  %-34s %6.1fs  %s\n", phase.name, time.Since(begin).Seconds(), r.written(ctx))
	}
	return nil
}

// written says what the hub has written since it was started, by kind and verb.
func (r *run) written(ctx context.Context) string {
	f, err := r.hub.scrape(ctx)
	if err != nil {
		return err.Error()
	}
	counts := map[string]float64{}
	for _, m := range f["chandler_writes_total"].GetMetric() {
		by := map[string]string{}
		for _, l := range m.GetLabel() {
			by[l.GetName()] = l.GetValue()
		}
		counts[by["kind"]+" "+by["verb"]] += m.GetCounter().GetValue()
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		out = append(out, fmt.Sprintf("%s %g", name, counts[name]))
	}
	return strings.Join(out, ", ")
}

// halfFleet registers and serves half of the clusters, and measures what the hub holds then.
func (r *run) halfFleet(ctx context.Context) error {
	half := r.p.Clusters / 2
	if err := r.admit(ctx, names("c", 0, half), labels()); err != nil {
		return err
	}
	if err := r.reachable(ctx, half); err != nil {
		return err
	}
	if err := r.createSet(ctx, r.p); err != nil {
		return err
	}
	if err := r.made(ctx, half); err != nil {
		return err
	}
	var err error
	r.half, err = r.measure(ctx)
	return err
}

// made waits until so many clusters have all their objects, and the hub rests.
func (r *run) made(ctx context.Context, clusters int) error {
	err := r.observer.until(ctx, fmt.Sprintf("%d clusters have their objects", clusters), func() bool { return r.observer.count() >= clusters*r.p.Addons })
	if err != nil {
		return err
	}
	_, err = r.hub.quiet(ctx, still)
	return err
}

func (r *run) measure(ctx context.Context) (m measured, err error) {
	m.objects = r.observer.count()
	if m.heap, err = r.hub.heap(ctx); err != nil {
		return m, err
	}
	m.resident, err = r.hub.resident()
	return m, err
}

// wholeFleet adds the other half, and copies what the hub made before it takes it away again.
func (r *run) wholeFleet(ctx context.Context) error {
	if err := r.admit(ctx, names("c", r.p.Clusters/2, r.p.Clusters), labels()); err != nil {
		return err
	}
	if err := r.made(ctx, r.p.Clusters); err != nil {
		return err
	}
	var err error
	if r.manifests, err = r.raw.capture(ctx); err != nil {
		return err
	}
	if err := r.dropSet(ctx); err != nil {
		return err
	}
	_, err = r.hub.quiet(ctx, still)
	return err
}

// bare has a bare client write the very same objects, with the hub stopped: before the hub does and after, since an API server is not
// as quick at all times.
func (r *run) bare(ctx context.Context) error {
	r.hub.process.Stop()
	there := r.observer.count()
	rate, err := r.raw.apply(ctx, r.manifests)
	if err != nil {
		return err
	}
	changes, err := r.raw.change(ctx, r.manifests, "v1")
	if err != nil {
		return err
	}
	if err := r.raw.remove(ctx, r.observer, there); err != nil {
		return err
	}
	r.rates = append(r.rates, rate)
	n := float64(len(r.rates))
	r.result.RawPerSecond += (rate - r.result.RawPerSecond) / n
	r.result.RawChangesPerSecond += (changes - r.result.RawChangesPerSecond) / n
	if err := r.startHub(ctx); err != nil {
		return err
	}
	_, err = r.hub.quiet(ctx, still)
	return err
}

// fanout is the hub's turn: from the creation of the set to its last write.
func (r *run) fanout(ctx context.Context) error {
	before, err := r.hub.writes(ctx)
	if err != nil {
		return err
	}
	begin := time.Now()
	if err := r.createSet(ctx, r.p); err != nil {
		return err
	}
	if err := r.observer.until(ctx, "fan-out", func() bool { return r.observer.count() >= r.result.Objects }); err != nil {
		return err
	}
	r.result.FanoutPerSecond = float64(r.result.Objects) / r.observer.last().Sub(begin).Seconds()
	last, err := r.hub.quiet(ctx, still)
	if err != nil {
		return err
	}
	after, err := r.hub.writes(ctx)
	if err != nil {
		return err
	}
	r.result.WritesRatio = (after - before) / last.Sub(begin).Seconds() // over the bare client's, when that is known
	return nil
}

// untilReady has everything reported Ready, and counts what the hub writes of its own statuses from the beginning of the fan-out.
func (r *run) untilReady(ctx context.Context) error {
	if !r.p.Flux {
		if err := r.reporter.ready(ctx); err != nil {
			return err
		}
	}
	if _, err := r.hub.quiet(ctx, 3*time.Second); err != nil {
		return err
	}
	f, err := r.hub.scrape(ctx)
	if err != nil {
		return err
	}
	r.result.StatusWrites = (f.sum("chandler_writes_total", "kind", "AddonDelivery", "verb", "status")) / float64(r.p.Clusters)
	return nil
}

func (r *run) memory(ctx context.Context) error {
	all, err := r.measure(ctx)
	if err != nil {
		return err
	}
	objects := float64(all.objects - r.half.objects)
	r.result.ResidentMiB = all.resident / (1 << 20)
	r.result.KiBPerObject = (all.heap - r.half.heap) / 1024 / objects
	r.result.RSSKiBPerObject = (all.resident - r.half.resident) / 1024 / objects
	return nil
}

// change gives one add-on another value on every cluster.
func (r *run) change(ctx context.Context) error {
	before, err := r.hub.writes(ctx)
	if err != nil {
		return err
	}
	begin := time.Now()
	if err := r.changeSet(ctx, "v1"); err != nil {
		return err
	}
	last, err := r.hub.quiet(ctx, 2*time.Second)
	if err != nil {
		return err
	}
	after, err := r.hub.writes(ctx)
	if err != nil {
		return err
	}
	r.result.ChangeSeconds = r.observer.last().Sub(begin).Seconds()
	r.result.ChangeWritesRatio = (after - before) / last.Sub(begin).Seconds() // over the bare client's, when that is known
	r.result.WritesPerChangedCluster = (after - before) / float64(r.p.Clusters)
	return nil
}

func (r *run) idle(ctx context.Context) error {
	if !r.p.Flux {
		if err := r.reporter.ready(ctx); err != nil {
			return err
		}
	}
	if _, err := r.hub.quiet(ctx, 2*time.Second); err != nil {
		return err
	}
	writes, err := r.hub.writes(ctx)
	if err != nil {
		return err
	}
	calm, err := r.spent(ctx, idleTime/4, nil)
	if err != nil {
		return err
	}
	events := 0
	noisy, err := r.spent(ctx, idleTime, func(ctx context.Context) (err error) {
		events, err = r.reporter.noise(ctx, idleRate)
		return err
	})
	if err != nil {
		return err
	}
	after, err := r.hub.writes(ctx)
	if err != nil {
		return err
	}
	r.result.IdleWrites = after - writes
	r.result.IdleCPU = float64((noisy - 4*calm).Microseconds()) / 1000 / float64(events)
	return nil
}

// spent is how much processor time the hub spends while something is done for so long.
func (r *run) spent(ctx context.Context, d time.Duration, do func(context.Context) error) (time.Duration, error) {
	before, err := r.hub.cpu()
	if err != nil {
		return 0, err
	}
	during, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	if do != nil {
		if err := do(during); err != nil {
			return 0, err
		}
	}
	<-during.Done()
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	after, err := r.hub.cpu()
	return after - before, err
}

func (r *run) restart(ctx context.Context) error {
	r.hub.process.Stop()
	begin := time.Now()
	if err := r.startHub(ctx); err != nil {
		return err
	}
	last, err := r.hub.quiet(ctx, 2*time.Second)
	if err != nil {
		return err
	}
	r.result.RestartSeconds = last.Sub(begin).Seconds()
	r.result.RestartWrites, err = r.hub.writes(ctx)
	return err
}

// arrivals registers clusters one after the other.
func (r *run) arrivals(ctx context.Context) error {
	took, err := r.arrive(ctx, names("one", 0, singles), 0)
	r.result.NewClusterP50, r.result.NewClusterP99 = percentile(took, 0.5), percentile(took, 0.99)
	return err
}

func (r *run) crowd(ctx context.Context) error {
	took, err := r.arrive(ctx, names("ten", 0, tens), 100*time.Millisecond)
	r.result.NewCluster10P50, r.result.NewCluster10P99 = percentile(took, 0.5), percentile(took, 0.99)
	return err
}

// dead has a part of the fleet hang, and registers clusters one after the other.
func (r *run) dead(ctx context.Context) error {
	r.facade.kill(names("c", 0, int(float64(r.p.Clusters)*r.p.Dead)))
	took, err := r.arrive(ctx, names("well", 0, singles), 0)
	r.result.HealthyDelayRatio = percentile(took, 0.5) / r.result.NewClusterP50
	return err
}

// arrive registers clusters, one when the one before has all its objects, or one every so often. It returns how long each took, in
// milliseconds, from its label to its last Flux object.
func (r *run) arrive(ctx context.Context, names []string, every time.Duration) ([]float64, error) {
	if err := r.admit(ctx, names, nil); err != nil {
		return nil, err
	}
	labelled := map[string]time.Time{}
	for i, name := range names {
		labelled[name] = time.Now()
		if err := r.register(ctx, name); err != nil {
			return nil, err
		}
		switch {
		case every == 0:
			if err := r.served(ctx, name); err != nil {
				return nil, err
			}
		default:
			time.Sleep(time.Until(labelled[names[0]].Add(time.Duration(i+1) * every)))
		}
	}
	var took []float64
	for _, name := range names {
		if err := r.served(ctx, name); err != nil {
			return nil, err
		}
		last, _ := r.observer.complete(name, r.p.Addons)
		took = append(took, float64(last.Sub(labelled[name]).Microseconds())/1000)
	}
	return took, nil
}

func (r *run) served(ctx context.Context, name string) error {
	return r.observer.until(ctx, name+" has its objects", func() bool {
		_, ok := r.observer.complete(name, r.p.Addons)
		return ok
	})
}

// finish puts the hub's rates over the bare client's.
func (r *run) finish() error {
	if r.result.RawPerSecond == 0 || r.result.RawChangesPerSecond == 0 {
		return errors.New("the bare client has not run")
	}
	r.result.FanoutRatio = r.result.FanoutPerSecond / r.result.RawPerSecond
	r.result.WritesRatio /= r.result.RawPerSecond
	r.result.ChangeWritesRatio /= r.result.RawChangesPerSecond
	return nil
}

// percentile of values, which it sorts; 0 of none.
func percentile(values []float64, p float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[min(len(values)-1, int(float64(len(values))*p))]
}
