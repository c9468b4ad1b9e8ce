// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// roster remembers which deliveries of a cluster were looked at last.
type roster struct {
	mu sync.Mutex
	of map[types.NamespacedName][]types.NamespacedName
}

// gone notes which deliveries of a cluster are looked at now, and returns those that are not any more.
func (s *roster) gone(cluster types.NamespacedName, now []*delivery) []types.NamespacedName {
	names := make([]types.NamespacedName, len(now))
	for i, d := range now {
		names[i] = client.ObjectKeyFromObject(d)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	gone := slices.DeleteFunc(s.of[cluster], func(d types.NamespacedName) bool { return slices.Contains(names, d) })
	if s.of == nil {
		s.of = map[types.NamespacedName][]types.NamespacedName{}
	}
	if s.of[cluster] = names; len(names) == 0 {
		delete(s.of, cluster)
	}
	return gone
}
