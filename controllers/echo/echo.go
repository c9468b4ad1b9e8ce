// SPDX-License-Identifier: Apache-2.0

// Package echo tracks which of a controller's own writes its cache does not show yet. While the cache is stale, a controller
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

// Writes are those of a controller, by the key of its reconciles. The zero value is ready for use.
type Writes[Key comparable] struct {
	mu     sync.Mutex
	writes map[Key]map[Object]written
}

type written struct {
	version string
	at      time.Time
}

// Note that an object was written; obj is what the API server returned.
func (w *Writes[Key]) Note(key Key, kind string, obj client.Object, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.writes == nil {
		w.writes = map[Key]map[Object]written{}
	}
	if w.writes[key] == nil {
		w.writes[key] = map[Object]written{}
	}
	w.writes[key][Object{kind, client.ObjectKeyFromObject(obj)}] = written{obj.GetResourceVersion(), now}
}

// Forget a key: its object is being deleted, or is gone.
func (w *Writes[Key]) Forget(key Key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.writes, key)
}

// Behind returns whether the cache does not show all that was written. cached returns an object's resourceVersion there, "" if the
// cache does not have it.
func (w *Writes[Key]) Behind(key Key, cached func(Object) string, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	behind := false
	for o, wrote := range w.writes[key] {
		if now.Sub(wrote.at) < patience && older(cached(o), wrote.version) {
			behind = true
			continue
		}
		delete(w.writes[key], o)
	}
	if !behind {
		delete(w.writes, key)
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
