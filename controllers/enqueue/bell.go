// SPDX-License-Identifier: Apache-2.0

package enqueue

import (
	"context"
	"sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Bell is a source of events that come from the hub itself: one controller tells another something that no watch reports.
// Ring fills the queue before it returns, and never waits, so a reconcile may ring.
type Bell = BellOf[reconcile.Request]

// BellOf is a Bell for requests of another type. The zero value has no objects to ring for, only Enqueue.
type BellOf[R comparable] struct {
	of       handler.TypedMapFunc[client.Object, R]
	priority int

	mu     sync.Mutex
	queues []workqueue.TypedRateLimitingInterface[R]
}

// NewBell returns a bell that enqueues what of returns, each as what concerns one cluster or set.
func NewBell(of handler.MapFunc) *Bell { return &Bell{of: of} }

// NewFleetBell returns a bell that enqueues what of returns, as what concerns the whole fleet.
func NewFleetBell(of handler.MapFunc) *Bell { return &Bell{of: of, priority: Fleet} }

// Start is called by the controller that watches the bell. Rings before that are lost: the controller starts with
// everything that exists.
func (b *BellOf[R]) Start(_ context.Context, q workqueue.TypedRateLimitingInterface[R]) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queues = append(b.queues, q)
	return nil
}

// Ring enqueues what an object concerns.
func (b *BellOf[R]) Ring(ctx context.Context, obj client.Object) {
	if len(b.watching()) > 0 {
		b.Enqueue(b.of(ctx, obj)...)
	}
}

// Enqueue enqueues requests.
func (b *BellOf[R]) Enqueue(requests ...R) {
	for _, q := range b.watching() {
		if ordered, ok := q.(priorityqueue.PriorityQueue[R]); ok {
			ordered.AddWithOpts(priorityqueue.AddOpts{Priority: &b.priority}, requests...)
			continue
		}
		for _, req := range requests {
			q.Add(req)
		}
	}
}

func (b *BellOf[R]) watching() []workqueue.TypedRateLimitingInterface[R] {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.queues
}

// Itself returns the request for an object itself.
func Itself(_ context.Context, obj client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(obj)}}
}
