// SPDX-License-Identifier: Apache-2.0

package planned

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/chandler-hub/chandler/internal/render"
)

// Memory holds the result of each delivery, without the bodies: most events change nothing that is rendered.
type Memory struct {
	mu      sync.Mutex
	entries map[types.NamespacedName]*remembered
}

type remembered struct {
	*render.Result
	cluster     types.NamespacedName
	fingerprint string
	// versions are the resourceVersions of the documents that the result depends on.
	versions []string
}

func (m *Memory) get(key types.NamespacedName, fingerprint string, now time.Time) *remembered {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entries[key]
	if e == nil || e.fingerprint != fingerprint || !e.Until.IsZero() && !now.Before(e.Until) {
		return nil
	}
	return e
}

func (m *Memory) put(key types.NamespacedName, cluster types.NamespacedName, fingerprint string, result *render.Result, versions []string) {
	slim := *result
	slim.Objects = make([]render.Object, len(result.Objects))
	for i := range result.Objects {
		slim.Objects[i] = result.Objects[i].Skeleton()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.entries == nil {
		m.entries = map[types.NamespacedName]*remembered{}
	}
	m.entries[key] = &remembered{&slim, cluster, fingerprint, versions}
}

// Kept returns how many deliveries' renderings are remembered.
func (m *Memory) Kept() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.entries)
}

func (m *Memory) Drop(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.entries, key)
}

// Forget has a cluster rendered again, so that everything that it needs is made again.
func (m *Memory) Forget(cluster types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for k, e := range m.entries {
		if e.cluster == cluster {
			delete(m.entries, k)
		}
	}
}

// ForgetFrom has what a namespace delivers to a cluster rendered again.
func (m *Memory) ForgetFrom(namespace string, cluster types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.entries, func(k types.NamespacedName, e *remembered) bool {
		return k.Namespace == namespace && e.cluster == cluster
	})
}
