// SPDX-License-Identifier: Apache-2.0

package probe_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/probe"
)

// The fleet of TestPoolCapacity: more clusters than a Pool may have goroutines or connections. The workers are the Pool's own; only times
// are shortened.
const (
	capacityHealthy  = 1350
	capacityDead     = 150
	capacityInterval = 1500 * time.Millisecond
	// A dead cluster costs this much at first, so that the first round ends soon,
	capacityBrief = 200 * time.Millisecond
	// is probed again so soon at the latest,
	capacityRetry = 2 * capacityBrief
	// and costs this much from then on: more than the whole test takes, so that dead clusters hold all workers that they can get.
	capacityPatient = 5 * time.Minute
	// capacitySamples are as many intervals of healthy clusters as a run waits for, for capacityWindow at most.
	capacitySamples = 500
	capacityWindow  = 8 * time.Second
	// capacitySlow is how much longer the median interval may be with dead clusters around. Without limits for the dead it is
	// longer than the test; a machine that gets busy in the middle of the test makes it a little longer, too.
	capacitySlow = 3
)

// Bounds that do not depend on the number of clusters. A probe has a worker, a dial, a handshake, the two loops of its
// connection, and here also the two goroutines of the server. The server sees later than the client that a connection ended.
const (
	capacityGoroutines  = 10 * probe.DefaultWorkers
	capacityConnections = 4 * probe.DefaultWorkers
)

// TestPoolCapacity probes 1,500 targets at real servers, first without the dead ones, then with them. What the Pool uses
// stays within the same bounds, the healthy ones are probed on time, and nothing is left in the end. TestPoolFleet is the
// same with simulated time and without connections.
func TestPoolCapacity(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	healthy, dead := []target{}, []target{}
	s := newServers(t)
	for i := range capacityHealthy {
		healthy = append(healthy, s.healthy(t, i))
	}
	for i := range capacityDead {
		dead = append(dead, s.dead(t, i))
	}
	alone := measure(t, s, healthy)
	var together time.Duration
	for range 2 { // once more if the machine was busy just then
		together = measure(t, s, mixed(healthy, dead))
		if together <= capacitySlow*alone {
			return
		}
		alone = max(alone, measure(t, s, healthy))
	}
	t.Errorf("healthy clusters are probed every %s beside dead ones, every %s without; want at most %d times as long", together, alone, capacitySlow)
}

// target is one cluster. Configs are told apart by their address in memory.
type target struct {
	config *kubeconfig.Config
	dead   bool
}

// mixed puts the dead between the others.
func mixed(healthy, dead []target) []target {
	out := slices.Clone(healthy)
	for i, d := range dead {
		out = slices.Insert(out, i*len(out)/len(dead), d)
	}
	return out
}

// measure runs a Pool with the targets and returns the median of the healthy ones' intervals.
func measure(t *testing.T, s *servers, targets []target) time.Duration {
	t.Helper()
	before, files := runtime.NumGoroutine(), openFiles()
	f := newCapacityFleet(targets)
	p := probe.NewPool(probe.PoolOptions{
		Interval: capacityInterval, Retry: capacityBrief / 2, AuthRetry: capacityBrief / 2, MaxRetry: capacityRetry,
		Probe: f.probe, Random: func() float64 { return 0.5 },
	})
	for i, target := range targets {
		p.Set(fmt.Sprint(i), target.config)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var running sync.WaitGroup
	running.Go(func() { _ = p.Start(ctx) })
	running.Go(func() { drain(p.Events()) })
	running.Go(func() { f.watch(ctx, s) })

	await(t, time.Minute, "the first round ends", func() bool { return p.Stats().Unknown == 0 })
	if got := p.Stats(); got.Healthy != f.count(false) || got.Failing != f.count(true) {
		t.Errorf("after the first round: %+v", got)
	}
	f.patient.Store(true)
	time.Sleep(2 * capacityRetry) // the dead come back, and hold all workers that they can get
	f.observed.Store(true)
	for end := time.Now().Add(capacityWindow); f.samples() < capacitySamples && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	median, samples := f.median()
	if samples < capacitySamples/10 {
		t.Errorf("only %d healthy clusters were probed again within %s", samples, capacityWindow)
	}
	cancel()
	ended := make(chan struct{})
	go func() { running.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(slack): // the probes of dead clusters are in the midst of capacityPatient
		t.Fatalf("the pool still runs %s after its context ended", slack)
	}
	f.check(t, before, files)
	t.Logf("%d targets: %d probes, at most %d at a time; at most %d goroutines, %d connections at servers, %d files; median of %d intervals %s",
		len(targets), f.probes.Load(), f.most.running, f.most.goroutines-before, f.most.open, f.most.files-files, samples, median)
	await(t, slack, "no connection and no goroutine is left", func() bool {
		return s.open.Load() == 0 && runtime.NumGoroutine() <= before && openFiles() <= files
	})
	return median
}

func drain(events <-chan string) {
	for range events { // closed when the Pool ends
	}
}

// await waits until ok, which must not take longer than limit.
func await(t *testing.T, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not after %s: %s", limit, what)
		}
	}
}

