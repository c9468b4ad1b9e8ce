// SPDX-License-Identifier: Apache-2.0

// Package echo tracks which of a room's own writes its cache does not show yet. While the cache is stale, a room
// would write the same thing twice, or decide wrongly.
package echo

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Wait is after how long to requeue if the cache is behind: about what a watch takes on a busy API server.
const Wait = 100 * time.Millisecond

// patience is how long the cache may lack a write. If a user has deleted the object since, it never shows.
const patience = 3 * time.Second

// Object is what was written.
type Object struct {
	Kind string
	types.NamespacedName
}

// Writes are those of a room, by the key of its reconciles. The zero value is ready for use.
type Writes[Room comparable] struct {
	mu     sync.Mutex
	writes map[Room]map[Object]written
}

type written struct {
	version string
	at      time.Time
}

// Note that an object was written; obj is what the API server returned.
func (w *Writes[Room]) Note(room Room, kind string, obj client.Object, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.writes == nil {
		w.writes = map[Room]map[Object]written{}
	}
	if w.writes[room] == nil {
		w.writes[room] = map[Object]written{}
	}
	w.writes[room][Object{kind, client.ObjectKeyFromObject(obj)}] = written{obj.GetResourceVersion(), now}
}

// Forget a key: its object is being deleted, or is gone.
func (w *Writes[Room]) Forget(room Room) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.writes, room)
}

// Behind returns whether the cache does not show all that was written. cached returns an object's resourceVersion there, "" if the
// cache does not have it.
func (w *Writes[Room]) Behind(room Room, cached func(Object) string, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	behind := false
	for o, wrote := range w.writes[room] {
		if now.Sub(wrote.at) < patience && older(cached(o), wrote.version) {
			behind = true
			continue
		}
		delete(w.writes[room], o)
	}
	if !behind {
		delete(w.writes, room)
	}
	return behind
}

// older returns whether one resourceVersion is older than another; false if either is none.
func older(version, than string) bool {
	if version == "" {
		return true
	}
	c, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && c < 0
}
