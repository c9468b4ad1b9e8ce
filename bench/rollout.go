// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

const (
	// hundred is how many clusters the sets have that change at the same time. The project KubeFleet publishes times for
	// as many.
	hundred = 100
	// fifth is one of how many clusters a smaller set has, whose rollout is compared with that of a set for all.
	fifth = 5
	// probeSeldom is how often the hub of a rollout probes at most: probes are not what is measured.
	probeSeldom = 10 * time.Minute
)

// RolloutResult is what a run with -rollout measured. Times are from the edit of a set to its condition RolloutComplete.
// Without Flux each object is reported Ready at once, so all of them are the hub's and the API server's.
type RolloutResult struct {
	Parameters
	CPUs            int     `json:"cpus"`
	Hundred         int     `json:"hundred"`
	OneAtOnce       float64 `json:"one_at_once_s" what:"one set, all clusters at once"`
	One             float64 `json:"one_s" what:"the same in three waves, half of each at once"`
	ManyAtOnce      float64 `json:"many_at_once_s_p90" what:"many sets at the same time, all clusters at once"`
	Many            float64 `json:"many_s_p90" what:"the same in three waves, half of each at once"`
	ManyRatio       float64 `json:"many_ratio" what:"the one over the other" atMost:"1.5"`
	ManyWritesRatio float64 `json:"many_writes_ratio" what:"writes of the same, the sets' own aside" atMost:"1.02"`
	AllAtOnce       float64 `json:"all_at_once_s" what:"one set for the whole fleet, all clusters at once"`
	All             float64 `json:"all_s" what:"the same in four waves"`
	AllRatio        float64 `json:"all_ratio" what:"the one over the other"`
	WritesAtOnce    float64 `json:"writes_per_cluster_at_once" what:"writes for each cluster of it, the set's own aside, all at once"`
	Writes          float64 `json:"writes_per_cluster" what:"in four waves"`
	WritesRatio     float64 `json:"writes_ratio" what:"the one over the other" atMost:"1.02"`
	SetWrites       float64 `json:"set_writes" what:"the set's own in four waves: its revision, and its status about once a second"`
	CPUFifth        float64 `json:"cpu_ms_per_cluster_fifth" what:"the hub's processor time for each, a set for a fifth of the fleet in four waves"`
	CPU             float64 `json:"cpu_ms_per_cluster" what:"a set for the whole fleet"`
	CPUGrowth       float64 `json:"cpu_growth" what:"the one over the other" atMost:"1.2"`
}

// rolled is what one rollout, or several at the same time, took.
type rolled struct {
	seconds           []float64 // of each set, from its edit
	writes, setWrites float64
	cpu               time.Duration
}

// benchRollouts measures a hundred clusters with one set and with many, and then the whole fleet, each with a hub of its own.
func benchRollouts(ctx context.Context, p Parameters, profiles string) error {
	if p.Clusters < 2*fifth || p.Sets < 0 {
		return fmt.Errorf("-clusters must be at least %d, and -sets at least 0, which leaves them out", 2*fifth)
	}
	p.Addons, p.ProbeInterval.Duration = 1, max(p.ProbeInterval.Duration, probeSeldom)
	fmt.Printf("rollouts: %d clusters, %d sets at the same time, Flux there: %t\n", p.Clusters, p.Sets, p.Flux)
	result := &RolloutResult{Parameters: p, CPUs: runtime.NumCPU(), Hundred: min(hundred, p.Clusters)}
	few := p
	few.Clusters = result.Hundred
	if p.Sets > 0 {
		if err := withRollouts(ctx, few, profiles, result, (*rollouts).many); err != nil {
			return err
		}
	}
	if err := withRollouts(ctx, p, profiles, result, (*rollouts).all); err != nil {
		return err
	}
	return write(os.Stdout, result, p.Addons)
}

// rollouts is a run that measures rollouts.
type rollouts struct {
	*run
	sets   *setWatch
	result *RolloutResult
	edits  int
}

