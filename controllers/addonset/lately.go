// SPDX-License-Identifier: Apache-2.0

package addonset

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// lately remembers from which clusters the add-ons of each set were going when the set was looked at last. What has gone since
// is in no cache any more, and it counts from now on: a cluster that was down may lose an add-on long after the removal guard
// has let it go. A hub that is killed meanwhile counts from when it saw it going.
type lately struct {
	mu    sync.Mutex
	going map[types.NamespacedName]map[string][]string
}

// and returns what is going, by add-on, and what was going before.
func (l *lately) and(set types.NamespacedName, going map[string][]string) map[string][]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := map[string][]string{}
	for _, some := range []map[string][]string{l.going[set], going} {
		for addon, clusters := range some {
			out[addon] = append(out[addon], clusters...)
		}
	}
	for addon := range out {
		slices.Sort(out[addon])
		out[addon] = slices.Compact(out[addon])
	}
	return out
}

// note notes what is going, after what went before has been counted in the set's status.
func (l *lately) note(set types.NamespacedName, going map[string][]string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.going == nil {
		l.going = map[types.NamespacedName]map[string][]string{}
	}
	if l.going[set] = going; len(going) == 0 {
		delete(l.going, set)
	}
}
