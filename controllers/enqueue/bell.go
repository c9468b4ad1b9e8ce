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

// Bell is a source of events that come from the hub itself: one room tells another something that no watch reports.
// Ring fills the queue before it returns, and never waits, so a reconcile may ring.
type Bell struct {
	of       handler.MapFunc
	priority int

	mu     sync.Mutex
	queues []workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// NewBell returns a bell that enqueues what of returns, each as what concerns one cluster or set.
func NewBell(of handler.MapFunc) *Bell { return &Bell{of: of} }

// NewFleetBell returns a bell that enqueues what of returns, as what concerns the whole fleet.
func NewFleetBell(of handler.MapFunc) *Bell { return &Bell{of: of, priority: Fleet} }

// Start is called by the controller that watches the bell. Rings before that are lost: the controller starts with
// everything that exists.
func (b *Bell) Start(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queues = append(b.queues, q)
	return nil
}

// Ring enqueues what an object concerns.
func (b *Bell) Ring(ctx context.Context, obj client.Object) {
	b.mu.Lock()
	queues := b.queues
	b.mu.Unlock()
	if len(queues) == 0 {
		return
	}
	requests := b.of(ctx, obj)
	for _, q := range queues {
		if ordered, ok := q.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
			ordered.AddWithOpts(priorityqueue.AddOpts{Priority: &b.priority}, requests...)
			continue
		}
		for _, req := range requests {
			q.Add(req)
		}
	}
}

// Itself returns the request for an object itself.
func Itself(_ context.Context, obj client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(obj)}}
}
