// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"maps"
	"sync"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/plan"
)

// Ledger remembers the generation of each object after the hub's last write. The delivery's status holds it as well,
// and survives a restart. The ledger serves until that status, or the object, is back in the cache.
type Ledger struct {
	mu      sync.Mutex
	Entries map[plan.Key]ledgerEntry
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
func (l *Ledger) applied(k plan.Key, uid types.UID, present, fromStatus int64) int64 {
	if fromStatus > present {
		fromStatus = 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if e, ok := l.Entries[k]; ok && e.uid == uid {
		return max(e.generation, fromStatus)
	}
	return fromStatus
}

func (l *Ledger) Note(k plan.Key, obj client.Object) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.Entries == nil {
		l.Entries = map[plan.Key]ledgerEntry{}
	}
	l.Entries[k] = ledgerEntry{obj.GetUID(), obj.GetGeneration()}
	delete(l.removed, k)
}

// forget forgets an object that is gone. Another one may have its name.
func (l *Ledger) forget(obj client.Object) {
	kind := fluxspec.HelmReleaseKind
	if _, ok := obj.(*kustomizev1.Kustomization); ok {
		kind = fluxspec.KustomizationKind
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if k := KeyOf(obj, kind); l.Entries[k].uid == obj.GetUID() {
		delete(l.Entries, k)
	}
}

// removalIsNews is how long a deletion may take to reach the cache.
const removalIsNews = time.Minute

// Remove notes that the hub deleted an object, and what the object left.
func (l *Ledger) Remove(k plan.Key, left string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.Entries, k)
	if l.removed == nil {
		l.removed = map[plan.Key]removal{}
	}
	maps.DeleteFunc(l.removed, func(_ plan.Key, r removal) bool { return now.Sub(r.at) > removalIsNews })
	l.removed[k] = removal{now, left}
}

// WasRemoved returns what an object left that the hub deleted recently; false if the hub did not delete it.
func (l *Ledger) WasRemoved(k plan.Key) (left string, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, ok := l.removed[k]
	return r.left, ok
}
