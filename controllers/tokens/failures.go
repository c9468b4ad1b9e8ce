// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
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
	mu      sync.Mutex
	entries map[types.NamespacedName]map[string]failed // by cluster and namespace
}

type failed struct {
	again time.Time
	after time.Duration
}

// wait returns after how long a cluster is asked again; 0 if it may be asked now.
func (f *failures) wait(at place, now time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return max(f.entries[at.cluster][at.namespace].again.Sub(now), 0)
}

// note notes that a cluster has given no token, and returns after how long it is asked again.
func (f *failures) note(at place, now time.Time) time.Duration {
	return f.noteUntil(at, now, time.Time{})
}

// noteUntil is note for a token that the cluster is asked with, and which ends at a time; zero if that is not known. The time between
// two requests gets shorter as the end comes near, so that a cluster that is well again in time is not lost.
func (f *failures) noteUntil(at place, now, ends time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	after := min(max(2*f.entries[at.cluster][at.namespace].after, firstRetry), lastRetry)
	if left := ends.Sub(now); left > 0 {
		after = min(after, max(left/10, firstRetry))
	}
	f.put(at, failed{now.Add(after), after})
	return after
}

// put is for those who hold the lock.
func (f *failures) put(at place, is failed) {
	if f.entries == nil {
		f.entries = map[types.NamespacedName]map[string]failed{}
	}
	if f.entries[at.cluster] == nil {
		f.entries[at.cluster] = map[string]failed{}
	}
	f.entries[at.cluster][at.namespace] = is
}

// forgive forgets that a cluster has given no token, and not that it has given one.
func (f *failures) forgive(at place) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.entries[at.cluster][at.namespace].after > 0 {
		f.drop(at.cluster, func(namespace string, _ failed) bool { return namespace == at.namespace })
	}
}

// rest notes that a cluster has given a token, and is not to be asked again for a while, whatever it says of it.
func (f *failures) rest(at place, now time.Time, after time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.put(at, failed{again: now.Add(after)})
}

func (f *failures) forget(at place) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.drop(at.cluster, func(namespace string, _ failed) bool { return namespace == at.namespace })
}

// retain forgets the namespaces of a cluster that are not among these, and whose time is over: no tenant gets a cluster asked again sooner
// by taking his deliveries away.
func (f *failures) retain(cluster types.NamespacedName, namespaces []string, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.drop(cluster, func(namespace string, is failed) bool {
		return !slices.Contains(namespaces, namespace) && !now.Before(is.again)
	})
}

// forgetCluster forgets a cluster that is registered no more.
func (f *failures) forgetCluster(cluster types.NamespacedName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.entries, cluster)
}

// drop is for those who hold the lock.
func (f *failures) drop(cluster types.NamespacedName, which func(namespace string, is failed) bool) {
	maps.DeleteFunc(f.entries[cluster], which)
	if len(f.entries[cluster]) == 0 {
		delete(f.entries, cluster)
	}
}
