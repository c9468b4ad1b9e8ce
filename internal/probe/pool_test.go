// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/must"
)

// start runs the pool inside a synctest bubble, where time is simulated and a goroutine that is left over fails the test.
func start(t *testing.T, opts PoolOptions) (p *Pool, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	p = NewPool(opts)
	done := make(chan error)
	go func() { done <- p.Start(ctx) }()
	return p, func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Start returned %v", err)
		}
		for range p.Events() { // closed, after at most what was pending
		}
	}
}

// lasts waits for d of simulated time, or until ctx ends as Once would.
func lasts(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// fleet is a Prober for many clusters, some of them dead, that keeps count. Clusters are told apart by their token.
type fleet struct {
	mu                   sync.Mutex
	last                 map[string]time.Time
	gap                  map[string]time.Duration
	running, dead        int
	maxRunning, maxDead  int
	maxGoroutines, asked int
}

func newFleet() *fleet { return &fleet{last: map[string]time.Time{}, gap: map[string]time.Duration{}} }

const (
	healthyTakes = 50 * time.Millisecond
	deadTakes    = DefaultTotal
)

func (f *fleet) probe(ctx context.Context, cfg *kubeconfig.Config) Result {
	name := cfg.RESTConfig().BearerToken
	dead := strings.HasPrefix(name, "dead")
	f.count(name, dead, 1)
	defer f.count("", dead, -1)
	if dead {
		lasts(ctx, deadTakes)
		return Result{Time: time.Now(), Err: &Failure{Reason: ReasonTimedOut}}
	}
	lasts(ctx, healthyTakes)
	return Result{Time: time.Now(), Version: "v1.34.1"}
}

func (f *fleet) count(name string, dead bool, by int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running += by
	if dead {
		f.dead += by
	}
	f.maxRunning, f.maxDead = max(f.maxRunning, f.running), max(f.maxDead, f.dead)
	f.maxGoroutines = max(f.maxGoroutines, runtime.NumGoroutine())
	if name == "" {
		return
	}
	f.asked++
	if last, ok := f.last[name]; ok {
		f.gap[name] = max(f.gap[name], time.Since(last))
	}
	f.last[name] = time.Now()
}

// forget starts a new period of observation.
func (f *fleet) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gap, f.maxRunning, f.maxDead, f.asked = map[string]time.Duration{}, 0, 0, 0
}

// TestPoolFleet: 500 dead of 5,000 clusters stay within their half of the workers, and the others are probed on time.
func TestPoolFleet(t *testing.T) {
	const clusters, deadOnes, workers = 5000, 500, 64
	configs := make([]*kubeconfig.Config, clusters)
	for i := range configs {
		configs[i] = testConfig(t, fmt.Sprintf("live-%d", i))
		if i%(clusters/deadOnes) == 0 {
			configs[i] = testConfig(t, fmt.Sprintf("dead-%d", i))
		}
	}
	synctest.Test(t, func(t *testing.T) {
		before := runtime.NumGoroutine()
		f := newFleet()
		random := rand.New(rand.NewPCG(1, 2))
		p, stop := start(t, PoolOptions{Workers: workers, Probe: f.probe, Random: random.Float64})
		for i, c := range configs {
			p.Set(fmt.Sprint(i), c)
		}
		<-time.After(5 * time.Minute) // the first round: 500 times 10 s in 48 workers
		synctest.Wait()
		if diff := cmp.Diff(Stats{Healthy: clusters - deadOnes, Failing: deadOnes, Running: p.Stats().Running}, p.Stats()); diff != "" {
			t.Errorf("after the first round: -want, +got:\n%s", diff)
		}
		f.forget()
		<-time.After(5 * time.Minute)
		p.Set("newcomer", testConfig(t, "live-newcomer"))
		<-time.After(time.Second)
		if _, _, ok := p.Result("newcomer"); !ok {
			t.Error("a new cluster had to wait for more than a second")
		}
		stop()
		f.check(t, workers, before)
	})
}

