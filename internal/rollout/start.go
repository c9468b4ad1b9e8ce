// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"
	"time"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// start starts what may start: the clusters of the first wave that has not passed, and those of others that were skipped when
// theirs did.
func (d *deciding) start() {
	d.startSame()
	present := true
	for i := range d.places {
		p := &d.places[i]
		if !p.passed && !present && !d.atOnce {
			continue
		}
		present = present && p.passed
		if d.tried(i) {
			continue
		}
		d.startSome(p, d.slots(p, p.fit), pending, running)
		if p.n[pending] == 0 {
			d.startSome(p, d.slots(p, p.able), sickPending, sickRunning)
		}
	}
}

// tried returns whether clusters of another wave than one are the first to try the revision, and none has been Ready on it yet. A cluster
// that was skipped when its wave passed would be one more that a bad revision breaks.
func (d *deciding) tried(but int) bool {
	if d.atOnce || d.back || d.complete() {
		return false
	}
	elsewhere := false
	for i := range d.places {
		p := &d.places[i]
		elsewhere = elsewhere || i != but && p.n[running] > 0
		if slices.ContainsFunc(p.members, func(m member) bool { return m.is == done && m.Start != nil && m.Revision == d.target }) {
			return false
		}
	}
	return elsewhere
}

// slots returns how many clusters of a wave may start now, if percentages are of so many.
func (d *deciding) slots(p *place, all int) int {
	switch {
	case d.atOnce:
		return p.total()
	case p.failedTooMany() && !d.back: // it was completed before
		if p.n[pending]+p.n[sickPending] > 0 {
			d.state.WaitingFor = fmt.Sprintf("the clusters of wave %s that have failed since, or another revision", p.name)
		}
		return 0
	}
	return p.concurrency(all) - p.busy()
}

// startSome starts clusters of a wave that are in one state, which are in another then.
func (d *deciding) startSome(p *place, slots int, from, to state) {
	for i := range p.members {
		m := &p.members[i]
		if m.is != from {
			continue
		}
		if slots <= 0 || !d.admitted() {
			return
		}
		slots--
		p.move(m, to)
		d.give(m.Cluster, d.target, from == pending, d.Now)
	}
}

// startSame gives the revision to those clusters for which it changes nothing. They take no slot, and wait for no window.
func (d *deciding) startSame() {
	for i := range d.Clusters {
		if c := &d.Clusters[i]; c.Revision != "" && c.Revision != d.target && d.changesNothing(c) {
			d.starts = append(d.starts, Start{Cluster: c.Key, Delivery: c.Delivery, Revision: d.target})
		}
	}
}

// admitted returns whether clusters may start now, by the windows. They are asked once, for all clusters.
func (d *deciding) admitted() bool {
	if d.opened == nil {
		is := d.askWindows()
		d.opened = &is
	}
	return *d.opened
}

func (d *deciding) askWindows() bool {
	isOpen, opens := open(d.Strategy.windows, d.Now)
	if _, expedited := d.Orders.Expedited(d.target); isOpen || expedited || d.back {
		return true
	}
	d.state.WaitingFor = "a window, and none opens any more"
	if !opens.IsZero() {
		d.look(opens)
		d.state.WaitingFor = "a window, which opens at " + opens.Format(time.RFC3339)
	}
	if !d.complete() && !slices.ContainsFunc(d.places, func(p place) bool { return p.busy() > 0 }) {
		d.state.Phase = hubv1.RolloutWaitingForWindow
	}
	return false
}

// give gives a cluster a revision. Whether it had no nodes before is known from the first revision that it never got Ready on.
func (d *deciding) give(c *Cluster, revision string, healthy bool, from time.Time) {
	d.look(d.Now.Add(d.Strategy.deadline))
	start := &hubv1.DeliveryStart{Time: *at(from), Healthy: healthy, WithoutNodes: c.WithoutNodes}
	if c.Start != nil && d.inDoubt(c) {
		start.WithoutNodes = c.Start.WithoutNodes
	}
	d.starts = append(d.starts, Start{Cluster: c.Key, Delivery: c.Delivery, Revision: revision, Start: start})
}
