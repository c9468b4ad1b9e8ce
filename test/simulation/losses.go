// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"strings"
	"time"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// lost is told of every workload that Flux takes off a cluster that lives.
func (w *World) lost(c *cluster, work *workload, why string) {
	if c.gone {
		return
	}
	if !work.unwanted && !work.approved {
		w.violated("loss", "%s on %s was taken away (%s), and everybody has wanted it all the time", work.name, c.name, why)
		return
	}
	if work.approved {
		return
	}
	namespace, name, _ := strings.Cut(work.set, "/")
	uid, _ := nested(w.server.Get(keyOf("AddonSet", namespace, name)), "metadata", "uid").(string)
	now := w.clock.Now()
	w.losses = append(w.losses, loss{at: now, cluster: c.name, set: work.set, setUID: uid, addon: work.addon})
	clusters := map[string]bool{}
	for _, l := range w.losses {
		if l.setUID == uid && l.set == work.set && l.addon == work.addon && now.Sub(l.at) < time.Hour {
			clusters[l.cluster] = true
		}
	}
	if limit := max(3, len(w.clusters)/10); len(clusters) > limit {
		w.violated("guard", "%d clusters have lost add-on %s of %s within an hour, nobody has approved that, and %d may", len(clusters), work.addon, work.set, limit)
	}
}

// approve is what a user does who has read what a set's status says is held.
func (w *World) approve(s *set) {
	held, _ := nested(w.server.Get(s.key()), "status", "heldRemovals", "hash").(string)
	if held == "" {
		return
	}
	for _, c := range w.clusters {
		for _, work := range c.workloads {
			if work.set == s.namespace+"/"+s.name && work.unwanted {
				work.approved = true
			}
		}
	}
	w.patch(s.key(), `{"metadata":{"annotations":{%q:%q}}}`, hubv1.ApproveRemovalAnnotation, held)
}
