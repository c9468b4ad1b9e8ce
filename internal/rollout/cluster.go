// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/identity"
)

// Cluster is a cluster that a set selects.
type Cluster struct {
	// Key names its registration.
	Key    types.NamespacedName
	Labels map[string]string
	// Registered is when its registration was made; zero if that is not known.
	Registered time.Time
	// Delivery identifies its delivery; "" if there is none yet.
	Delivery types.UID
	// Revision is the one that the hub has given it; "" if there is no delivery yet.
	Revision string
	// Start is how it came to that revision; nil if an older hub, or a set without waves, gave it.
	Start *hubv1.DeliveryStart
	// Ready returns whether all its add-ons have been Ready on that revision since then, as the hub applied them.
	Ready bool
	// Healthy is true if they are Ready now, and none has failed.
	Healthy bool
	// Failed says which add-on failed, and why; "" if none has. FailedSince is since when.
	Failed      string
	FailedSince time.Time
	// Offline is true while it does not answer.
	Offline bool
	// Excused says why the rollout should not wait for it: it is paused, it sleeps, the removal guard holds something, or
	// nothing is delivered there.
	Excused string
	// Nodeless says which add-on waits for nodes, since the cluster has none; "" if none does. WithoutNodes is true if it is known
	// to have none.
	Nodeless     string
	WithoutNodes bool
	// Asks is true if that is only because an add-on asks the removal guard, which may be about to grant it.
	Asks bool
}

// changesNothing returns whether the revision changes nothing on a cluster, and nothing is left to be seen of the one that
// it has.
func (d *deciding) changesNothing(c *Cluster) bool {
	return c.Ready && c.Failed == "" && d.Same(c, d.target)
}

// state is what a cluster is in a rollout.
type state int

const (
	// pending: it does not have the revision yet.
	pending state = iota
	// running: it has the revision, and is not Ready on it yet.
	running
	// done: it has been Ready on the revision, or the revision changes nothing there.
	done
	// failed: it was healthy before, and failed on the revision.
	failed
	// skipped: the rollout does not wait for it, and it gets nothing now.
	skipped
	// sickPending, sickRunning: like pending and running, but it was not healthy before. The rollout does not wait for it if another cluster
	// can tell whether the revision is good.
	sickPending
	sickRunning
	// sick: it was not healthy before, and is not now.
	sick
)

// member is a cluster in its wave.
type member struct {
	*Cluster
	is  state
	why string // it failed
}

// place is a wave and its clusters.
type place struct {
	wave
	members []member
	// passed is true if the waves after it need not wait for it any more.
	passed bool
	n      [sick + 1]int
	// fit are the clusters that can tell whether the revision is good: it changes something there, and they were healthy before.
	// able are all that get it, or have got it. Limits that are percentages are of these, so that a cluster that does not
	// answer, or was sick before, raises none.
	fit, able int
}

// add counts a member as what it is.
func (p *place) add(m *member, target string) {
	p.n[m.is]++
	well := m.is == pending || m.is == running || m.is == failed
	by := m.is == done && m.Start != nil && m.Revision == target
	if well || by && m.Start.Healthy {
		p.fit++
	}
	if well || by || m.is >= sickPending {
		p.able++
	}
}

// move counts a member as something else from now on.
func (p *place) move(m *member, to state) {
	p.n[m.is]--
	m.is = to
	p.n[to]++
}

func (p *place) total() int { return len(p.members) }

// failedTooMany returns whether more clusters of the wave have failed than may.
func (p *place) failedTooMany() bool { return p.n[failed] > p.failures(p.fit) }

// busy returns how many clusters work on the revision.
func (p *place) busy() int { return p.n[running] + p.n[sickRunning] }

// over returns whether the wave need not wait for a cluster. If all that could answer were not healthy before,
// the wave waits for them: no other cluster can tell whether the revision is good.
func (p *place) over() bool {
	if p.n[pending]+p.n[running] > 0 {
		return false
	}
	return p.n[done]+p.n[failed] > 0 || p.n[sickPending]+p.n[sickRunning] == 0
}

// concerned returns whether a cluster of the wave has got the revision in this rollout, or is still to get it. If none is,
// there is nothing to soak and nothing to approve.
func (d *deciding) concerned(p *place) bool {
	return slices.ContainsFunc(p.members, func(m member) bool {
		if m.Revision == d.target {
			return m.Start != nil
		}
		return m.is != done && !d.young(m.Cluster)
	})
}

// status counts the clusters of the wave.
func (p *place) status() hubv1.WaveStatus {
	n := func(of ...state) (sum int32) {
		for _, s := range of {
			sum += int32(p.n[s]) //nolint:gosec // as many as there are clusters
		}
		return sum
	}
	waiting, idle := n(pending), n(skipped, sick, sickPending, sickRunning)
	s := hubv1.WaveStatus{Name: p.name, Passed: p.passed, Done: n(done), Running: n(running), Failed: n(failed), Skipped: idle}
	s.Total = waiting + idle + s.Done + s.Running + s.Failed
	return s
}

