// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/chandler-hub/chandler/internal/memory"
)

// A cluster that has given no token is asked again after firstRetry, and then after twice as long each time.
const (
	firstRetry = 15 * time.Second
	lastRetry  = 15 * time.Minute
)

// place is a hub namespace, for one cluster; none for the registration's own credential.
type place struct {
	cluster   types.NamespacedName
	namespace string
}

// failures remembers when which cluster is asked again. A hub that is restarted asks at once.
type failures struct {
	of memory.Map[types.NamespacedName, map[string]failed] // by cluster and namespace
}

type failed struct {
	again time.Time
	after time.Duration
}

// at changes what is remembered of a place. A place at which nothing is remembered is forgotten.
func (f *failures) at(p place, do func(was failed) failed) {
	f.of.Update(p.cluster, func(all map[string]failed, known bool) (map[string]failed, bool) {
		if !known {
			all = map[string]failed{}
		}
		if all[p.namespace] = do(all[p.namespace]); all[p.namespace] == (failed{}) {
			delete(all, p.namespace)
		}
		return all, len(all) > 0
	})
}

// wait returns after how long a cluster is asked again; 0 if it may be asked now.
func (f *failures) wait(at place, now time.Time) (wait time.Duration) {
	f.at(at, func(is failed) failed {
		wait = max(is.again.Sub(now), 0)
		return is
	})
	return wait
}

// note notes that a cluster has given no token, and returns after how long it is asked again.
func (f *failures) note(at place, now time.Time) time.Duration {
	return f.noteUntil(at, now, time.Time{})
}

// noteUntil is note for a token that the cluster is asked with, and which ends at a time; zero if that is not known. The time between
// two requests gets shorter as the end comes near, so that a cluster that is well again in time is not lost.
func (f *failures) noteUntil(at place, now, ends time.Time) (after time.Duration) {
	f.at(at, func(was failed) failed {
		after = min(max(2*was.after, firstRetry), lastRetry)
		if left := ends.Sub(now); left > 0 {
			after = min(after, max(left/10, firstRetry))
		}
		return failed{now.Add(after), after}
	})
	return after
}

// forgive forgets that a cluster has given no token, and not that it has given one.
func (f *failures) forgive(at place) {
	f.at(at, func(was failed) failed {
		if was.after > 0 {
			return failed{}
		}
		return was
	})
}

// rest notes that a cluster has given a token, and is not to be asked again for a while, whatever it says of it.
func (f *failures) rest(at place, now time.Time, after time.Duration) {
	f.at(at, func(failed) failed { return failed{again: now.Add(after)} })
}

func (f *failures) forget(at place) { f.at(at, func(failed) failed { return failed{} }) }

// retain forgets the namespaces of a cluster that are not among these, and whose time is over: no tenant gets a cluster asked again sooner
// by taking his deliveries away.
func (f *failures) retain(cluster types.NamespacedName, namespaces []string, now time.Time) {
	f.of.Update(cluster, func(all map[string]failed, _ bool) (map[string]failed, bool) {
		maps.DeleteFunc(all, func(namespace string, is failed) bool {
			return !slices.Contains(namespaces, namespace) && !now.Before(is.again)
		})
		return all, len(all) > 0
	})
}

// forgetCluster forgets a cluster that is registered no more.
func (f *failures) forgetCluster(cluster types.NamespacedName) { f.of.Delete(cluster) }
