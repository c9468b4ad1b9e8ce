// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/chandler-hub/chandler/internal/kubeconfig"
)

// Defaults of PoolOptions.
const (
	DefaultWorkers   = 64
	DefaultInterval  = time.Minute
	DefaultRetry     = 2 * time.Second
	DefaultAuthRetry = time.Second
	DefaultMaxRetry  = 5 * time.Minute
	DefaultSlow      = DefaultTotal / 4
)

// FailureThreshold is the number of failures in a row at which the Pool reports a target once more, although nothing but the
// number changed: after the first failure a cluster may just have hiccuped, now it is down.
const FailureThreshold = 3

// Prober asks one cluster. It must return soon after ctx ends and within a bound of its own in any case.
type Prober func(ctx context.Context, cfg *kubeconfig.Config) Result

// PoolOptions configure a Pool. Zero fields take their defaults.
type PoolOptions struct {
	// Workers is the number of probes at a time, and so of connections. Failing and slow targets together get at most half of them.
	Workers int
	// Interval is the time between two probes of a cluster that answers; ±10 % at random.
	Interval time.Duration
	// Retry is the time to the second probe of one that fails; it doubles up to MaxRetry; ±10 % at random.
	Retry time.Duration
	// AuthRetry replaces Retry after Unauthorized, Forbidden and NotReady, which a young cluster answers for a moment.
	AuthRetry time.Duration
	// MaxRetry bounds Retry and AuthRetry.
	MaxRetry time.Duration
	// Slow is how long the answer of a target takes at most that is not slow. What is slow is probed as often as others.
	Slow time.Duration
	// Probe asks one cluster. Default Once with zero Options.
	Probe Prober
	// Clock runs the schedule. Default the system's.
	Clock clock.Clock
	// Random returns numbers in [0,1) for the jitter. Default math/rand.
	Random func() float64
}

func (o PoolOptions) withDefaults() PoolOptions {
	if o.Workers <= 0 {
		o.Workers = DefaultWorkers
	}
	for _, d := range []struct {
		value    *time.Duration
		fallback time.Duration
	}{
		{&o.Interval, DefaultInterval}, {&o.Retry, DefaultRetry}, {&o.AuthRetry, DefaultAuthRetry}, {&o.MaxRetry, DefaultMaxRetry},
		{&o.Slow, DefaultSlow},
	} {
		if *d.value <= 0 {
			*d.value = d.fallback
		}
	}
	if o.Probe == nil {
		o.Probe = func(ctx context.Context, cfg *kubeconfig.Config) Result { return Once(ctx, cfg, Options{}) }
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Random == nil {
		o.Random = rand.Float64
	}
	return o
}

// Pool keeps probing a changing set of clusters. All methods are safe for concurrent use, also before Start.
type Pool struct {
	probe   Prober
	clock   clock.Clock
	workers int
	wake    chan struct{}
	changes *changes

	mu       sync.Mutex
	schedule *schedule
}

// NewPool returns a Pool that probes once Start runs.
func NewPool(opts PoolOptions) *Pool {
	opts = opts.withDefaults()
	return &Pool{
		probe:   opts.Probe,
		clock:   opts.Clock,
		workers: opts.Workers,
		wake:    make(chan struct{}, 1),
		changes: newChanges(),
		schedule: newSchedule(opts.Workers, timing{
			interval: opts.Interval, retry: opts.Retry, authRetry: opts.AuthRetry, maxRetry: opts.MaxRetry,
			slow: opts.Slow, jitter: opts.Random,
		}),
	}
}

// Set adds the cluster of key, or changes its kubeconfig; nil removes it. If the fingerprint of the kubeconfig has
// changed, the Pool probes the cluster at once, with a fresh back-off. Otherwise Set does nothing, so callers may
// call it at any time.
func (p *Pool) Set(key string, cfg *kubeconfig.Config) {
	p.put(key, cfg, laneNew, atOnce)
}

// SetSuspect is Set for a cluster that was down according to the status that an earlier process of the hub wrote. It
// waits among the failing clusters, so that at a start hundreds of dead clusters do not delay the first probe of all
// others.
func (p *Pool) SetSuspect(key string, cfg *kubeconfig.Config) {
	p.put(key, cfg, laneFailing, atOnce)
}

// SetKnown is Set for a cluster that answered with this kubeconfig according to that status. Its first probe comes at
// a random time within PoolOptions.Interval, as without a restart. So a restarted hub does not probe thousands of
// clusters at once, or all in the same second of every minute from then on.
func (p *Pool) SetKnown(key string, cfg *kubeconfig.Config) {
	p.put(key, cfg, laneNew, p.schedule.sometime)
}

func atOnce() time.Duration { return 0 }

func (p *Pool) put(key string, cfg *kubeconfig.Config, to lane, wait func() time.Duration) {
	if cfg == nil {
		p.Remove(key)
		return
	}
	p.update(func(now time.Time) { p.schedule.set(key, cfg, to, now.Add(wait())) })
}

// Remove forgets the cluster of key and ends its probe if one is running. No event follows.
func (p *Pool) Remove(key string) {
	p.update(func(time.Time) { p.schedule.remove(key) })
}

// Now probes the cluster of key as soon as a worker is free, with a fresh back-off, because there is a sign that it
// may answer. If a probe is running, another one follows it.
func (p *Pool) Now(key string) {
	p.update(func(now time.Time) { p.schedule.hurry(key, now) })
}

// Result returns the last result for key, and the fingerprint of the kubeconfig that it was obtained with. After Set
// with a changed kubeconfig it returns the old result until there is a new one. The boolean is false before the first
// result.
func (p *Pool) Result(key string) (Result, string, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t, ok := p.schedule.targets[key]
	if !ok || !t.known {
		return Result{}, "", false
	}
	return t.result, t.fingerprint, true
}

// Events returns the keys whose result changed materially: the first result with each kubeconfig; answering or not;
// another reason of failure; the FailureThreshold reached; another version, UID or number of nodes. A key that
// changes several times before it is received comes once, so a slow receiver blocks nothing. There may be one
// receiver. The channel is closed when Start returns.
func (p *Pool) Events() <-chan string { return p.changes.out }

// Stats counts the clusters of a Pool.
type Stats struct {
	// Healthy, Unknown and Failing add up to all: answered, however slowly; not yet probed with their kubeconfig; failed or suspect.
	Healthy, Unknown, Failing int
	// Running is the number of probes at work.
	Running int
}

// Stats returns the present numbers.
func (p *Pool) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.schedule
	return Stats{
		Healthy: s.members[laneHealthy] + s.members[laneSlow], Unknown: s.members[laneNew],
		Failing: s.members[laneFailing] + s.members[laneFailed],
		Running: s.running[laneHealthy] + s.running[laneNew] + s.running[laneFailing] + s.running[laneSlow] +
			s.running[laneFailed],
	}
}

