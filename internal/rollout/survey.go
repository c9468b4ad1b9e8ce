// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"slices"
	"time"

	"github.com/chandler-hub/chandler/internal/identity"
)

// WaveView is a wave with its clusters, for people.
type WaveView struct {
	Name string
	// AtOnce is how many of its clusters may work on a revision at once, and MayFail how many may fail.
	AtOnce, MayFail int
	Soak            time.Duration
	// Manual is true if a person has to let the next wave begin.
	Manual bool
	// Clusters in the order in which they start.
	Clusters []ClusterView
}

// ClusterView is what a cluster is in the rollout of a revision.
type ClusterView struct {
	*Cluster
	// State is Pending, Running, Done, Failed or Skipped.
	State string
	// Why says why it failed, or why the rollout does not wait for it.
	Why string
	// Later is true if it gets the revision after the others of its wave, though the rollout does not wait for it.
	Later bool
}

// Survey returns the waves of the rollout of a revision as the clusters are now. It decides nothing.
func Survey(in Input, revision string) []WaveView {
	d := &deciding{Input: in, target: revision}
	if in.State != nil {
		d.state = *in.State.DeepCopy()
	}
	if d.state.Revision != revision { // it has not begun
		d.state.Phase, d.state.Wave, d.state.Waves = "", d.Strategy.waves[0].name, nil
	}
	d.place()
	d.count()
	out := make([]WaveView, len(d.places))
	for i := range d.places {
		p := &d.places[i]
		out[i] = WaveView{Name: p.name, AtOnce: p.concurrency(cmp.Or(p.fit, p.able)), MayFail: p.failures(p.fit), Soak: p.soak, Manual: p.manual}
		for j := range p.members {
			out[i].Clusters = append(out[i].Clusters, d.view(&p.members[j]))
		}
	}
	return out
}

func (d *deciding) view(m *member) ClusterView {
	v := ClusterView{Cluster: m.Cluster, Why: m.why, Later: m.is == sickPending}
	is := m.is
	if d.Strategy.atOnce && m.Start == nil {
		is, v.Why = d.ofAll(m.Cluster)
	}
	switch is {
	case pending:
		v.State = "Pending"
	case running:
		v.State = "Running"
	case done:
		v.State = "Done"
	case failed:
		v.State = "Failed"
	default:
		v.State, v.Why = "Skipped", d.pardoned(m, is)
	}
	return v
}

// ofAll says what a cluster is if all get a revision at once, and none is noted.
func (d *deciding) ofAll(c *Cluster) (is state, why string) {
	on := c.Revision == d.target
	switch {
	case on && c.Ready:
		return done, ""
	case on && c.Failed != "":
		return failed, c.Failed
	case d.excuse(c) != "", c.Offline:
		return skipped, ""
	case on:
		return running, ""
	}
	return pending, ""
}

// pardoned says why the rollout does not wait for a cluster.
func (d *deciding) pardoned(m *member, is state) string {
	switch excuse := d.excuse(m.Cluster); {
	case is == skipped && excuse != "":
		return excuse
	case is == skipped && m.Offline:
		return "does not answer"
	case is == skipped && d.young(m.Cluster):
		return "was registered later than the completed revision, and gets that one at once"
	case is == skipped:
		return "got the revision without a wave"
	case m.Failed != "":
		return "was not healthy before: " + m.Failed
	}
	return "was not healthy before"
}

// Wave is what a strategy says of a wave.
type Wave struct {
	Name   string
	Manual bool
}

// Waves returns the waves of a strategy.
func (s *Strategy) Waves() []Wave {
	out := make([]Wave, len(s.waves))
	for i := range s.waves {
		out[i] = Wave{s.waves[i].name, s.waves[i].manual}
	}
	return out
}

// Deadline returns how long a cluster may take.
func (s *Strategy) Deadline() time.Duration { return s.deadline }

// GoesBack returns whether clusters get the last completed revision again if the newest fails.
func (s *Strategy) GoesBack() bool { return s.rollback }

// Windows returns how many windows there are, whether one is open at a time, and when that changes; zero if never.
func (s *Strategy) Windows(now time.Time) (n int, isOpen bool, until time.Time) {
	if isOpen, until = open(s.windows, now); isOpen {
		until = closes(s.windows, now)
	}
	return len(s.windows), isOpen, until
}

// Listed returns whether the content of a revision is in a list, such as that of the failed ones.
func Listed(revision string, list []string) bool {
	return slices.ContainsFunc(list, func(r string) bool { return identity.SameContent(r, revision) })
}

// Undone returns the revision that the clusters get instead of the newest one, by order; "" if no user wants that.
func (o *Orders) Undone(newest string) string {
	to, _ := o.undone(newest)
	return to
}
