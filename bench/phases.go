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
)

// run is one run of the bench, phase by phase.
type run struct {
	*fleet
	p        Parameters
	out      io.Writer
	raw      *raw
	reporter *reporter
	result   Result

	manifests []manifest
	asked     map[request]float64 // by the hub in its fan-out
	came      map[request]float64 // and for clusters that came at ten a second
	replicas  []replica           // of what it made
	atRest    measured            // with the whole fleet
	larger    measured            // with a fifth more
	bares     int                 // how often the bare client has run
	works     time.Duration       // how long Flux takes for a change, if the bench stands in for it
	profiles  string              // the folder for them; none are taken if it is empty
	noise     time.Duration       // of Flux's statuses
}

// measured is what the hub holds with a given number of Flux objects.
type measured struct {
	objects        int
	heap, resident float64
}

const (
	// settled is for how long the hub must write nothing to count as done: longer than a status with progress waits
	// (internal/pace).
	settled = 6 * time.Second
	// rested is the same for a hub that has no progress to report.
	rested   = 3 * time.Second
	singles  = 60 // clusters that come one at a time
	idleRate = 20 // statuses a second of noise
)

func newRun(f *fleet, p Parameters, out io.Writer) (*run, error) {
	r := &run{fleet: f, p: p, out: out, works: work, result: Result{Parameters: p, CPUs: runtime.NumCPU(), Objects: p.Clusters * p.Addons}}
	var err error
	r.raw, err = newRaw(f.management.Config)
	r.reporter = &reporter{client: r.raw.client, last: map[reported]bool{}}
	return r, err
}

// all runs every phase in order. Each phase starts from what the one before has left.
func (r *run) all(ctx context.Context) error {
	for _, phase := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"the fleet registers", r.registerFleet},
		{"fan-out", r.fanout},
		{"until all is Ready", r.untilReady},
		{"the bare client, and a restart", r.bare},
		{"one add-on changed everywhere", r.change},
		{"Flux's status noise", r.idle},
		{"clusters that come one at a time", r.arrivals},
		{"clusters that come ten a second", r.crowd},
		{"a fifth more clusters, and memory", r.memory},
		{"the bare client, and a restart", r.bare},
		{"a cluster that comes at a restart", r.soon},
		{"another replica takes over", r.takeOver},
		{"a part of the fleet is dead", r.dead},
		{"a fifth is unregistered", r.leave},
	} {
		begin := time.Now()
		if err := phase.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", phase.name, err)
		}
		_, _ = fmt.Fprintf(r.out, "  %-34s %6.1fs  %s\n", phase.name, time.Since(begin).Seconds(), r.written(ctx))
	}
	return nil
}

// written returns what the hub has written since its start, by kind and verb.
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

// registerFleet registers the clusters. There is no set yet.
func (r *run) registerFleet(ctx context.Context) error {
	if err := r.admit(ctx, names("c", r.p.Clusters), labels()); err != nil {
		return err
	}
	if err := r.reachable(ctx, r.p.Clusters); err != nil {
		return err
	}
	_, err := r.hub.quiet(ctx, rested)
	return err
}

func (r *run) measure(ctx context.Context) (m measured, err error) {
	m.objects = r.observer.count()
	if m.heap, err = r.hub.heap(ctx); err != nil {
		return m, err
	}
	m.resident, err = r.hub.memory(residentNow)
	return m, err
}

// bare stops the hub, has a bare client write the same objects into another namespace, and starts the hub again. With
// the full fleet, that start is the measured restart. It runs twice, because an API server is not equally fast at all
// times.
func (r *run) bare(ctx context.Context) error {
	if r.manifests == nil {
		var err error
		if r.manifests, err = r.raw.capture(ctx, sampled(r.result.Objects)); err != nil {
			return err
		}
	}
	r.hub.process.Stop()
	there := r.observer.count()
	rate, changes, err := r.rawRates(ctx)
	if err != nil {
		return err
	}
	if err := r.raw.remove(ctx, r.observer, there); err != nil {
		return err
	}
	r.bares++
	n := float64(r.bares)
	if !r.p.Flux { // whose requests would be counted as the hub's
		replayed, err := r.replay(ctx, there)
		if err != nil {
			return err
		}
		r.result.ReplayPerSecond += (replayed - r.result.ReplayPerSecond) / n
	}
	r.result.RawPerSecond += (rate - r.result.RawPerSecond) / n
	r.result.RawChangesPerSecond += (changes - r.result.RawChangesPerSecond) / n
	return r.restart(ctx)
}