// Recent counts the clusters whose last probe ended after a moment, and those of them that failed.
func (p *Pool) Recent(since time.Time) (probed, failed int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.schedule.targets {
		if !t.known || !t.result.Time.After(since) {
			continue
		}
		probed++
		if t.result.Err != nil {
			failed++
		}
	}
	return probed, failed
}

// NeedLeaderElection makes a controller-runtime manager start the Pool only on the leader: a standby need not probe.
func (p *Pool) NeedLeaderElection() bool { return true }

// Start probes until ctx ends; then it ends the probes that run, waits for them and returns nil. It may be called once.
func (p *Pool) Start(ctx context.Context) error {
	work := make(chan *job)
	var running sync.WaitGroup
	for range p.workers {
		running.Go(func() { p.work(ctx, work) })
	}
	running.Go(func() { p.changes.deliver(ctx) })
	p.dispatch(ctx, work)
	close(work)
	running.Wait()
	return nil
}

// Step probes the clusters that are due, one after another. It returns the keys that Events would send, in the order
// of the answers, and when the next probe is due; false if that is not known. It is an alternative to Start for
// callers with a clock of their own. Use one or the other.
func (p *Pool) Step(ctx context.Context) (changed []string, wait time.Duration, timed bool) {
	for {
		p.mu.Lock()
		now := p.clock.Now()
		j := p.schedule.next(ctx, now)
		if j == nil {
			wait, timed = p.schedule.wait(now)
			p.mu.Unlock()
			return changed, wait, timed
		}
		p.mu.Unlock()
		result := p.probe(j.ctx, j.cfg)
		p.mu.Lock()
		if p.schedule.finish(j, result, p.clock.Now()) {
			changed = append(changed, j.target.key)
		}
		p.mu.Unlock()
	}
}

// update changes the schedule and lets the dispatcher look at it.
func (p *Pool) update(change func(now time.Time)) {
	p.mu.Lock()
	change(p.clock.Now())
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default: // it is going to look anyway
	}
}

// dispatch hands due targets to the workers until ctx ends.
func (p *Pool) dispatch(ctx context.Context, work chan<- *job) {
	for ctx.Err() == nil {
		p.mu.Lock()
		now := p.clock.Now()
		j := p.schedule.next(ctx, now)
		wait, timed := p.schedule.wait(now)
		p.mu.Unlock()
		if j != nil {
			// The schedule starts no more probes than there are workers, so one of them is about to receive.
			work <- j
			continue
		}
		p.sleep(ctx, wait, timed)
	}
}

// sleep returns after wait, if timed, when the schedule changed, or when ctx ended.
func (p *Pool) sleep(ctx context.Context, wait time.Duration, timed bool) {
	var due <-chan time.Time
	if timed {
		timer := p.clock.NewTimer(wait)
		defer timer.Stop()
		due = timer.C()
	}
	select {
	case <-ctx.Done():
	case <-p.wake:
	case <-due:
	}
}

// work probes what it receives.
func (p *Pool) work(ctx context.Context, jobs <-chan *job) {
	for j := range jobs {
		result := p.probe(j.ctx, j.cfg)
		changed := false
		p.update(func(now time.Time) {
			if ctx.Err() != nil && result.Err != nil { // the Pool stops: the failure is its own
				p.schedule.abandon(j)
				return
			}
			changed = p.schedule.finish(j, result, now)
		})
		if changed {
			p.changes.add(j.target.key)
		}
	}
}
