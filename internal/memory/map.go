// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"maps"
	"sync"
)

// Map remembers a value for each key. It has no bound of its own: its keys are objects of the cluster, and who uses it forgets a key when
// the object is gone. The zero value is ready for use, by several goroutines at a time.
type Map[K comparable, V any] struct {
	mu  sync.Mutex
	all map[K]V
}

// Get returns the value of a key; false if none is remembered.
func (m *Map[K, V]) Get(key K) (value V, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	value, known = m.all[key]
	return value, known
}

// Put remembers the value of a key.
func (m *Map[K, V]) Put(key K, value V) {
	m.Update(key, func(V, bool) (V, bool) { return value, true })
}

// Update replaces the value of a key by what a function makes of it, and forgets the key if the function does not keep it. No other call
// comes in between. So the function may read and change what the value points to, if all do so in Update; it may not use the Map.
func (m *Map[K, V]) Update(key K, do func(was V, known bool) (is V, keep bool)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	was, known := m.all[key]
	is, keep := do(was, known)
	switch {
	case !keep:
		delete(m.all, key)
		return
	case m.all == nil:
		m.all = map[K]V{}
	}
	m.all[key] = is
}

// Delete forgets a key.
func (m *Map[K, V]) Delete(key K) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.all, key)
}

// DeleteFunc forgets the keys for which a function returns true. The function may change what a value points to, as in Update.
func (m *Map[K, V]) DeleteFunc(of func(key K, value V) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.all, of)
}

// All returns all that is remembered now. The values are those of the Map, so they may not be changed.
func (m *Map[K, V]) All() map[K]V {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.all)
}

// Len returns how many keys are remembered.
func (m *Map[K, V]) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.all)
}