// assign returns the waves with their clusters. The clusters of a wave are in the order of a hash of cluster and set.
func (s *Strategy) assign(set string, clusters []Cluster) []place {
	type ranked struct {
		*Cluster
		rank string
	}
	rest := make([]ranked, len(clusters))
	for i := range clusters {
		rest[i] = ranked{&clusters[i], identity.Hash(16, set, clusters[i].Key.String())}
	}
	slices.SortFunc(rest, func(a, b ranked) int {
		if order := strings.Compare(a.rank, b.rank); order != 0 {
			return order
		}
		return inOrder(a.Key, b.Key)
	})
	out := make([]place, len(s.waves))
	for i, w := range s.waves {
		out[i].wave = w
		candidates := 0
		for _, c := range rest {
			if w.selector.Matches(labels.Set(c.Labels)) {
				candidates++
			}
		}
		size := of(w.size, candidates, candidates, true)
		rest = slices.DeleteFunc(rest, func(c ranked) bool {
			mine := out[i].total() < size && w.selector.Matches(labels.Set(c.Labels))
			if mine {
				out[i].members = append(out[i].members, member{Cluster: c.Cluster})
			}
			return mine
		})
	}
	return out
}

// inOrder compares the names of two registrations, by namespace and name.
func inOrder(a, b types.NamespacedName) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

// judge says what a cluster is in the rollout of a revision. passed is true if its wave has passed: what fails there now
// fails by itself. So does what was Ready on a completed revision before that is rolled out once more.
func (d *deciding) judge(c *Cluster, passed bool) (is state, why string) {
	on := c.Revision == d.target
	well := c.Start != nil && c.Start.Healthy
	fails := c.Failed != "" && c.Start != nil && !c.FailedSince.Before(c.Start.Time.Time)
	excuse := d.excuse(c)
	switch {
	case d.young(c):
		return skipped, "" // it gets a revision at once
	case on && c.Ready && well && fails && !passed && !d.completedBefore(c):
		return failed, c.Failed
	case on && c.Ready && well && c.lostNodes() && !passed && !d.completedBefore(c):
		return failed, "it has no nodes any more"
	case on && c.Ready, !on && d.changesNothing(c):
		return done, ""
	case on && well && fails: // also if the guard holds something else there, or a user has suspended it to look
		return failed, c.Failed
	case excuse != "", c.Offline && !(on && well):
		return skipped, ""
	case !on && d.well(c):
		return pending, ""
	case !on:
		return sickPending, ""
	case c.Start == nil && d.target == d.state.CompletedRevision:
		return skipped, "" // it got the revision at once, after that was completed
	case c.Start == nil:
		return pending, "" // it got the revision when there were no waves, and begins anew in its own
	}
	late := !d.Now.Before(d.late(c))
	switch {
	case well && late:
		return failed, "not Ready within " + d.Strategy.deadline.String()
	case well: // also if it does not answer any more: that may be the revision's fault
		return running, ""
	case fails, late, c.Offline:
		return sick, ""
	}
	return sickRunning, ""
}

// late returns when a cluster that works on the revision is late. The time in which no hub was at work does not count: no status has told
// Flux of the revision, or seen what came of it.
func (d *deciding) late(c *Cluster) time.Time {
	since := c.Start.Time.Time
	if since.Before(d.Since) {
		since = d.Since
	}
	return since.Add(d.Strategy.deadline)
}

// lostNodes returns whether an add-on waits for nodes on a cluster that was healthy, and not known to have none, when it got its
// revision: that may have taken them away.
func (c *Cluster) lostNodes() bool {
	return c.Nodeless != "" && c.Start != nil && c.Start.Healthy && !c.Start.WithoutNodes
}

// excuse says why the rollout should not wait for a cluster; "" if it should. A cluster that is Ready on a revision that has not failed
// has lost its nodes by something else.
func (d *deciding) excuse(c *Cluster) string {
	if c.Excused == "" && !(c.lostNodes() && d.inDoubt(c)) {
		return c.Nodeless
	}
	return c.Excused
}

// completedBefore returns whether a cluster has got the revision in an earlier rollout, which was completed.
func (d *deciding) completedBefore(c *Cluster) bool {
	return d.target == d.state.CompletedRevision && d.state.Started != nil && c.Start.Time.Before(d.state.Started)
}

// young returns whether a cluster waits for no wave: it has nothing of the set yet, and was registered after a revision was completed.
func (d *deciding) young(c *Cluster) bool {
	if c.Revision != "" {
		return false
	}
	revision, after := d.newcomers()
	return revision != "" && Young(c.Registered, after)
}

// Young returns whether a cluster was registered after a time. Both are kept in seconds, so one of the same second may have been there.
func Young(registered, after time.Time) bool { return registered.After(after) || after.IsZero() }

// well returns whether a cluster that is to get a revision is healthy. It is also if it would be, but for a revision that
// has failed or has not been Ready there. A cluster that has nothing of the set yet has nothing that could be sick.
func (d *deciding) well(c *Cluster) bool {
	return c.Healthy || c.Revision == "" || c.Start != nil && c.Start.Healthy && d.inDoubt(c)
}

// inDoubt returns whether what is wrong with a cluster may be the fault of the revision that it has.
func (d *deciding) inDoubt(c *Cluster) bool { return !c.Ready || d.barred(c.Revision) }
