// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"

	"k8s.io/client-go/util/workqueue"
)

// changes is a queue of keys that never blocks its callers and holds each key at most once.
type changes struct {
	out   chan string
	queue workqueue.TypedInterface[string]
}

func newChanges() *changes {
	return &changes{out: make(chan string), queue: workqueue.NewTyped[string]()}
}

func (c *changes) add(key string) { c.queue.Add(key) }

// deliver sends keys to out until ctx ends, then closes out.
func (c *changes) deliver(ctx context.Context) {
	defer close(c.out)
	defer context.AfterFunc(ctx, c.queue.ShutDown)()
	for {
		key, down := c.queue.Get()
		if down {
			return
		}
		// From here on a change of it counts as another one.
		c.queue.Done(key)
		select {
		case <-ctx.Done():
			return
		case c.out <- key:
		}
	}
}