func withRollouts(ctx context.Context, p Parameters, profiles string, result *RolloutResult,
	do func(*rollouts, context.Context) error) (err error) {
	f, err := startFleet(ctx, p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.stop()) }()
	r, err := newRun(f, p, os.Stdout)
	if err != nil {
		return err
	}
	r.profiles, r.works = profiles, 0
	watching, stop := context.WithCancel(ctx)
	defer stop()
	watch, err := watchSets(watching, r.raw.client)
	if err != nil {
		return err
	}
	if err := do(&rollouts{run: r, sets: watch, result: result}, ctx); err != nil {
		return errors.Join(err, fmt.Errorf("the end of the hub's log:\n%s", f.hub.process.Tail(30)))
	}
	return nil
}

// waved returns a spec.rollout. Each wave has the given size, of what is left, and the last one has all the rest. Without Flux
// nobody would find out which versions to pin.
func waved(sizes ...any) map[string]any {
	waves := make([]any, 0, len(sizes)+1)
	for i, size := range sizes {
		waves = append(waves, map[string]any{"name": fmt.Sprintf("wave-%d", i+1), "size": size, "maxConcurrency": "50%"})
	}
	waves = append(waves, map[string]any{"name": "last", "maxConcurrency": "50%"})
	return map[string]any{"sources": string(hubv1.FollowSources), "waves": waves}
}

var (
	atOnce     = map[string]any{"strategy": string(hubv1.AllAtOnceStrategy)}
	threeWaves = waved("33%", "50%")
	fourWaves  = waved(int64(1), "5%", "25%")
)

// many measures sets that have the same clusters: one, and then many at the same time.
func (r *rollouts) many(ctx context.Context) error {
	if err := r.registerFleet(ctx); err != nil {
		return err
	}
	all := make([]string, r.p.Sets)
	for i := range all {
		all[i] = fmt.Sprintf("set-%03d", i)
	}
	if err := r.fill(ctx, "yes", all[:1]); err != nil {
		return err
	}
	one, err := r.roll(ctx, "one at once", atOnce, all[:1])
	if err != nil {
		return err
	}
	r.result.OneAtOnce = one.last()
	if one, err = r.roll(ctx, "one in three waves", threeWaves, all[:1]); err != nil {
		return err
	}
	r.result.One = one.last()
	if err := r.fill(ctx, "yes", all[1:]); err != nil {
		return err
	}
	together, err := r.roll(ctx, "many at once", atOnce, all)
	if err != nil {
		return err
	}
	staged, err := r.roll(ctx, "many in three waves", threeWaves, all)
	if err != nil {
		return err
	}
	r.result.ManyAtOnce, r.result.Many = percentile(together.seconds, 0.9), percentile(staged.seconds, 0.9)
	r.result.ManyRatio, r.result.ManyWritesRatio = r.result.Many/r.result.ManyAtOnce, staged.writes/together.writes
	return nil
}

// all measures a set for the whole fleet, and one for a fifth of it.
func (r *rollouts) all(ctx context.Context) error {
	part := r.p.Clusters / fifth
	names := names("c", r.p.Clusters)
	some := labels()
	some["part"] = "fifth"
	if err := errors.Join(r.admit(ctx, names[:part], some), r.admit(ctx, names[part:], labels())); err != nil {
		return err
	}
	if err := r.reachable(ctx, r.p.Clusters); err != nil {
		return err
	}
	small, large := []string{"fifth"}, []string{"all"}
	if err := errors.Join(r.fill(ctx, "fifth", small), r.fill(ctx, "yes", large)); err != nil {
		return err
	}
	of, err := r.roll(ctx, "a fifth in four waves", fourWaves, small)
	if err != nil {
		return err
	}
	together, err := r.roll(ctx, "all at once", atOnce, large)
	if err != nil {
		return err
	}
	staged, err := r.roll(ctx, "all in four waves", fourWaves, large)
	if err != nil {
		return err
	}
	each := func(d time.Duration, n int) float64 { return float64(d.Microseconds()) / 1000 / float64(n) }
	n := float64(r.p.Clusters)
	r.result.AllAtOnce, r.result.All, r.result.AllRatio = together.last(), staged.last(), staged.last()/together.last()
	r.result.WritesAtOnce, r.result.Writes, r.result.WritesRatio = together.writes/n, staged.writes/n, staged.writes/together.writes
	r.result.SetWrites = staged.setWrites
	r.result.CPUFifth, r.result.CPU = each(of.cpu, part), each(staged.cpu, r.p.Clusters)
	r.result.CPUGrowth = r.result.CPU / r.result.CPUFifth
	return nil
}

