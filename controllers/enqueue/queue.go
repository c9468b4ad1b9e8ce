// SPDX-License-Identifier: Apache-2.0

package enqueue

import (
	"cmp"
	"container/heap"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// now is the priority of a request whose turn has come: before all that changes.
const now = 1

// turn is how often what has waited longest comes, whatever its priority: with each fourth request.
const turn = 4

// Options returns the options of a controller: how many requests it works on at a time, and a queue in which no request waits for good.
//
// controller-runtime's own queue is strict: a request waits as long as there is one of a higher priority. A tenant who changes twenty
// objects of his own in a loop would keep it busy with them, and what a platform's set asks of the fleet, or the look at everything after a
// start, would never come (docs/adr/0031-nobody-waits-for-good.md).
func Options(concurrency int) controller.Options { return OptionsOf[reconcile.Request](concurrency) }

// OptionsOf is Options for a controller with requests of its own.
func OptionsOf[R comparable](concurrency int) controller.TypedOptions[R] {
	return controller.TypedOptions[R]{
		MaxConcurrentReconciles: concurrency,
		NewQueue: func(name string, limiter workqueue.TypedRateLimiter[R]) workqueue.TypedRateLimitingInterface[R] {
			return &turns[R]{
				PriorityQueue: priorityqueue.New(name, func(o *priorityqueue.Opts[R]) { o.RateLimiter = limiter }),
				limiter:       limiter, low: map[R]*waiting[R]{},
			}
		},
	}
}

// turns is controller-runtime's priority queue, which hands out the request of a low priority that has waited longest with each fourth
// request.
type turns[R comparable] struct {
	priorityqueue.PriorityQueue[R]
	limiter workqueue.TypedRateLimiter[R]

	mu     sync.Mutex
	before int // how many have come in a row before one that waits for longer, and has a lower priority
	// low are the requests of a low priority that wait, or whose time has not come. byTime has those whose turn has not come.
	low    map[R]*waiting[R]
	byTime byTime[R]
	added  int // requests of a low priority so far
}

// waiting is a request of a low priority.
type waiting[R comparable] struct {
	request  R
	priority int // below 0
	due      time.Time
	place    int // among those that are due at the same time
	index    int // in byTime, -1 if its turn has come
}

// AddWithOpts implements priorityqueue.PriorityQueue.
func (q *turns[R]) AddWithOpts(o priorityqueue.AddOpts, requests ...R) {
	if o.Priority == nil || *o.Priority >= 0 {
		q.mu.Lock()
		for _, r := range requests {
			q.forget(r)
		}
		q.mu.Unlock()
		q.PriorityQueue.AddWithOpts(o, requests...)
		return
	}
	for _, r := range requests {
		one := o
		if o.RateLimited { // as the queue would do; its time is needed here
			if after := q.limiter.When(r); o.After == 0 || after < o.After {
				one.After = after
			}
			one.RateLimited = false
		}
		q.wait(r, *o.Priority, time.Now().Add(one.After))
		q.PriorityQueue.AddWithOpts(one, r)
	}
}

// Add implements workqueue.TypedInterface.
func (q *turns[R]) Add(r R) { q.AddWithOpts(priorityqueue.AddOpts{}, r) }

// AddAfter implements workqueue.TypedDelayingInterface.
func (q *turns[R]) AddAfter(r R, after time.Duration) {
	q.AddWithOpts(priorityqueue.AddOpts{After: after}, r)
}

// AddRateLimited implements workqueue.TypedRateLimitingInterface.
func (q *turns[R]) AddRateLimited(r R) { q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, r) }

// wait notes a request of a low priority, and when its time comes.
func (q *turns[R]) wait(r R, priority int, due time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := q.low[r]
	if w == nil {
		q.added++
		w = &waiting[R]{request: r, priority: priority, due: due, place: q.added}
		q.low[r] = w
		heap.Push(&q.byTime, w)
		return
	}
	w.priority = max(w.priority, priority)
	if w.index >= 0 && due.Before(w.due) {
		w.due = due
		heap.Fix(&q.byTime, w.index)
	}
}

// forget drops a request that does not wait with a low priority any more, and returns what was noted of it, nil for nothing.
func (q *turns[R]) forget(r R) *waiting[R] {
	w := q.low[r]
	if w == nil {
		return nil
	}
	delete(q.low, r)
	if w.index >= 0 {
		heap.Remove(&q.byTime, w.index)
	}
	return w
}

// Get implements workqueue.TypedInterface.
func (q *turns[R]) Get() (R, bool) {
	r, _, shutdown := q.GetWithPriority()
	return r, shutdown
}

// GetWithPriority implements priorityqueue.PriorityQueue. The priority of a request whose turn has come is the one that it was added with:
// controller-runtime adds it with that again.
//
// What was noted of a request until here is dropped, also if it was added again in the moment between: the worker that gets it begins after
// this, and sees what that was about.
func (q *turns[R]) GetWithPriority() (r R, priority int, shutdown bool) {
	r, priority, shutdown = q.PriorityQueue.GetWithPriority()
	if shutdown {
		return r, priority, true
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if w := q.forget(r); priority == now {
		priority = 0 // it has changed after its turn had come
		if w != nil {
			priority = w.priority
		}
	}
	q.next(priority)
	return r, priority, false
}

// next has the request come next that has waited longest, if others of a higher priority have come before it often enough. priority is that
// of the last one.
func (q *turns[R]) next(priority int) {
	if len(q.byTime) == 0 || priority <= q.byTime[0].priority || q.byTime[0].due.After(time.Now()) {
		q.before = 0
		return
	}
	if q.before++; q.before < turn-1 {
		return
	}
	q.before = 0
	w := heap.Pop(&q.byTime).(*waiting[R])
	q.PriorityQueue.AddWithOpts(priorityqueue.AddOpts{Priority: new(now)}, w.request)
}

// byTime is a heap of requests, that whose time has come first on top.
type byTime[R comparable] []*waiting[R]

// Len implements heap.Interface.
func (h byTime[R]) Len() int { return len(h) }

// Less implements heap.Interface.
func (h byTime[R]) Less(i, j int) bool {
	return cmp.Or(h[i].due.Compare(h[j].due), cmp.Compare(h[i].place, h[j].place)) < 0
}

// Swap implements heap.Interface.
func (h byTime[R]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push implements heap.Interface.
func (h *byTime[R]) Push(x any) {
	w := x.(*waiting[R])
	w.index = len(*h)
	*h = append(*h, w)
}

// Pop implements heap.Interface.
func (h *byTime[R]) Pop() any {
	last := len(*h) - 1
	w := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	w.index = -1
	return w
}
