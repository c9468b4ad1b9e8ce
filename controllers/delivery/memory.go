// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/render"
)

// genuine returns an error if a revision's content does not match its name. A revision never changes, so this is
// checked once.
func genuine(revision *appsv1.ControllerRevision, set string) error {
	hash, err := compile.ContentHash(revision.Data.Raw)
	if err != nil {
		return err
	}
	if !identity.SameContent(revision.Name, identity.Revision(set, hash, render.Epoch)) {
		return fmt.Errorf("ControllerRevision %q does not hold what its name says: the hub did not make it; what is delivered "+
			"stays as it is. Delete it", revision.Name)
	}
	return nil
}

// memory holds the result of each delivery, without the bodies: most events change nothing that is rendered.
type memory struct {
	mu      sync.Mutex
	entries map[types.NamespacedName]*remembered
}

type remembered struct {
	*render.Result
	cluster     key
	fingerprint string
	// versions are the resourceVersions of the documents that the result depends on.
	versions []string
}

func (m *memory) get(key types.NamespacedName, fingerprint string, now time.Time) *remembered {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entries[key]
	if e == nil || e.fingerprint != fingerprint || !e.Until.IsZero() && !now.Before(e.Until) {
		return nil
	}
	return e
}

func (m *memory) put(key types.NamespacedName, cluster key, fingerprint string, result *render.Result, versions []string) {
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

// kept returns how many deliveries' renderings are remembered.
func (m *memory) kept() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.entries)
}

func (m *memory) drop(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.entries, key)
}

// forget has a cluster rendered again, so that everything that it needs is made again.
func (m *memory) forget(cluster key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for k, e := range m.entries {
		if e.cluster == cluster {
			delete(m.entries, k)
		}
	}
}

// forgetFrom has what a namespace delivers to a cluster rendered again.
func (m *memory) forgetFrom(namespace string, cluster key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.entries, func(k types.NamespacedName, e *remembered) bool {
		return k.Namespace == namespace && e.cluster == cluster
	})
}

// roster remembers which deliveries of a cluster were looked at last.
type roster struct {
	mu sync.Mutex
	of map[key][]types.NamespacedName
}

// gone notes which deliveries of a cluster are looked at now, and returns those that are not any more.
func (s *roster) gone(cluster key, now []*delivery) []types.NamespacedName {
	names := make([]types.NamespacedName, len(now))
	for i, d := range now {
		names[i] = client.ObjectKeyFromObject(d)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	gone := slices.DeleteFunc(s.of[cluster], func(d types.NamespacedName) bool { return slices.Contains(names, d) })
	if s.of == nil {
		s.of = map[key][]types.NamespacedName{}
	}
	if s.of[cluster] = names; len(names) == 0 {
		delete(s.of, cluster)
	}
	return gone
}

// ledger remembers the generation of each object after the hub's last write. The delivery's status holds it as well,
// and survives a restart. The ledger serves until that status, or the object, is back in the cache.
type ledger struct {
	mu      sync.Mutex
	entries map[plan.Key]ledgerEntry
	removed map[plan.Key]removal
}

// removal is the hub's recent deletion of an object. left is what the object left on the cluster; empty if it was
// uninstalled.
type removal struct {
	at   time.Time
	left string
}

type ledgerEntry struct {
	uid        types.UID
	generation int64
}

// applied returns the generation after the hub's last write of an object, from the ledger or from the status,
// whichever is newer; 0 if neither knows it. present is the object's generation. If the status names a later one, it
// speaks of an earlier object of that name, since generations begin at 1 again; an add-on that waited for that
// generation would never be Ready. If it is only the cache that is stale, the ledger knows the generation, or the
// object is written once more, which changes nothing.
func (l *ledger) applied(k plan.Key, uid types.UID, present, fromStatus int64) int64 {
	if fromStatus > present {
		fromStatus = 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if e, ok := l.entries[k]; ok && e.uid == uid {
		return max(e.generation, fromStatus)
	}
	return fromStatus
}

func (l *ledger) note(k plan.Key, obj client.Object) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.entries == nil {
		l.entries = map[plan.Key]ledgerEntry{}
	}
	l.entries[k] = ledgerEntry{obj.GetUID(), obj.GetGeneration()}
	delete(l.removed, k)
}

// forget forgets an object that is gone. Another one may have its name.
func (l *ledger) forget(obj client.Object) {
	kind := fluxspec.HelmReleaseKind
	if _, ok := obj.(*kustomizev1.Kustomization); ok {
		kind = fluxspec.KustomizationKind
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if k := keyOf(obj, kind); l.entries[k].uid == obj.GetUID() {
		delete(l.entries, k)
	}
}

// removalIsNews is how long a deletion may take to reach the cache.
const removalIsNews = time.Minute

// remove notes that the hub deleted an object, and what the object left.
func (l *ledger) remove(k plan.Key, left string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.entries, k)
	if l.removed == nil {
		l.removed = map[plan.Key]removal{}
	}
	maps.DeleteFunc(l.removed, func(_ plan.Key, r removal) bool { return now.Sub(r.at) > removalIsNews })
	l.removed[k] = removal{now, left}
}

// wasRemoved returns what an object left that the hub deleted recently; false if the hub did not delete it.
func (l *ledger) wasRemoved(k plan.Key) (left string, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, ok := l.removed[k]
	return r.left, ok
}
