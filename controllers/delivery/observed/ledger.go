// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/memory"
	"github.com/chandler-hub/chandler/internal/plan"
)

// Ledger remembers the generation of each object after the hub's last write. The delivery's status holds it as well,
// and survives a restart. The ledger serves until that status, or the object, is back in the cache.
type Ledger struct {
	Entries memory.Map[plan.Key, ledgerEntry]
	removed memory.Map[plan.Key, removal]
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
	if e, ok := l.Entries.Get(k); ok && e.uid == uid {
		return max(e.generation, fromStatus)
	}
	return fromStatus
}

func (l *Ledger) Note(k plan.Key, obj client.Object) {
	l.Entries.Put(k, ledgerEntry{obj.GetUID(), obj.GetGeneration()})
	l.removed.Delete(k)
}

// forget forgets an object that is gone. Another one may have its name.
func (l *Ledger) forget(obj client.Object) {
	kind := fluxspec.HelmReleaseKind
	if _, ok := obj.(*kustomizev1.Kustomization); ok {
		kind = fluxspec.KustomizationKind
	}
	l.Entries.Update(KeyOf(obj, kind), func(e ledgerEntry, known bool) (ledgerEntry, bool) { return e, known && e.uid != obj.GetUID() })
}

// removalIsNews is how long a deletion may take to reach the cache.
const removalIsNews = time.Minute

// Remove notes that the hub deleted an object, and what the object left.
func (l *Ledger) Remove(k plan.Key, left string, now time.Time) {
	l.Entries.Delete(k)
	l.removed.DeleteFunc(func(_ plan.Key, r removal) bool { return now.Sub(r.at) > removalIsNews })
	l.removed.Put(k, removal{now, left})
}

// WasRemoved returns what an object left that the hub deleted recently; false if the hub did not delete it.
func (l *Ledger) WasRemoved(k plan.Key) (left string, ok bool) {
	r, ok := l.removed.Get(k)
	return r.left, ok
}