// openFiles counts the process's open files, to see connections that no server sees; 0 where the system does not tell.
func openFiles() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(entries)
}

// capacityFleet is a Prober that keeps count of what probe.Once does.
type capacityFleet struct {
	targets map[*kubeconfig.Config]target
	probes  atomic.Int64
	dials   atomic.Int64
	// patient: the dead take their time. observed: intervals count.
	patient, observed atomic.Bool

	mu      sync.Mutex
	running int
	last    map[*kubeconfig.Config]time.Time
	gaps    []time.Duration
	most    struct{ running, goroutines, open, files int }
}

func newCapacityFleet(targets []target) *capacityFleet {
	f := &capacityFleet{targets: map[*kubeconfig.Config]target{}, last: map[*kubeconfig.Config]time.Time{}}
	for _, t := range targets {
		f.targets[t.config] = t
	}
	return f
}

func (f *capacityFleet) count(dead bool) int {
	n := 0
	for _, t := range f.targets {
		if t.dead == dead {
			n++
		}
	}
	return n
}

func (f *capacityFleet) probe(ctx context.Context, cfg *kubeconfig.Config) probe.Result {
	target := f.targets[cfg]
	opts := probe.Options{Dial: time.Minute, Total: time.Minute, Resolver: f} // a busy machine makes nobody dead
	opts.Rules = loopback
	opts.Rules.AllowHTTP = true
	if target.dead {
		opts.Dial, opts.Total = capacityBrief, capacityBrief
		if f.patient.Load() {
			opts.Dial, opts.Total = capacityPatient, capacityPatient
		}
	}
	f.probes.Add(1)
	f.note(cfg, target.dead, 1)
	defer f.note(cfg, true, -1)
	return probe.Once(ctx, cfg, opts)
}

// LookupNetIP counts the dials; each begins with it.
func (f *capacityFleet) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	f.dials.Add(1)
	addr, err := netip.ParseAddr(host)
	return []netip.Addr{addr}, err
}

func (f *capacityFleet) note(cfg *kubeconfig.Config, dead bool, by int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running += by
	f.most.running = max(f.most.running, f.running)
	f.most.goroutines = max(f.most.goroutines, runtime.NumGoroutine())
	if dead {
		return
	}
	now := time.Now()
	if last, ok := f.last[cfg]; ok && f.observed.Load() {
		f.gaps = append(f.gaps, now.Sub(last))
	}
	f.last[cfg] = now
}

func (f *capacityFleet) samples() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.gaps)
}

func (f *capacityFleet) median() (time.Duration, int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.gaps) == 0 {
		return capacityWindow, 0
	}
	sorted := slices.Sorted(slices.Values(f.gaps))
	return sorted[len(sorted)/2].Round(time.Millisecond), len(sorted)
}

// watch looks at the process and the servers all the time.
func (f *capacityFleet) watch(ctx context.Context, s *servers) {
	for ctx.Err() == nil {
		files, open := openFiles(), int(s.open.Load())
		f.mu.Lock()
		f.most.files, f.most.open = max(f.most.files, files), max(f.most.open, open)
		f.most.goroutines = max(f.most.goroutines, runtime.NumGoroutine())
		f.mu.Unlock()
		time.Sleep(5 * time.Millisecond)
	}
}