// fill creates sets with one add-on each, whose names differ, for the clusters with a label, and waits until all is Ready.
func (r *rollouts) fill(ctx context.Context, label string, names []string) error {
	begin := time.Now()
	there, clusters := r.observer.count(), r.p.Clusters
	for _, name := range names {
		set := r.newSet(name, []string{name})
		if label == "fifth" {
			clusters = r.p.Clusters / fifth
			if err := unstructured.SetNestedField(set.Object, label, "spec", "clusterSelector", "matchLabels", "part"); err != nil {
				return err
			}
		}
		if err := r.management.Client.Create(ctx, set); err != nil {
			return err
		}
	}
	wanted := there + clusters*len(names)
	if err := r.observer.until(ctx, "the first delivery", func() bool { return r.observer.count() >= wanted }); err != nil {
		return err
	}
	if err := r.allReady(ctx); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(r.out, "  %-34s %6.1fs\n", fmt.Sprintf("%d sets delivered", len(names)), time.Since(begin).Seconds())
	return nil
}

// roll edits sets, which go to their clusters by a strategy, and waits until every rollout is complete.
func (r *rollouts) roll(ctx context.Context, what string, strategy map[string]any, names []string) (rolled, error) {
	var out rolled
	stop := r.fluxFollows(ctx)
	defer stop()
	before, err := r.hub.scrape(ctx)
	if err != nil {
		return out, err
	}
	cpu, err := r.hub.cpu()
	if err != nil {
		return out, err
	}
	if len(names) > 1 || r.p.Clusters > hundred { // a process takes one profile at a time, and others are over soon
		r.profile(ctx, strings.ReplaceAll(what, " ", "-"))
	}
	r.edits++
	color := fmt.Sprintf("v%d", r.edits)
	began := map[string]time.Time{}
	generations := map[string]int64{}
	for _, name := range names {
		began[name] = time.Now()
		if generations[name], err = r.edit(ctx, name, color, strategy); err != nil {
			return out, err
		}
	}
	done, err := r.sets.complete(ctx, generations)
	if err != nil {
		return out, err
	}
	after, err := r.hub.cpu()
	if err != nil {
		return out, err
	}
	out.cpu = after - cpu
	for name, at := range done {
		out.seconds = append(out.seconds, at.Sub(began[name]).Seconds())
	}
	if _, err := r.hub.quiet(ctx, settled); err != nil {
		return out, err
	}
	f, err := r.hub.scrape(ctx)
	out.setWrites = f.writes("AddonSet", "ControllerRevision") - before.writes("AddonSet", "ControllerRevision")
	out.writes = f.writes() - before.writes() - out.setWrites
	_, _ = fmt.Fprintf(r.out, "  %-34s %6.1fs  writes: %g, and %g of the sets; the hub: %.1fs of processor time\n",
		what, out.last(), out.writes, out.setWrites, out.cpu.Seconds())
	return out, err
}

// last returns how long the last set took.
func (r *rolled) last() float64 { return slices.Max(r.seconds) }

// edit changes the add-on of a set and its strategy, and returns the set's new generation.
func (r *rollouts) edit(ctx context.Context, name, color string, strategy map[string]any) (int64, error) {
	patch, err := json.Marshal([]map[string]any{
		{"op": "replace", "path": "/spec/addons/0/helmRelease/values/color", "value": color},
		{"op": "replace", "path": "/spec/rollout", "value": strategy},
	})
	if err != nil {
		return 0, err
	}
	set := &hubv1.AddonSet{}
	set.Namespace, set.Name = sets, name
	err = r.management.Client.Patch(ctx, set, client.RawPatch(types.JSONPatchType, patch))
	return set.Generation, err
}

// complete waits until the rollouts of these generations are complete, and returns when each was.
func (w *setWatch) complete(ctx context.Context, generations map[string]int64) (map[string]time.Time, error) {
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for {
		done := w.of(generations)
		if len(done) == len(generations) {
			return done, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%d of %d rollouts are complete, those of %v: %w", len(done), len(generations),
				slices.Sorted(maps.Keys(done)), context.Cause(ctx))
		case <-look.C:
		}
	}
}
