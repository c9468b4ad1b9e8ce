// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"maps"
	"slices"
	"sync"
)

// Readers remembers who reads what: a change of what is read wakes its readers, and what nobody reads any more need not be kept. It has no
// bound of its own: who reads nothing any more is forgotten. The zero value is ready for use, by several goroutines at a time.
type Readers[R, K comparable] struct {
	mu    sync.Mutex
	of    map[K]map[R]bool // whether they have read it since Prune
	reads map[R][]K        // the same, by reader
}

// Note notes that a reader reads something, which may not exist.
func (r *Readers[R, K]) Note(reader R, key K) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of, r.reads = map[K]map[R]bool{}, map[R][]K{}
	}
	if r.of[key] == nil {
		r.of[key] = map[R]bool{}
	}
	if _, noted := r.of[key][reader]; !noted {
		r.reads[reader] = append(r.reads[reader], key)
	}
	r.of[key][reader] = true
}

// Prune forgets what a reader has not read since his last Prune, and returns what of it nobody reads any more. It is called when he has
// read all that he reads now.
func (r *Readers[R, K]) Prune(reader R) (unread []K) {
	return r.leave(reader, func(key K) bool {
		has := r.of[key][reader]
		if has {
			r.of[key][reader] = false
		}
		return has
	})
}

// Forget forgets a reader who reads nothing any more, and returns what nobody reads any more.
func (r *Readers[R, K]) Forget(reader R) (unread []K) {
	return r.leave(reader, func(K) bool { return false })
}

func (r *Readers[R, K]) leave(reader R, stays func(K) bool) (unread []K) {
	r.mu.Lock()
	defer r.mu.Unlock()
	left := slices.DeleteFunc(r.reads[reader], func(key K) bool {
		if stays(key) {
			return false
		}
		delete(r.of[key], reader)
		if len(r.of[key]) == 0 {
			delete(r.of, key)
			unread = append(unread, key)
		}
		return true
	})
	if len(left) == 0 {
		delete(r.reads, reader)
		return unread
	}
	r.reads[reader] = left
	return unread
}

// Of returns the readers of something.
func (r *Readers[R, K]) Of(key K) []R {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.of[key]))
}

// Notes returns how many times it is noted that somebody reads something.
func (r *Readers[R, K]) Notes() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, read := range r.reads {
		n += len(read)
	}
	return n
}