func (f *fleet) check(t *testing.T, workers, before int) {
	t.Helper()
	if f.maxRunning > workers || f.maxDead > workers/2 {
		t.Errorf("%d probes at a time, %d of them of dead clusters; want at most %d and %d", f.maxRunning, f.maxDead, workers, workers/2)
	}
	if limit := before + workers + 8; f.maxGoroutines > limit {
		t.Errorf("%d goroutines, want at most %d", f.maxGoroutines, limit)
	}
	slowest := time.Duration(0)
	for name, gap := range f.gap {
		if strings.HasPrefix(name, "live") {
			slowest = max(slowest, gap)
		}
	}
	if slowest > 67*time.Second || slowest < 54*time.Second {
		t.Errorf("a healthy cluster was not probed for %s, want 60 s ± 10 %%", slowest)
	}
	t.Logf("%d probes in 5 min, at most %d at a time, %d of dead clusters; the slowest healthy one after %s", f.asked, f.maxRunning, f.maxDead, slowest)
}

// TestPoolSlow: clusters that answer just before their time is up keep nobody else waiting, and count as healthy.
func TestPoolSlow(t *testing.T) {
	const clusters = 500
	configs := make([]*kubeconfig.Config, clusters)
	for i := range configs {
		configs[i] = testConfig(t, fmt.Sprintf("slow-%d", i))
	}
	honest, newcomer := testConfig(t, "live-honest"), testConfig(t, "live-newcomer")
	synctest.Test(t, func(t *testing.T) {
		before := runtime.NumGoroutine()
		f := newFleet()
		p, stop := start(t, PoolOptions{Random: rand.New(rand.NewPCG(1, 2)).Float64, Probe: func(ctx context.Context, cfg *kubeconfig.Config) Result {
			if strings.HasPrefix(cfg.RESTConfig().BearerToken, "slow") {
				lasts(ctx, DefaultTotal-100*time.Millisecond)
			}
			return f.probe(ctx, cfg)
		}})
		p.Set("honest", honest)
		for i, c := range configs {
			p.Set(fmt.Sprint(i), c)
		}
		<-time.After(5 * time.Minute) // the first round: 500 times 10 s in 48 workers
		f.forget()
		<-time.After(5 * time.Minute)
		p.Set("newcomer", newcomer)
		<-time.After(time.Second)
		if _, _, ok := p.Result("newcomer"); !ok {
			t.Error("a new cluster had to wait for more than a second")
		}
		must.Equal(t, Stats{Healthy: clusters + 2, Running: DefaultWorkers / 2}, p.Stats())
		stop()
		f.check(t, DefaultWorkers, before)
	})
}

// TestPoolSuspects: at a hub's start, clusters that were down before do not delay the others.
func TestPoolSuspects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet()
		p, stop := start(t, PoolOptions{Workers: 8, Probe: f.probe})
		defer stop()
		for i := range 100 {
			name := fmt.Sprintf("dead-%d", i)
			p.SetSuspect(name, testConfig(t, name))
		}
		for i := range 100 {
			name := fmt.Sprintf("live-%d", i)
			p.Set(name, testConfig(t, name))
		}
		<-time.After(3 * time.Second) // 100 times 50 ms in two workers at least
		if got := p.Stats(); got.Healthy != 100 {
			t.Errorf("after 3 s: %+v", got)
		}
	})
}

// TestPoolKnown: at a hub's start, clusters that answered before are probed when their turn comes, and not all at once.
func TestPoolKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet()
		p, stop := start(t, PoolOptions{Workers: 8, Probe: f.probe})
		defer stop()
		for i := range 600 {
			name := fmt.Sprintf("live-%d", i)
			p.SetKnown(name, testConfig(t, name))
		}
		p.Set("live-new", testConfig(t, "live-new"))
		for _, tc := range []struct {
			after       time.Duration
			least, most int
		}{{time.Second, 1, 40}, {29 * time.Second, 230, 370}, {31 * time.Second, 601, 601}} {
			<-time.After(tc.after)
			if got := p.Stats(); got.Healthy < tc.least || got.Healthy > tc.most {
				t.Errorf("%s later: %+v, want %d to %d probed", tc.after, got, tc.least, tc.most)
			}
		}
		if _, _, ok := p.Result("live-new"); !ok {
			t.Error("what is new has waited")
		}
	})
}

func TestPoolEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		answer := Result{Version: "v1.34.1"}
		p, stop := start(t, PoolOptions{Workers: 2, Probe: func(context.Context, *kubeconfig.Config) Result {
			mu.Lock()
			defer mu.Unlock()
			return answer
		}})
		defer stop()
		first := testConfig(t, "1")
		p.Set("a", first)
		p.Set("b", testConfig(t, "2"))
		synctest.Wait()
		// Nobody received yet, and much time passes: each key is there once.
		<-time.After(10 * time.Minute)
		got := map[string]int{}
		for range 2 {
			got[<-p.Events()]++
		}
		must.Equal(t, map[string]int{"a": 1, "b": 1}, got)
		select {
		case key := <-p.Events():
			t.Errorf("an event for %q, though nothing changed", key)
		case <-time.After(10 * time.Minute):
		}
		mu.Lock()
		answer.Version = "v1.34.2"
		mu.Unlock()
		p.Now("a")
		if key := <-p.Events(); key != "a" {
			t.Errorf("an event for %q, want a", key)
		}
		result, fingerprint, ok := p.Result("a")
		if !ok || fingerprint != first.Fingerprint() || result.Version != "v1.34.2" {
			t.Errorf("got %+v, %q, %t", result, fingerprint, ok)
		}
	})
}

func TestPoolSetAndRemove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, stop := start(t, PoolOptions{Workers: 4, Probe: func(ctx context.Context, cfg *kubeconfig.Config) Result {
			if cfg.RESTConfig().BearerToken == "hangs" {
				lasts(ctx, time.Hour)
				return failed(ReasonCanceled)
			}
			return Result{Version: "v1.34.1"}
		}})
		defer stop()
		p.Set("a", testConfig(t, "hangs"))
		p.Set("b", testConfig(t, "hangs"))
		synctest.Wait()
		must.Equal(t, Stats{Unknown: 2, Running: 2}, p.Stats())
		rotated := testConfig(t, "works")
		p.Set("a", rotated) // ends the hanging probe and starts another
		p.Set("b", nil)     // removes
		synctest.Wait()
		must.Equal(t, Stats{Healthy: 1}, p.Stats())
		if _, fingerprint, ok := p.Result("a"); !ok || fingerprint != rotated.Fingerprint() {
			t.Errorf("no result with the rotated kubeconfig: %t", ok)
		}
		if _, _, ok := p.Result("b"); ok {
			t.Error("a removed key has a result")
		}
	})
}

// TestPoolStops: a stop ends the probes that run, and their failure is not taken for the clusters'.
func TestPoolStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, stop := start(t, PoolOptions{Workers: 3, Probe: func(ctx context.Context, _ *kubeconfig.Config) Result {
			<-ctx.Done()
			return failed(ReasonCanceled)
		}})
		for i := range 10 {
			p.Set(fmt.Sprint(i), testConfig(t, fmt.Sprint(i)))
		}
		synctest.Wait()
		stop()
		must.Equal(t, Stats{Unknown: 10}, p.Stats())
		p.Set("late", testConfig(t, "late")) // harmless
	})
}

// TestPoolConcurrently is for the race detector.
func TestPoolConcurrently(t *testing.T) {
	configs := []*kubeconfig.Config{testConfig(t, "1"), testConfig(t, "2"), nil}
	synctest.Test(t, func(t *testing.T) {
		p, stop := start(t, PoolOptions{Workers: 4, Interval: time.Millisecond, Probe: func(ctx context.Context, _ *kubeconfig.Config) Result {
			lasts(ctx, time.Millisecond)
			return Result{Nodes: rand.Int32()}
		}})
		go func() {
			for range p.Events() {
				p.Stats()
			}
		}()
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				for i := range 500 {
					key := fmt.Sprint(i % 7)
					p.Set(key, configs[i%len(configs)])
					p.Now(key)
					p.Result(key)
					<-time.After(time.Duration(rand.IntN(3)) * time.Millisecond)
				}
			})
		}
		group.Wait()
		stop()
		if got := p.Stats().Running; got != 0 {
			t.Errorf("%d probes still run", got)
		}
	})
}
