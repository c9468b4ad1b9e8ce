// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/chandler-hub/chandler/controllers"
	"github.com/chandler-hub/chandler/controllers/discovery"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/controllers/tenure"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/manifestchart"
	"github.com/chandler-hub/chandler/internal/origin"
	"github.com/chandler-hub/chandler/internal/probe"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/test/simulation/apiserver"
)

// hub is one process of the hub: the controllers as controllers.AddControllers sets them up, with their real watches, predicates
// and map functions, on a cache that lags and queues that are worked off one by one. What is in its memory is lost
// with it.
type hub struct {
	cache  *apiserver.Cache
	pool   *probe.Pool
	loops  []*loop
	cancel context.CancelFunc
	tenure tenure.Tenure
	// began is when it began, and asked are the addresses that it has asked since.
	began time.Time
	asked map[string]bool
	// dead is true when the process has crashed: nothing that it still does has an effect.
	dead bool
	// again is when the pool is to be asked again.
	again time.Time
	// leads is false once another process leads, and writes of this one are still on their way: until when, and how many at most.
	leads  bool
	until  time.Time
	writes int
	// live is what it reads live.
	live *apiserver.Reader
}

// controller is a controller and its queue.
type loop struct {
	hub   *hub
	name  string
	queue workQueue
	// run takes a request off the queue and reconciles it.
	run func(ctx context.Context, request string) error
}

// workQueue is what the simulation needs of a queue of whatever requests.
type workQueue interface {
	ready(now time.Time) []string
	// first is the first of ready.
	first(now time.Time) (string, bool)
	next() (time.Time, bool)
}

var errCrashed = errors.New("this process has crashed")

// startHub starts a process with a cache that is complete.
func (w *World) startHub() {
	ctx, cancel := context.WithCancel(context.Background())
	h := &hub{leads: true, began: w.clock.Now(), asked: map[string]bool{}, cancel: cancel,
		cache: apiserver.NewCache(w.server, w.scheme, index.CacheOptions())}
	gate := func(verb string, k apiserver.Key) (before, after error) {
		if h.dead || w.tooLate(h, verb) {
			return errCrashed, nil
		}
		if w.interleave(h, k); h.dead {
			return errCrashed, nil
		}
		return w.gate(h, verb, k)
	}
	h.pool = probe.NewPool(probe.PoolOptions{Interval: w.config.ProbeInterval, Clock: w.clock, Random: func() float64 {
		return 0.5
	}, Probe: func(ctx context.Context, cfg *kubeconfig.Config) probe.Result {
		h.asked[cfg.Host()] = true
		return w.probe(ctx, cfg)
	}})
	h.live = &apiserver.Reader{Server: w.server, Scheme: w.scheme, Gate: gate}
	m := &processManager{world: w, hub: h}
	m.client = &apiserver.Client{Reader: cachedReader{h.cache, w, gate}, Server: w.server, Types: w.scheme, Actor: "hub", Gate: gate}
	must(index.Add(ctx, h.cache))
	must(controllers.AddControllers(m, w.config, controllers.World{
		Client: m.client, Pool: h.pool, Token: w.token, Probe: w.probeOnce, Clock: w.clock, HubUID: "hub", Tenure: &h.tenure,
	}))
	for _, c := range m.warm {
		must(c.Warmup(ctx))
	}
	h.tenure.Renew(w.clock.Now())
	w.hub, w.hubBegan, w.away = h, h.began, false
	w.flux.forgotten(w)
	w.noteAnswers()
	for _, i := range h.cache.Informers() {
		i.Deliver() // to those who have just begun to watch
	}
}

// cachedReader asks the gate before it reads from the cache.
type cachedReader struct {
	client.Reader
	world *World
	gate  apiserver.Gate
}

// Get implements client.Reader.
func (r cachedReader) Get(ctx context.Context, name client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if r.world.asked != nil {
		k, err := apiserver.KeyOf(r.world.scheme, obj, name)
		if err != nil {
			return err
		}
		if err, _ := r.gate("cached get", k); err != nil {
			return err
		}
	}
	return r.Reader.Get(ctx, name, obj, opts...)
}

