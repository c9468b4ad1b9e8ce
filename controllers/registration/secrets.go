// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/memory"
	"github.com/chandler-hub/chandler/internal/origin"
)

// secretCache remembers the result of checking the Secret that each registration has read last, so that a reconcile for
// another reason does not read it again. Registrations that read the same share the result: it may be a quarter of a
// mebibyte, and a user who may write registrations can have a thousand name one Secret.
type secretCache struct {
	entries memory.Map[view, secretEntry]
	last    memory.Readers[types.NamespacedName, view]
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
	parsed
}

type parsed struct {
	resolution
	reason string
	err    error
}

// get returns what was found in a Secret, if it has not changed since.
func (c *secretCache) get(reg types.NamespacedName, as view, meta metav1.Object) (parsed, bool) {
	e, known := c.entries.Get(as)
	if !known || e.uid != meta.GetUID() || e.version != meta.GetResourceVersion() {
		return parsed{}, false
	}
	c.note(reg, as)
	return e.parsed, true
}

func (c *secretCache) put(reg types.NamespacedName, as view, meta metav1.Object, p parsed) {
	c.entries.Put(as, secretEntry{meta.GetUID(), meta.GetResourceVersion(), p})
	c.note(reg, as)
}

// note notes what a registration has read last. If another lets go of the same just then, it may be forgotten, and is read once more.
func (c *secretCache) note(reg types.NamespacedName, as view) {
	c.last.Note(reg, as)
	c.forget(c.last.Prune(reg))
}

// drop forgets what a registration has read, unless another one has read the same.
func (c *secretCache) drop(reg types.NamespacedName) { c.forget(c.last.Forget(reg)) }

func (c *secretCache) forget(unread []view) {
	for _, as := range unread {
		c.entries.Delete(as)
	}
}
