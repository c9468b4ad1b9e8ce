// SPDX-License-Identifier: Apache-2.0

package addonset

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/match"
	"github.com/chandler-hub/chandler/internal/rollout"
)

// compiled is what the matcher needs to know of a set.
type compiled struct {
	// uid is the set's: a set that is made again under the same name has another.
	uid        types.UID
	generation int64
	// reach is that of the set's namespace. selector is nil if the set's is not valid.
	reach    match.Reach
	selector *match.Selector
	// everyone is the revision that all clusters get at once; "" if starts says which cluster gets which. newcomers is the
	// revision that clusters without a delivery get at once if they were registered after a time; "" if none do.
	everyone, newcomers string
	after               time.Time
	// starts are the clusters that get a revision, until the cache shows that they have it.
	starts map[types.NamespacedName]rollout.Start
	// held is true while nothing may change: the set does not compile.
	held bool
	// leaving is true while the set is being deleted.
	leaving bool
}

// aim says which clusters the set is to leave. While nothing of it may change, it keeps those that it reaches.
func (c *compiled) aim() match.Aim {
	if c.held {
		return match.Aim{Reach: c.reach}
	}
	return match.Aim{Reach: c.reach, Selector: c.selector}
}

// registry holds every set that has been compiled since the hub started. If a set is not in it, the hub has not
// compiled it yet, and decides nothing about its clusters.
type registry struct {
	mu   sync.RWMutex
	sets map[types.NamespacedName]compiled
	// without are the clusters that each set has counted, and that have no delivery yet.
	without map[types.NamespacedName]map[types.NamespacedName]bool
	// writing counts the deliveries of a set that are being written.
	writing map[types.NamespacedName]*sync.WaitGroup
}

// put stores a set and returns whether its clusters must be looked at again.
func (r *registry) put(key types.NamespacedName, c compiled) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sets == nil {
		r.sets = map[types.NamespacedName]compiled{}
	}
	old, ok := r.sets[key]
	if old.uid == c.uid {
		c.starts = old.starts
	}
	r.sets[key] = c
	return !ok || old.everyone != c.everyone || (old.newcomers == "") != (c.newcomers == "") ||
		old.uid != c.uid || old.generation != c.generation || old.held != c.held ||
		old.leaving != c.leaving || old.reach.String() != c.reach.String()
}

// leave notes that a set is being deleted: no write of a delivery of it may begin any more.
func (r *registry) leave(key types.NamespacedName, uid types.UID, generation int64) {
	r.put(key, compiled{uid: uid, generation: generation, leaving: true})
}

func (r *registry) drop(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.sets, key)
	delete(r.without, key)
	delete(r.writing, key)
}

// count notes the clusters that a set has counted, and that have no delivery yet.
func (r *registry) count(key types.NamespacedName, without map[types.NamespacedName]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.without == nil {
		r.without = map[types.NamespacedName]map[types.NamespacedName]bool{}
	}
	if r.without[key] = without; len(without) == 0 {
		delete(r.without, key)
	}
}

// waitFor returns the sets that have counted a cluster without a delivery, and those that select it and give it none now: no delivery tells
// them what becomes of the cluster.
func (r *registry) waitFor(reg *hubv1.ClusterRegistration) (out []types.NamespacedName) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for key := range r.sets {
		set := r.sets[key]
		waits := false
		if set.selector != nil && set.selector.Matches(reg) {
			_, gets := set.first(reg)
			waits = !gets
		}
		if waits || r.without[key][client.ObjectKeyFromObject(reg)] {
			out = append(out, key)
		}
	}
	return out
}

func (r *registry) all() map[types.NamespacedName]compiled {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return maps.Clone(r.sets)
}

// strange returns whether the set has not claimed a delivery, or the delivery has other content than the set.
func (r *registry) strange(d *hubv1.AddonDelivery) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	set, ok := r.sets[d.SetKey()]
	other := set.everyone != "" && set.everyone != d.Spec.RevisionName
	if start, starts := set.starts[d.Spec.RegistrationRef.Key()]; starts {
		other = other || !done(&start, d.Spec.RevisionName, d.Spec.Start)
	}
	return ok && (set.uid != d.Spec.AddonSetRef.UID || other && !set.leaving && !set.held)
}

// write writes a delivery of a set, unless the set is being deleted.
func (r *registry) write(key types.NamespacedName, delivery func() error) error {
	writing := r.begin(key)
	if writing == nil {
		return nil
	}
	defer writing.Done()
	return delivery()
}

// begin returns nil if the set is being deleted.
func (r *registry) begin(key types.NamespacedName) *sync.WaitGroup {
	r.mu.Lock()
	defer r.mu.Unlock()
	if set, ok := r.sets[key]; !ok || set.leaving {
		return nil
	}
	if r.writing == nil {
		r.writing = map[types.NamespacedName]*sync.WaitGroup{}
	}
	if r.writing[key] == nil {
		r.writing[key] = &sync.WaitGroup{}
	}
	r.writing[key].Add(1)
	return r.writing[key]
}

// settle waits until no delivery of a set is being written. The set must be leaving, so that no write begins.
func (r *registry) settle(key types.NamespacedName) {
	r.mu.RLock()
	writing := r.writing[key]
	r.mu.RUnlock()
	if writing != nil {
		writing.Wait()
	}
}
