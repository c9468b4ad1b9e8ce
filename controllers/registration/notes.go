// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/chandler-hub/chandler/internal/memory"
	"github.com/chandler-hub/chandler/internal/teardown"
)

// notes are what this process remembers of each registration, beside its status.
type notes struct {
	of memory.Map[types.NamespacedName, note]
}

type note struct {
	// keys are those in the pool: none stays there when its kubeconfig has gone.
	keys []string
	// state is that of the origin at the last probe; nil before one.
	state *string
	// unread is since when the origin of a registration that goes cannot be read; zero if it can. The registration may have been deleted
	// long before. A process that starts counts anew: what is orphaned cannot be taken back.
	unread time.Time
}

func (n *notes) change(key types.NamespacedName, do func(*note)) {
	n.of.Update(key, func(is note, _ bool) (note, bool) {
		do(&is)
		return is, len(is.keys) > 0 || is.state != nil || !is.unread.IsZero()
	})
}

// turned notes the state of a registration's origin, and returns whether it has changed.
func (n *notes) turned(key types.NamespacedName, state string) (turned bool) {
	n.change(key, func(is *note) {
		turned = is.state != nil && *is.state != state
		is.state = &state
	})
	return turned
}

// probes notes the candidates of a registration, and removes those that are not candidates any more.
func (n *notes) probes(key types.NamespacedName, candidates []candidate, remove func(poolKey string)) {
	now := make([]string, len(candidates))
	for i, c := range candidates {
		now[i] = c.poolKey(key)
	}
	n.change(key, func(is *note) {
		for _, k := range is.keys {
			if !slices.Contains(now, k) {
				remove(k)
			}
		}
		is.keys = now
	})
}

// unreadSince notes what is known of an origin, and returns since when it cannot be read; zero if it can.
func (n *notes) unreadSince(key types.NamespacedName, is teardown.Origin, now time.Time) (since time.Time) {
	n.change(key, func(of *note) {
		switch {
		case is != teardown.OriginUnknown:
			of.unread = time.Time{}
		case of.unread.IsZero():
			of.unread = now
		}
		since = of.unread
	})
	return since
}
