// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"strings"
	"time"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/test/simulation/apiserver"
)

// workload is a Helm release, or an object that a Kustomization applied.
type workload struct {
	// id is another one after a reinstall.
	id int
	// name is helm:<namespace of its records>/<release>, or object:<namespace>/<name>.
	name string
	// owner is the Flux object that made it, or took it over; set and addon are of its labels.
	owner, ownerUID, set, addon string
	chart                       string
	// into is the targetNamespace of the Kustomization that applied it last.
	into string
	// unwanted is true when nobody wanted it at some time since it was last quiet.
	unwanted bool
	// through is the registration that it was taken away through: the guard counts those, wherever they lead.
	through string
	// missed is true if somebody wanted it at some time while it existed: then it is no loss if it goes.
	missed bool
	// approved is true when somebody has approved that it goes, or is reinstalled.
	approved bool
}

// loss is a workload that left a live cluster, or was reinstalled.
type loss struct {
	at                   time.Time // when its guard has granted that
	cluster, set, setUID string
}

// orphan is a workload that nobody owns any more.
type orphan struct {
	cluster *cluster
	work    *workload
}

// give notes that a Flux object has a workload on a cluster.
func (w *World) give(c *cluster, name string, k apiserver.Key, uid, set, addon, chart string) {
	w.changes++
	work := c.workloads[name]
	comes := work == nil
	if comes {
		w.ids++
		work = &workload{id: w.ids, name: name}
		c.workloads[name] = work
		w.say("  %s gets %s (of %s)", c.name, name, k)
	}
	if work.ownerUID != uid && work.ownerUID != "" && w.lives(work.ownerUID) && !twoRegistrations(w.object(work.ownerUID), w.server.Get(k)) {
		w.violated("owners", "%s on %s belongs to two Flux objects: %s and %s", name, c.name, work.owner, k)
	}
	delete(w.orphans, c.name+" "+name)
	passes := !comes && (work.set != set || work.addon != addon)
	work.owner, work.ownerUID, work.set, work.addon, work.chart = k.String(), uid, set, addon, chart
	if comes && (w.onlyStays(c, work) || w.leaves(work)) { // what comes while it is being removed goes again: nobody misses it
		work.unwanted = true
		return
	}
	if passes {
		w.noteWishesOf(c)
		return
	}
	w.noteWish(c, work)
}

// lives returns whether a Flux object with a UID exists and is not being deleted.
func (w *World) lives(uid string) bool {
	o := w.object(uid)
	return o != nil && nested(o, "metadata", "deletionTimestamp") == nil && nested(o, "spec", "suspend") != true
}

// take removes a workload from a cluster: Flux uninstalls it.
func (w *World) take(c *cluster, name string, k apiserver.Key, why string) {
	work := c.workloads[name]
	if work == nil {
		return
	}
	w.changes++
	delete(c.workloads, name)
	if !c.gone && !w.deleted[work.ownerUID] {
		w.checkRightsLast(c, work)
	}
	if o := w.server.Get(k); o != nil {
		work.through = registrationIn(o)
		work.set = setNameOf(o) // whose guard lets it go: it may have come from another set, and not have been applied since
		if w.deleted[nested(o, "metadata", "uid")] {
			work.unwanted, work.approved = true, true
		}
		work.approved = work.approved || w.leadsElsewhere(o)
	}
	w.say("  %s loses %s (of %s): %s", c.name, name, k, why)
	w.lost(c, work, why)
}

// leadsElsewhere returns whether the registration of a Flux object has gone, or is of another cluster now: then all that it brought goes,
// and no edit of a set is to blame.
func (w *World) leadsElsewhere(o apiserver.Object) bool {
	r := w.registrationOf(o)
	if r == nil {
		return false
	}
	reg := w.registered(r)
	return reg == nil || reg.DeletionTimestamp != nil || reg.Status.ClusterUID != "" &&
		string(reg.Status.ClusterUID) != nested(o, "metadata", "annotations", hubv1.ClusterUIDAnnotation)
}

// leave notes that a Flux object goes and leaves its workloads.
func (w *World) leave(k apiserver.Key, uid string) {
	for _, c := range w.clusters {
		for _, name := range sortedKeys(c.workloads) {
			if work := c.workloads[name]; work.ownerUID == uid {
				if o := w.object(uid); o != nil { // whose labels may have changed since Flux has looked at it
					work.set, work.addon = setNameOf(o), apiserver.Label(o, hubv1.AddonLabel)
				}
				w.say("  %s keeps %s, and its Flux object is gone", c.name, name)
				w.checkMissing(c, work)
				w.orphans[c.name+" "+name] = orphan{c, work}
			}
		}
	}
}

// checkMissing: a Secret that is being deleted is missing, and no more. What it has registered is orphaned when it has been missing for
// --teardown-grace, or somebody has unregistered the cluster.
func (w *World) checkMissing(c *cluster, work *workload) {
	secret := w.server.Get(c.origin())
	if c.gone || c.provider != "Secret" || secret == nil || len(w.registrationsOf(c)) > 1 || w.deleted[work.ownerUID] {
		return
	}
	reg := w.server.Get(c.registration())
	if reg == nil || c.leaves != nested(reg, "metadata", "uid") || work.unwanted || !w.wantedThere(c, work) {
		return
	}
	at, _ := nested(secret, "metadata", "deletionTimestamp").(string)
	since, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return // it is not being deleted
	}
	if missing := w.clock.Now().Sub(since); missing < w.config.TeardownGrace {
		w.violated("loss", "%s on %s is orphaned, and the Secret that registered the cluster is still being deleted, for %s now", work.name,
			c.name, missing)
	}
}

// objectsOf returns the names of what a Kustomization applies, according to its path.
func objectsOf(path, namespace string) []string {
	base := strings.TrimPrefix(path, "./")
	if namespace == "" {
		namespace = base
	}
	return []string{"object:" + namespace + "/" + base + "-a", "object:" + namespace + "/" + base + "-b"}
}

func inventoryID(name string) string {
	ns, n, _ := strings.Cut(strings.TrimPrefix(name, "object:"), "/")
	return ns + "_" + n + "__ConfigMap"
}

func inventoryName(id string) string {
	parts := strings.Split(id, "_")
	return "object:" + parts[0] + "/" + parts[1]
}
