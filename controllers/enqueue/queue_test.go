// SPDX-License-Identifier: Apache-2.0

package enqueue

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// queueOf returns a queue as the controllers have it, until the test ends.
func queueOf(t *testing.T) priorityqueue.PriorityQueue[reconcile.Request] {
	q := newQueue(t)
	t.Cleanup(q.ShutDown)
	return q
}

func newQueue(t *testing.T) priorityqueue.PriorityQueue[reconcile.Request] {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Second, time.Minute)
	return Options(1).NewQueue(t.Name(), limiter).(priorityqueue.PriorityQueue[reconcile.Request])
}

// Somebody who changes a few objects of his own all the time has them looked at again and again. All others still come to their turn,
// the longest waiting first: of four requests, one is the turn of what has waited longest.
func TestNobodyWaitsForGood(t *testing.T) {
	for name, waiting := range map[string]priorityqueue.AddOpts{
		"what a set asks of all":  {Priority: new(Fleet)},
		"the same, after a delay": {Priority: new(Fleet), After: time.Millisecond},
		"what a first list holds": {Priority: new(handler.LowPriority)},
		"a failure at a start":    {Priority: new(Urgent), RateLimited: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const fleet, hot = 100, 20
				q := queueOf(t)
				for i := range fleet {
					q.AddWithOpts(waiting, named(fmt.Sprintf("fleet-%03d", i)))
				}
				time.Sleep(time.Minute) // synctest's clock: every delay is over
				for i := range hot {
					q.Add(named(fmt.Sprintf("hot-%d", i)))
				}
				var seen []string
				for taken := 0; len(seen) < fleet; taken++ {
					if taken > 4*fleet+hot {
						t.Fatalf("%d of %d clusters were looked at in %d turns", len(seen), fleet, taken)
					}
					req, priority, _ := q.GetWithPriority()
					if name := req.Name; name[0] == 'f' {
						if want := fmt.Sprintf("fleet-%03d", len(seen)); name != want {
							t.Fatalf("%s came before %s, which waits for longer", name, want)
						}
						seen = append(seen, name)
						if priority != *waiting.Priority {
							t.Fatalf("%s comes with priority %d, want its own, %d: it keeps it when it is looked at again", name, priority, *waiting.Priority)
						}
					} else {
						q.Add(req) // it has changed meanwhile
					}
					q.Done(req)
				}
			})
		})
	}
}

// What waits for its time does not come sooner because others wait, and what has come is not looked at once more.
func TestTurnsKeepDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queueOf(t)
		q.AddWithOpts(priorityqueue.AddOpts{Priority: new(Fleet), After: time.Hour}, named("later"))
		q.AddWithOpts(priorityqueue.AddOpts{Priority: new(Fleet)}, named("fleet"))
		q.Add(named("fleet")) // and it changes: it goes first as anything that changes
		for i := range 10 {
			q.Add(named(fmt.Sprintf("own-%d", i)))
		}
		var seen []string
		for range 11 {
			req, _ := q.Get()
			seen = append(seen, req.Name)
			q.Done(req)
		}
		synctest.Wait()
		if q.Len() > 0 || slices.Contains(seen, "later") || seen[0] != "fleet" {
			t.Errorf("looked at %q, and %d are left", seen, q.Len())
		}
		time.Sleep(time.Hour)
		if req, priority, _ := q.GetWithPriority(); req != named("later") || priority != Fleet {
			t.Errorf("%v comes with priority %d", req, priority)
		}
	})
}

// What changes when its turn has come goes on as anything that changes, and not before it.
func TestTurnOfWhatChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queueOf(t)
		q.AddWithOpts(priorityqueue.AddOpts{Priority: new(Fleet)}, named("fleet"))
		for i := range turn + 1 {
			q.Add(named(fmt.Sprintf("own-%d", i)))
		}
		for range turn - 1 {
			req, _ := q.Get()
			q.Done(req)
		}
		q.Add(named("fleet"))
		if req, priority, _ := q.GetWithPriority(); req != named("fleet") || priority != 0 {
			t.Errorf("%v comes with priority %d, want what has waited longest, with that of what changes", req, priority)
		}
	})
}

// What is handed out with its own priority, and not because its turn has come, keeps that: a cluster that changes while it waits with the
// fleet, and fails, does not wait for the fleet then.
func TestAnEventRaisesAnyRequest(t *testing.T) {
	for name, add := range map[string]func(priorityqueue.PriorityQueue[reconcile.Request], reconcile.Request){
		"at once": func(q priorityqueue.PriorityQueue[reconcile.Request], r reconcile.Request) { q.Add(r) },
		"after a delay": func(q priorityqueue.PriorityQueue[reconcile.Request], r reconcile.Request) {
			q.AddAfter(r, time.Second)
		},
		"failed": func(q priorityqueue.PriorityQueue[reconcile.Request], r reconcile.Request) { q.AddRateLimited(r) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := queueOf(t)
				q.AddWithOpts(priorityqueue.AddOpts{Priority: new(handler.LowPriority)}, named("a"), named("b"))
				add(q, named("b"))
				time.Sleep(time.Minute)
				if req, priority, _ := q.GetWithPriority(); req != named("b") || priority != 0 {
					t.Errorf("%v comes with priority %d", req, priority)
				}
			})
		})
	}
}

// At a start, each request is looked at once, by several workers.
func TestNothingIsLookedAtTwice(t *testing.T) {
	const requests, workers = 2000, 8
	q := newQueue(t)
	for i := range requests {
		q.AddWithOpts(priorityqueue.AddOpts{Priority: new(handler.LowPriority)}, named(fmt.Sprint(i)))
	}
	var seen [requests]atomic.Int32
	var left atomic.Int32
	left.Store(requests)
	var working sync.WaitGroup
	for range workers {
		working.Go(func() {
			for {
				req, priority, shutdown := q.GetWithPriority()
				if shutdown {
					return
				}
				i, err := strconv.Atoi(req.Name)
				if err != nil || priority != handler.LowPriority || seen[i].Add(1) > 1 {
					t.Errorf("%v comes with priority %d, after %d times", req, priority, seen[i].Load()-1)
				}
				q.Done(req)
				if left.Add(-1) == 0 {
					q.ShutDown()
				}
			}
		})
	}
	working.Wait()
}

// A request that fails waits longer each time, whatever its priority, and a success forgets that.
func TestTurnsKeepBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queueOf(t)
		begin := time.Now()
		var waits []time.Duration
		fail := errors.New("fails")
		for _, err := range []error{fail, fail, fail, nil, fail} {
			if err == nil {
				q.Forget(named("a"))
				continue
			}
			q.AddWithOpts(priorityqueue.AddOpts{Priority: new(Fleet), RateLimited: true}, named("a"))
			req, _ := q.Get()
			waits = append(waits, time.Since(begin))
			begin = time.Now()
			q.Done(req)
		}
		if want := []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, time.Second}; !slices.Equal(waits, want) {
			t.Errorf("waited %v, want %v", waits, want)
		}
	})
}