// List implements client.Reader.
func (r cachedReader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if r.world.asked != nil {
		k, err := apiserver.KeyOf(r.world.scheme, list, types.NamespacedName{})
		if err != nil {
			return err
		}
		if err, _ := r.gate("cached list", k); err != nil {
			return err
		}
	}
	r.world.checkList(list, opts)
	return r.Reader.List(ctx, list, opts...)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// overlap starts a process while writes of the one before are on their way, so many at most, for 15 seconds. That one stood still: it has
// decided them by what its cache showed then, and by what it had read. It sends no others, since it has its Lease no more (cmd/hub,
// onlyLeading).
func (w *World) overlap(writes int) {
	if w.hub == nil || w.former != nil {
		return
	}
	w.former, w.hub = w.hub, nil
	w.former.live.Server = w.server.Snapshot()
	w.former.leads, w.former.until, w.former.writes = false, w.clock.Now().Add(15*time.Second), writes
	w.former.tenure.Renew(w.clock.Now().Add(-15 * time.Second)) // after which another one may lead
	w.startHub()
}

// tooLate ends a process that does not lead any more, when all that it has sent has arrived.
func (w *World) tooLate(h *hub, verb string) bool {
	if !h.leads && !onlyReads(verb) {
		h.writes--
		h.dead = h.writes < 0
	}
	return h.dead
}

func onlyReads(verb string) bool {
	return verb == "get" || verb == "list" || strings.HasPrefix(verb, "cached ")
}

// hubs are the processes that are at work.
func (w *World) hubs() []*hub {
	if f := w.former; f != nil && (f.dead || w.clock.Now().After(f.until)) {
		w.endFormer()
	}
	var out []*hub
	for _, h := range []*hub{w.former, w.hub} {
		if h != nil {
			out = append(out, h)
		}
	}
	return out
}

func (w *World) endFormer() {
	if f := w.former; f != nil {
		f.dead = true
		f.cancel()
		w.former = nil
	}
}

// stopHub ends the process as kill -9 does.
func (w *World) stopHub() {
	w.endFormer()
	if w.hub == nil {
		return
	}
	w.hub.dead = true
	w.hub.cancel()
	w.hub = nil
}

// processManager is a manager.Manager with what the controllers use of one.
type processManager struct {
	manager.Manager // nil: nothing else is used
	world           *World
	hub             *hub
	client          client.Client
	warm            []interface{ Warmup(context.Context) error }
}

func (m *processManager) GetScheme() *runtime.Scheme           { return m.world.scheme }
func (m *processManager) GetCache() cache.Cache                { return m.hub.cache }
func (m *processManager) GetClient() client.Client             { return m.client }
func (m *processManager) GetAPIReader() client.Reader          { return m.hub.live }
func (m *processManager) GetFieldIndexer() client.FieldIndexer { return m.hub.cache }
func (m *processManager) GetLogger() logr.Logger               { return logr.Discard() }
func (m *processManager) GetRESTMapper() meta.RESTMapper       { return everyKind{} }

func (m *processManager) GetEventRecorder(string) events.EventRecorder {
	return recorder{m.world, m.hub}
}

func (m *processManager) GetControllerOptions() config.Controller {
	return config.Controller{SkipNameValidation: new(true)}
}

// Add takes controllers. It drives the pool of probes by steps, and passes its results on.
func (m *processManager) Add(r manager.Runnable) error {
	switch c := r.(type) {
	case controller.TypedController[reconcile.Request]:
		takeIn(m, c, reconcile.Request.String)
	case controller.TypedController[discovery.Request]:
		takeIn(m, c, func(r discovery.Request) string { return r.Kind.GroupKind.Kind + " " + r.NamespacedName.String() })
	}
	return nil
}

// takeIn gives a controller a queue of the simulation's. Controllers are made with one by their options; these are made by the controllers,
// and controller-runtime has no place where a manager could name it. So it is put where the option went.
func takeIn[R comparable](m *processManager, c controller.TypedController[R], naming func(R) string) {
	v := reflect.ValueOf(c).Elem()
	name := v.FieldByName("Name").String()
	q := &queue[R]{world: m.world, naming: naming, dirty: map[R]bool{}, later: map[R]time.Time{}, failures: map[R]int{}}
	v.FieldByName("NewQueue").Set(
		reflect.ValueOf(func(string, workqueue.TypedRateLimiter[R]) workqueue.TypedRateLimitingInterface[R] { return q }))
	v.FieldByName("EnableWarmup").Set(reflect.ValueOf(new(true))) // Warmup starts the watches, and no worker with them
	v.FieldByName("RecoverPanic").Set(reflect.ValueOf(new(false)))
	m.warm = append(m.warm, c.(interface{ Warmup(context.Context) error }))
	m.hub.loops = append(m.hub.loops, &loop{hub: m.hub, name: name, queue: q, run: func(ctx context.Context, request string) error {
		req, ok := q.take(request)
		if !ok {
			return nil
		}
		result, err := c.Reconcile(ctx, req)
		switch { // as internal/controller's reconcileHandler does
		case err != nil:
			q.AddRateLimited(req)
		case result.RequeueAfter > 0:
			q.Forget(req)
			q.AddAfter(req, result.RequeueAfter)
		default:
			q.Forget(req)
		}
		return err
	}})
}

// everyKind is a RESTMapper that knows every kind.
type everyKind struct{ meta.RESTMapper }

func (everyKind) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	return &meta.RESTMapping{GroupVersionKind: gk.WithVersion(versions[0])}, nil
}