// rawRates has the bare client create objects, and change one of each cluster, while Flux or its stand-in works on
// them.
func (r *run) rawRates(ctx context.Context) (made, changed float64, err error) {
	unwatch, err := r.raw.watch(ctx, r.management.Config, r.management.Client.Scheme())
	if err != nil {
		return 0, 0, err
	}
	defer unwatch()
	if made, err = r.raw.apply(ctx, r.manifests); err != nil {
		return 0, 0, err
	}
	changes, err := r.raw.changed(r.manifests, fmt.Sprintf("v%d", r.bares+1))
	if err != nil {
		return 0, 0, err
	}
	if !r.p.Flux { // what is changed has a status, as the hub's objects have
		names := map[string]bool{}
		for _, m := range changes {
			names[m.obj.GetName()] = true
		}
		there := slices.DeleteFunc(r.observer.in(rawNamespace), func(o reported) bool { return !names[o.key.Name] })
		if err := r.reporter.ready(ctx, there); err != nil {
			return 0, 0, err
		}
	}
	stop := r.fluxFollows(ctx)
	defer stop()
	changed, err = r.raw.apply(ctx, changes)
	return made, changed, err
}

// fanout measures the hub: from the creation of the set to the last Flux object.
func (r *run) fanout(ctx context.Context) error {
	before, err := r.hub.writes(ctx)
	if err != nil {
		return err
	}
	asked, err := r.askedSoFar(ctx)
	if err != nil {
		return err
	}
	processors, err := r.share(r.hub.process)
	if err != nil {
		return err
	}
	begin := time.Now()
	r.profile(ctx, "fanout")
	if err := r.createSet(ctx, r.p); err != nil {
		return err
	}
	made := func(objects int) error {
		return r.observer.until(ctx, "fan-out", func() bool { return r.observer.count() >= objects })
	}
	if err := made(r.result.Objects * 3 / 4); err != nil {
		return err
	}
	if time.Since(begin) > profiled*time.Second { // a process takes one profile at a time
		r.profile(ctx, "fanout-end")
	}
	if err := made(r.result.Objects); err != nil {
		return err
	}
	after, err := r.hub.writes(ctx)
	if err != nil {
		return err
	}
	if r.asked, err = r.askedSince(ctx, asked, r.p.Clusters); err != nil {
		return err
	}
	if r.result.FanoutAPI, r.result.FanoutHub, err = r.shared(processors, all(r.asked)); err != nil {
		return err
	}
	took := r.observer.last().Sub(begin).Seconds()
	r.result.FanoutPerSecond = float64(r.result.Objects) / took
	r.result.WritesRatio = (after - before) / took // over the bare client's, when that is known
	return nil
}

// untilReady reports everything Ready, and counts the hub's writes of its own statuses since the beginning of the
// fan-out.
func (r *run) untilReady(ctx context.Context) error {
	if err := r.allReady(ctx); err != nil {
		return err
	}
	f, err := r.hub.scrape(ctx)
	if err != nil {
		return err
	}
	r.result.StatusWrites = f.sum("chandler_writes_total", "kind", "AddonDelivery", "verb", "status") / float64(r.p.Clusters)
	r.save(ctx, "mutex", "ready.mutex")
	return nil
}

func (r *run) allReady(ctx context.Context) error {
	if r.p.Flux {
		_, err := r.delivered(ctx)
		return err
	}
	if err := r.reporter.ready(ctx, r.observer.in(sets)); err != nil {
		return err
	}
	_, err := r.hub.quiet(ctx, settled)
	return err
}

