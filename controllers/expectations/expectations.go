// SPDX-License-Identifier: Apache-2.0

// Package expectations tracks what a controller expects to see in its cache: the objects that it has written itself. While its cache is
// behind them, a controller would write the same thing twice, or decide wrongly.
package expectations

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/internal/memory"
)

// Wait is after how long to requeue if expectations are not satisfied: about what a watch takes on a busy API server.
const Wait = 100 * time.Millisecond

// timeout is how long an expectation lasts. If a user has deleted the object since, the cache never satisfies it.
const timeout = 3 * time.Second

// Object is what was written.
type Object struct {
	Kind string
	types.NamespacedName
}

// Expectations are those of a controller, by the key of its reconciles. The zero value is ready for use.
type Expectations[Key comparable] struct {
	of memory.Map[Key, map[Object]expectation]
}

// expectation is the resourceVersion that the cache is to show, or a newer one.
type expectation struct {
	version string
	since   time.Time
}

// Expect to see an object as it was written; obj is what the API server returned.
func (e *Expectations[Key]) Expect(key Key, kind string, obj client.Object, now time.Time) {
	e.of.Update(key, func(all map[Object]expectation, known bool) (map[Object]expectation, bool) {
		if !known {
			all = map[Object]expectation{}
		}
		all[Object{kind, client.ObjectKeyFromObject(obj)}] = expectation{obj.GetResourceVersion(), now}
		return all, true
	})
}

// Forget a key: its object is being deleted, or is gone.
func (e *Expectations[Key]) Forget(key Key) { e.of.Delete(key) }

// Satisfied returns whether the cache shows all that was written. cached returns an object's resourceVersion there, "" if the cache
// does not have it.
func (e *Expectations[Key]) Satisfied(key Key, cached func(Object) string, now time.Time) bool {
	satisfied := true
	e.of.Update(key, func(all map[Object]expectation, _ bool) (map[Object]expectation, bool) {
		for o, want := range all {
			if now.Sub(want.since) < timeout && older(cached(o), want.version) {
				satisfied = false
				continue
			}
			delete(all, o)
		}
		return all, !satisfied
	})
	return satisfied
}

// older returns whether one resourceVersion is older than another; false if either is none.
func older(version, than string) bool {
	if version == "" {
		return true
	}
	c, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && c < 0
}