// queue is a work queue without goroutines: a set of requests, and timers on the simulation's clock.
type queue[R comparable] struct {
	workqueue.TypedRateLimitingInterface[R] // nil: the rest is never called
	world                                   *World
	naming                                  func(R) string
	dirty                                   map[R]bool
	later                                   map[R]time.Time
	// soonest is the first time in later, zero for none.
	soonest  time.Time
	failures map[R]int
}

func (q *queue[R]) Add(r R) {
	q.dirty[r] = true
}

func (q *queue[R]) AddAfter(r R, d time.Duration) {
	if d <= 0 {
		q.Add(r)
		return
	}
	now := q.world.clock.Now()
	q.settle(now)
	at := now.Add(d)
	if was, ok := q.later[r]; !ok || at.Before(was) {
		q.later[r] = at
		if q.soonest.IsZero() || at.Before(q.soonest) {
			q.soonest = at
		}
	}
}

// AddRateLimited backs off as the default limiter does for one item: 5 ms, doubled, up to 1000 s.
func (q *queue[R]) AddRateLimited(r R) {
	d := min(5*time.Millisecond<<min(q.failures[r], 20), 1000*time.Second)
	q.failures[r]++
	q.AddAfter(r, d)
}

func (q *queue[R]) Forget(r R)          { delete(q.failures, r) }
func (q *queue[R]) NumRequeues(r R) int { return q.failures[r] }
func (q *queue[R]) ShutDown()           {}
func (q *queue[R]) Done(R)              {}
func (q *queue[R]) Len() int            { return len(q.dirty) }

// settle queues what has waited until now.
func (q *queue[R]) settle(now time.Time) {
	if q.soonest.IsZero() || q.soonest.After(now) {
		return
	}
	q.soonest = time.Time{}
	for r, at := range q.later {
		if !at.After(now) {
			delete(q.later, r)
			q.dirty[r] = true
		} else if q.soonest.IsZero() || at.Before(q.soonest) {
			q.soonest = at
		}
	}
}

func (q *queue[R]) first(now time.Time) (name string, ok bool) {
	q.settle(now)
	for r := range q.dirty {
		if n := q.naming(r); !ok || n < name {
			name, ok = n, true
		}
	}
	return name, ok
}

// ready returns the requests that may be reconciled, sorted.
func (q *queue[R]) ready(now time.Time) []string {
	q.settle(now)
	if len(q.dirty) == 0 {
		return nil
	}
	out := make([]string, 0, len(q.dirty))
	for r := range q.dirty {
		out = append(out, q.naming(r))
	}
	slices.Sort(out)
	return out
}

// next returns when the next timer is over.
func (q *queue[R]) next() (time.Time, bool) {
	return q.soonest, !q.soonest.IsZero()
}

func (q *queue[R]) take(name string) (R, bool) {
	for r := range q.dirty {
		if q.naming(r) == name {
			delete(q.dirty, r)
			return r, true
		}
	}
	var none R
	return none, false
}

// event is an event of the hub.
type event struct {
	at            time.Time
	kind, about   string
	reason, words string
	warning       bool
}

// recorder notes events.
type recorder struct {
	world *World
	hub   *hub
}

func (r recorder) Eventf(regarding, _ runtime.Object, typ, reason, _, note string, args ...any) {
	if r.hub.dead {
		return
	}
	about, _ := regarding.(client.Object)
	e := event{at: r.world.clock.Now(), reason: reason, words: fmt.Sprintf(note, args...), warning: typ == corev1.EventTypeWarning}
	if about != nil {
		e.kind, e.about = fmt.Sprintf("%T", regarding), about.GetNamespace()+"/"+about.GetName()
	}
	r.world.events = append(r.world.events, e)
}

const usualRetention = 10 * time.Minute

// flags returns the configuration that a hub's flags give.
func flags() *hubconfig.Config {
	return &hubconfig.Config{
		Shared: hubconfig.Shared{
			HubID:              "chandler",
			PlatformNamespaces: []string{"chandler-system", "flux-system"},
			Chart: render.ManifestChart{URL: "http://chandler.chandler-system.svc", Name: manifestchart.Name,
				Digest: manifestchart.Digest()},
			Origins: origin.Policy{SecretNamespaces: []string{"chandler-system", "flux-system", "fleet", "team"}},
		},
		DeselectionDelay: 5 * time.Minute, TeardownGrace: time.Hour, RemovalDelay: 5 * time.Second, ChartRetention: usualRetention,
		ProbeInterval: time.Minute, Concurrency: 1,
	}
}

// ring tells the registration controller what the pool found out.
func (h *hub) ring(key types.NamespacedName) {
	for _, r := range h.loops {
		if r.name == "registration" {
			r.queue.(*queue[reconcile.Request]).Add(reconcile.Request{NamespacedName: key})
		}
	}
}