// delivered waits until Flux has done all, and every delivery is Ready. It returns when the hub wrote the last of that.
func (r *run) delivered(ctx context.Context) (time.Time, error) {
	for {
		last, err := r.hub.quiet(ctx, settled)
		if err != nil {
			return last, err
		}
		// A hub that writes nothing may be waiting for Flux, which may take longer for one object.
		if left, err := r.undelivered(ctx); err != nil || left == 0 {
			return last, err
		}
	}
}

// fluxFollows reports every change as Flux would, if Flux does not run, until the caller calls the returned function.
func (r *run) fluxFollows(ctx context.Context) (stop func()) {
	if r.p.Flux {
		return func() {}
	}
	return r.observer.follow(r.works, func(o reported) {
		if err := r.reporter.report(ctx, o, "True", "ReconciliationSucceeded", "applied"); err != nil && ctx.Err() == nil {
			_, _ = fmt.Fprintln(r.out, "  report:", err)
		}
	})
}

// memory adds a fifth more clusters, and measures how much more memory the hub holds then.
func (r *run) memory(ctx context.Context) error {
	there, more := r.observer.count(), max(10, r.p.Clusters/5)
	if err := r.admit(ctx, names("more", more), labels()); err != nil {
		return err
	}
	err := r.observer.until(ctx, "a fifth more clusters", func() bool { return r.observer.count() >= there+more*r.p.Addons })
	if err != nil {
		return err
	}
	if err := r.allReady(ctx); err != nil {
		return err
	}
	all, err := r.measure(ctx)
	if err != nil {
		return err
	}
	r.larger = all
	objects := float64(all.objects - r.atRest.objects)
	r.result.ResidentMiB = r.atRest.resident / (1 << 20)
	r.result.KiBPerObject = (all.heap - r.atRest.heap) / 1024 / objects
	r.result.RSSKiBPerObject = (all.resident - r.atRest.resident) / 1024 / objects
	return nil
}

// change changes a value of one add-on on every cluster, and waits until it is reported Ready.
func (r *run) change(ctx context.Context) error {
	stop := r.fluxFollows(ctx)
	defer stop()
	before, err := r.hub.scrape(ctx)
	if err != nil {
		return err
	}
	processors, err := r.share(r.hub.process)
	if err != nil {
		return err
	}
	asked, err := r.askedSoFar(ctx)
	if err != nil {
		return err
	}
	begin := time.Now()
	r.profile(ctx, "change")
	changed := r.observer.changes()
	if err := r.changeSet(ctx, "v1"); err != nil {
		return err
	}
	if err := r.observer.until(ctx, "the change", func() bool { return r.observer.changes() >= changed+r.p.Clusters }); err != nil {
		return err
	}
	during, err := r.hub.writes(ctx)
	if err != nil {
		return err
	}
	if asked, err = r.askedSince(ctx, asked, r.p.Clusters); err != nil {
		return err
	}
	if _, _, err := r.shared(processors, all(asked)); err != nil {
		return err
	}
	r.result.ChangeSeconds = r.observer.last().Sub(begin).Seconds()
	r.result.ChangeWritesRatio = (during - before.writes()) / r.result.ChangeSeconds // over the bare client's, when that is known
	if _, err := r.hub.quiet(ctx, settled); err != nil {
		return err
	}
	after, err := r.hub.scrape(ctx)
	r.result.SetWrites = after.writes("AddonSet", "ControllerRevision") - before.writes("AddonSet", "ControllerRevision")
	r.result.WritesPerChangedCluster = (after.writes() - before.writes() - r.result.SetWrites) / float64(r.p.Clusters)
	return err
}

// finish divides the hub's rates by the bare client's.
func (r *run) finish() error {
	if r.result.RawPerSecond == 0 || r.result.RawChangesPerSecond == 0 {
		return errors.New("the bare client has not run")
	}
	r.result.FanoutRatio = r.result.FanoutPerSecond / r.result.RawPerSecond
	if r.result.ReplayPerSecond > 0 {
		r.result.ReplayRatio = r.result.FanoutPerSecond / r.result.ReplayPerSecond
	}
	r.result.WritesRatio /= r.result.RawPerSecond
	r.result.ChangeWritesRatio /= r.result.RawChangesPerSecond
	return nil
}
