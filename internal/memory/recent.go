// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"container/list"
	"sync"
)

// Recent remembers the values that were used last: when they are more than a bound, those go that were not used for longest. What goes can
// be made again, at a cost. The zero value is ready for use, by several goroutines at a time.
type Recent[K comparable, V any] struct {
	mu    sync.Mutex
	all   map[K]*list.Element
	order list.List // of *recent, the last used first
	bytes int
}

// Bound is the most that a Recent remembers: how many values, and how many bytes for all of them, about; 0 is no bound.
type Bound struct{ Entries, Bytes int }

type recent[K comparable, V any] struct {
	key   K
	value V
	bytes int
}

// Get returns the value of a key; false if none is remembered.
func (r *Recent[K, V]) Get(key K) (value V, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := r.all[key]
	if at == nil {
		return value, false
	}
	r.order.MoveToFront(at)
	return at.Value.(*recent[K, V]).value, true
}

// GetOrPut returns the value of a key. If none is remembered it remembers another, beyond any bound: Put is to follow.
func (r *Recent[K, V]) GetOrPut(key K, other V) (value V, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at := r.all[key]; at != nil {
		r.order.MoveToFront(at)
		return at.Value.(*recent[K, V]).value, true
	}
	r.add(key, other, 0)
	return other, false
}

// Put remembers the value of a key, which takes so many bytes, about, and forgets what is beyond a bound. A value that is larger than the
// bound is not remembered.
func (r *Recent[K, V]) Put(key K, value V, bytes int, most Bound) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop(r.all[key])
	if most.Bytes > 0 && bytes > most.Bytes {
		return
	}
	r.add(key, value, bytes)
	for most.Entries > 0 && len(r.all) > most.Entries || most.Bytes > 0 && r.bytes > most.Bytes {
		r.drop(r.order.Back())
	}
}

// Delete forgets a key.
func (r *Recent[K, V]) Delete(key K) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop(r.all[key])
}

// Kept returns how many values are remembered, and how many bytes they take, about.
func (r *Recent[K, V]) Kept() (entries, bytes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.all), r.bytes
}

// add is for those who hold the lock.
func (r *Recent[K, V]) add(key K, value V, bytes int) {
	if r.all == nil {
		r.all = map[K]*list.Element{}
	}
	r.all[key] = r.order.PushFront(&recent[K, V]{key, value, bytes})
	r.bytes += bytes
}

// drop is for those who hold the lock.
func (r *Recent[K, V]) drop(at *list.Element) {
	if at == nil {
		return
	}
	gone := r.order.Remove(at).(*recent[K, V])
	r.bytes -= gone.bytes
	delete(r.all, gone.key)
}