// check holds what was counted against the bounds.
func (f *capacityFleet) check(t *testing.T, before, files int) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.most.running > probe.DefaultWorkers {
		t.Errorf("%d probes at a time, want at most %d", f.most.running, probe.DefaultWorkers)
	}
	// Each probe has one connection; one that is given up may begin another dial, which gets nowhere.
	if dials, probes := f.dials.Load(), f.probes.Load(); dials > probes+probe.DefaultWorkers {
		t.Errorf("%d dials in %d probes", dials, probes)
	}
	if got := f.most.goroutines - before; got > capacityGoroutines {
		t.Errorf("%d goroutines, want at most %d", got, capacityGoroutines)
	}
	if f.most.open > capacityConnections {
		t.Errorf("%d connections at the servers, want at most %d", f.most.open, capacityConnections)
	}
	if got := f.most.files - files; got > capacityConnections+probe.DefaultWorkers { // both ends are in this process
		t.Errorf("%d open files, want at most %d", got, capacityConnections+probe.DefaultWorkers)
	}
}

// servers are the real servers behind the targets. Many targets share one, since only the Pool's side is of interest.
type servers struct {
	open   atomic.Int64 // connections that the servers have accepted and not yet closed
	secure []*kubeconfig.Config
	plain  []*kubeconfig.Config
	gone   []*kubeconfig.Config // one per way to be dead
}

func newServers(t *testing.T) *servers {
	s := &servers{}
	answers := map[string]string{
		"/version":                       `{"gitVersion":"v1.34.1"}`,
		"/api/v1/namespaces/kube-system": `{"metadata":{"name":"kube-system","uid":"11111111-2222-3333-4444-555555555555"}}`,
		"/api/v1/nodes":                  `{"kind":"PartialObjectMetadataList","metadata":{},"items":[{}]}`,
	}
	healthy := func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, answers[r.URL.Path]) }
	hangs := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	for range 4 { // several, so that the kernel does not run out of ports for one
		s.secure = append(s.secure, config(t, s.serve(t, testCA.tls(nil), healthy)))
		s.plain = append(s.plain, plain(t, s.serve(t, nil, healthy)))
	}
	for _, server := range []string{
		"127.0.0.1:1", // refuses: not a port that another program gets by chance
		neverAccepts(t),
		raw(t, s.counted(untilClosed)),     // accepts and does not say a word
		rawTLS(t, s.counted(untilClosed)),  // hangs after the handshake
		s.serve(t, testCA.tls(nil), hangs), // hangs in HTTP
	} {
		s.gone = append(s.gone, config(t, server))
	}
	return s
}

// healthy returns the i-th healthy target. A handshake costs a busy machine about a millisecond, so most do without.
func (s *servers) healthy(t *testing.T, i int) target {
	t.Helper()
	if i%9 == 0 {
		return copied(s.secure[i%len(s.secure)], false)
	}
	return copied(s.plain[i%len(s.plain)], false)
}

func (s *servers) dead(t *testing.T, i int) target {
	t.Helper()
	return copied(s.gone[i%len(s.gone)], true)
}

// copied gives a Config an address of its own.
func copied(c *kubeconfig.Config, dead bool) target {
	clone := *c
	return target{config: &clone, dead: dead}
}

// serve starts a server that counts its connections.
func (s *servers) serve(t *testing.T, config *tls.Config, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			s.open.Add(1)
		case http.StateClosed, http.StateHijacked:
			s.open.Add(-1)
		}
	}
	if config != nil {
		server.TLS = config
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

func (s *servers) counted(handle func(net.Conn)) func(net.Conn) {
	return func(conn net.Conn) {
		s.open.Add(1)
		defer s.open.Add(-1)
		handle(conn)
	}
}

// neverAccepts listens and leaves the connections to the kernel, as a process does that is stopped.
func neverAccepts(t *testing.T) string {
	t.Helper()
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0")).Or(t)
	t.Cleanup(func() { _ = listener.Close() })
	return listener.Addr().String()
}

// plain returns a kubeconfig for a server without TLS.
func plain(t *testing.T, server string) *kubeconfig.Config {
	t.Helper()
	rules := loopback
	rules.AllowHTTP = true
	c, err := kubeconfig.Parse(fmt.Appendf(nil, "contexts: [{name: c, context: {cluster: c, user: c}}]\n"+
		"users: [{name: c, user: {token: hunter2}}]\nclusters: [{name: c, cluster: {server: \"http://%s\"}}]\n", server), rules)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
