// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"sync"
)

// changes is a queue of keys that never blocks whoever adds and holds each key at most once.
type changes struct {
	out  chan string
	wake chan struct{}

	mu      sync.Mutex
	order   []string
	pending map[string]bool
}

func newChanges() *changes {
	return &changes{out: make(chan string), wake: make(chan struct{}, 1), pending: map[string]bool{}}
}

func (c *changes) add(key string) {
	c.mu.Lock()
	if !c.pending[key] {
		c.pending[key] = true
		c.order = append(c.order, key)
	}
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// take removes the oldest key. From here on a change of it counts as another one.
func (c *changes) take() (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.order) == 0 {
		c.order = nil // lets go of the array
		return "", false
	}
	key := c.order[0]
	c.order = c.order[1:]
	delete(c.pending, key)
	return key, true
}

// deliver sends keys to out until ctx ends, then closes out.
func (c *changes) deliver(ctx context.Context) {
	defer close(c.out)
	for {
		key, ok := c.take()
		if !ok {
			select {
			case <-ctx.Done():
				return
			case <-c.wake:
			}
			continue
		}
		select {
		case <-ctx.Done():
			return
		case c.out <- key:
		}
	}
}
