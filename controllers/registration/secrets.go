// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/origin"
)

// secretCache remembers the result of checking the Secret that each registration has read last, so that a reconcile for
// another reason does not read it again. Registrations that read the same share the result: it may be a quarter of a
// mebibyte, and a user who may write registrations can have a thousand name one Secret.
type secretCache struct {
	mu      sync.Mutex
	entries map[view]*secretEntry
	last    map[types.NamespacedName]view // by registration
}

// view is what is read of a Secret: which one it is, and what decides what is found there.
type view struct {
	secret                   types.NamespacedName
	key, candidates, context string
	services                 bool // whether its rules accept Services: all else in them is the same for all
}

func viewOf(secret types.NamespacedName, source origin.Source, rules kubeconfig.Rules) view {
	return view{secret, source.Key, strings.Join(source.Candidates, "\n"), source.Context, rules.AllowServices}
}

type secretEntry struct {
	uid     types.UID
	version string
	readers int // how many registrations have read it last
	parsed
}

type parsed struct {
	resolution
	reason string
	err    error
}

// get returns what was found in a Secret, if it has not changed since.
func (c *secretCache) get(reg types.NamespacedName, as view, meta metav1.Object) (parsed, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[as]
	if e == nil || e.uid != meta.GetUID() || e.version != meta.GetResourceVersion() {
		return parsed{}, false
	}
	c.note(reg, as)
	return e.parsed, true
}

func (c *secretCache) put(reg types.NamespacedName, as view, meta metav1.Object, p parsed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries == nil {
		c.entries, c.last = map[view]*secretEntry{}, map[types.NamespacedName]view{}
	}
	e := c.entries[as]
	if e == nil {
		e = &secretEntry{}
		c.entries[as] = e
	}
	e.uid, e.version, e.parsed = meta.GetUID(), meta.GetResourceVersion(), p
	c.note(reg, as)
}

// note notes what a registration has read last. The caller holds the lock.
func (c *secretCache) note(reg types.NamespacedName, as view) {
	if was, ok := c.last[reg]; ok && was == as {
		return
	}
	c.release(reg)
	c.last[reg] = as
	c.entries[as].readers++
}

// drop forgets what a registration has read, unless another one has read the same.
func (c *secretCache) drop(reg types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.release(reg)
}

// release is drop. The caller holds the lock.
func (c *secretCache) release(reg types.NamespacedName) {
	was, ok := c.last[reg]
	if !ok {
		return
	}
	delete(c.last, reg)
	e := c.entries[was]
	if e.readers--; e.readers == 0 {
		delete(c.entries, was)
	}
}
