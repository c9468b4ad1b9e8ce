// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/conflict"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/render"
)

// render renders every delivery and decides the conflicts between them.
func (r *Reconciler) render(c *cluster) {
	type entry struct {
		d *delivery
		o *render.Object // nil for an object that is held as it is
	}
	var claims []conflict.Claim
	var entries []entry
	for _, d := range c.deliveries {
		if d.DeletionTimestamp != nil {
			continue
		}
		if d.program == nil {
			for _, o := range c.objects {
				if o.Key.Namespace == d.Namespace && o.delivery == d.Name {
					claims, entries = append(claims, r.claim(c, d, o.Addon, compile.Release{}, o.Key)), append(entries, entry{d, nil})
				}
			}
			continue
		}
		result, err := render.Render(d.program, render.Target{
			HubID: r.Config.HubID, Namespace: d.Namespace, Set: d.Spec.AddonSetRef.Name, Delivery: d.Name, Registration: c.key,
		})
		if err != nil {
			d.program, d.reason, d.unrenderable = nil, hubv1.InvalidSpecReason, err.Error()
			continue
		}
		for i := range result.Objects {
			o := &result.Objects[i]
			claims, entries = append(claims, r.claim(c, d, o.Addon, o.Release, keyOf(*o))), append(entries, entry{d, o})
		}
	}
	for i, v := range conflict.Decide(claims) {
		switch e := entries[i]; {
		case e.o == nil:
		case v.Won:
			e.d.wanted = append(e.d.wanted, *e.o)
		default:
			e.d.lost[e.o.Addon] = v.Reason
		}
	}
}

func (r *Reconciler) claim(c *cluster, d *delivery, addon string, release compile.Release, k plan.Key) conflict.Claim {
	claim := conflict.Claim{
		Namespace: d.Namespace, Set: d.Spec.AddonSetRef.Name, Platform: r.Config.IsPlatform(d.Namespace), Addon: addon, Release: release,
	}
	if d.set != nil {
		claim.Priority = d.set.Spec.Priority
	}
	if o := c.objects[k]; o != nil {
		claim.Incumbent = o.delivery == d.Name
	}
	return claim
}

// programs are the compiled revisions. A revision never changes, so its program is compiled once.
type programs struct {
	mu    sync.Mutex
	cache map[types.UID]*compile.Program
}

// maxPrograms bounds the cache. When it is full it is emptied: what is in use is compiled again, once.
const maxPrograms = 1000

func (p *programs) get(revision *appsv1.ControllerRevision, author fluxspec.Author) (*compile.Program, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if program, ok := p.cache[revision.UID]; ok {
		return program, nil
	}
	addons, err := compile.Addons(revision.Data.Raw)
	if err != nil {
		return nil, err
	}
	program, err := compile.Compile(addons, author)
	if err != nil {
		return nil, err
	}
	if p.cache == nil || len(p.cache) >= maxPrograms {
		p.cache = map[types.UID]*compile.Program{}
	}
	p.cache[revision.UID] = program
	return program, nil
}

// ledger remembers which generation our own last write of an object led to. The status of the delivery says so too, and
// survives a restart; the ledger is there for the moment before that status, or the object, is back in the cache.
type ledger struct {
	mu      sync.Mutex
	entries map[plan.Key]ledgerEntry
}

type ledgerEntry struct {
	uid        types.UID
	generation int64
}

// applied returns the generation for an object, if it is not older than what the status said.
func (l *ledger) applied(k plan.Key, uid types.UID, fromStatus int64) int64 {
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
}

func (l *ledger) drop(k plan.Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.entries, k)
}
