// SPDX-License-Identifier: Apache-2.0

package addonset

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/match"
	"github.com/chandler-hub/chandler/internal/memory"
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
	// writing counts the deliveries of the set that are being written.
	writing *sync.WaitGroup
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
	sets memory.Map[types.NamespacedName, compiled]
	// without are the clusters that each set has counted, also before it was compiled, and that have no delivery yet.
	without memory.Map[types.NamespacedName, map[types.NamespacedName]bool]
}

// put stores a set and returns whether its clusters must be looked at again.
func (r *registry) put(key types.NamespacedName, c compiled) (news bool) {
	r.sets.Update(key, func(old compiled, known bool) (compiled, bool) {
		if old.uid == c.uid {
			c.starts = old.starts
		}
		if c.writing = old.writing; !known {
			c.writing = &sync.WaitGroup{}
		}
		news = !known || old.everyone != c.everyone || (old.newcomers == "") != (c.newcomers == "") ||
			old.uid != c.uid || old.generation != c.generation || old.held != c.held ||
			old.leaving != c.leaving || old.reach.String() != c.reach.String()
		return c, true
	})
	return news
}

// leave notes that a set is being deleted: no write of a delivery of it may begin any more.
func (r *registry) leave(key types.NamespacedName, uid types.UID, generation int64) {
	r.put(key, compiled{uid: uid, generation: generation, leaving: true})
}

func (r *registry) drop(key types.NamespacedName) {
	r.sets.Delete(key)
	r.without.Delete(key)
}

// count notes the clusters that a set has counted, and that have no delivery yet.
func (r *registry) count(key types.NamespacedName, without map[types.NamespacedName]bool) {
	r.without.Update(key, func(map[types.NamespacedName]bool, bool) (map[types.NamespacedName]bool, bool) {
		return without, len(without) > 0
	})
}

// waitFor returns the sets that have counted a cluster without a delivery, and those that select it and give it none now: no delivery tells
// them what becomes of the cluster.
func (r *registry) waitFor(reg *hubv1.ClusterRegistration) (out []types.NamespacedName) {
	for key, set := range r.sets.All() {
		waits := false
		if set.selector != nil && set.selector.Matches(reg) {
			_, gets := set.first(reg)
			waits = !gets
		}
		without, _ := r.without.Get(key)
		if waits || without[client.ObjectKeyFromObject(reg)] {
			out = append(out, key)
		}
	}
	return out
}

// strange returns whether the set has not claimed a delivery, or the delivery has other content than the set.
func (r *registry) strange(d *hubv1.AddonDelivery) bool {
	set, ok := r.sets.Get(d.SetKey())
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
func (r *registry) begin(key types.NamespacedName) (writing *sync.WaitGroup) {
	r.sets.Update(key, func(set compiled, known bool) (compiled, bool) {
		if known && !set.leaving {
			writing = set.writing
			writing.Add(1)
		}
		return set, known
	})
	return writing
}

// settle waits until no delivery of a set is being written. The set must be leaving, so that no write begins.
func (r *registry) settle(key types.NamespacedName) {
	if set, known := r.sets.Get(key); known {
		set.writing.Wait()
	}
}
