// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/identity"
)

// Input is what a rollout is decided from.
type Input struct {
	// Set is the namespace/name of the set.
	Set      string
	Strategy *Strategy
	Pause    *hubv1.RolloutPause
	Orders   Orders
	// Revision is the newest revision of the set.
	Revision string
	// Exists returns whether a revision of the same content exists, whatever its epoch.
	Exists func(revision string) bool
	// Same returns whether a revision changes nothing on a cluster, in comparison with the one that it has.
	Same func(c *Cluster, revision string) bool
	// State is what the last decision left; nil if there was none.
	State    *hubv1.RolloutStatus
	Clusters []Cluster
	Now      time.Time
	// Since is since when this process of the hub is at work, and Known from when on it knows what came of the clusters before; zero if
	// it always was. None may have been at work for hours.
	Since, Known time.Time
}

// Decision is what is to be done.
type Decision struct {
	// State is written before anything else is done.
	State hubv1.RolloutStatus
	// Everyone is the revision that every cluster gets at once; "" if Starts says who gets which.
	Everyone string
	// Newcomers is the revision that a cluster without a delivery gets at once if it was registered after the time After; "" if none,
	// since none has been completed. After is zero if every cluster without a delivery gets it.
	Newcomers string
	After     time.Time
	// Starts are the clusters that get a revision now, or begin anew with the one that they have.
	Starts []Start
	// Held is true if no cluster may start, also none that was told to and has not begun.
	Held bool
	// Next is when to decide again, even if nothing happens; zero if never.
	Next time.Time
}

// Start gives a cluster a revision.
type Start struct {
	Cluster types.NamespacedName
	// Delivery is the one that gets it. If it is made anew, the cluster has another revision than what this was decided from.
	Delivery types.UID
	Revision string
	// Start is how it comes to it; nil if the revision changes nothing there.
	Start *hubv1.DeliveryStart
}

// maxNamed limits the lists of names in the state, and maxFailed that of the revisions that have failed and exist, as the API does.
// maxBefore limits those that were completed before the last one.
const maxNamed, maxFailed, maxBefore = 5, 100, 10

// deciding is a decision that is being made.
type deciding struct {
	Input
	// target is the revision that is rolled out. back is true if it is an older one, and atOnce if all clusters get it at
	// the same time.
	target       string
	back, atOnce bool
	state        hubv1.RolloutStatus
	places       []place
	paused       bool
	// opened is whether the windows let clusters start now; nil until it is needed.
	opened *bool
	starts []Start
	next   time.Time
}

// Decide decides what comes next.
func Decide(in Input) Decision {
	d := &deciding{Input: in}
	if in.State != nil {
		d.state = *in.State.DeepCopy()
	}
	retry := d.retry()
	d.aim()
	if d.paused = d.pausedNow(); d.Strategy.atOnce && !d.back && !d.paused && !d.barred(d.target) {
		return d.together()
	}
	d.place()
	d.count()
	if retry {
		d.startAnew()
	}
	d.bar()
	if d.state.WaitingFor = ""; d.held() {
		out := d.decision()
		out.Held = true
		return out
	}
	d.advance()
	d.start()
	return d.decision()
}

// retry takes the newest revision off the failed ones if a user wants it tried again.
func (d *deciding) retry() bool {
	if !d.Orders.retried(d.Revision, d.state.Retried) {
		return false
	}
	d.state.Retried = d.Orders.retry
	d.state.FailedRevisions = slices.DeleteFunc(d.state.FailedRevisions, func(r string) bool { return identity.SameContent(r, d.Revision) })
	d.state.Revision = ""
	return true
}

// aim finds out which revision is rolled out, and begins anew if it is another one than before.
func (d *deciding) aim() {
	d.target, d.atOnce = d.Revision, d.Strategy.atOnce
	if to, now := d.Orders.undone(d.Revision); to != "" && d.Exists(to) && d.renewed(to) != d.Revision {
		d.target, d.back, d.atOnce = d.renewed(to), true, d.atOnce || now
	} else if d.barred(d.Revision) && d.mayGoBack() {
		d.target, d.back = d.renewed(d.state.CompletedRevision), true
	}
	if d.state.Revision == d.target {
		return
	}
	d.state.Revision, d.state.Started = d.target, at(d.Now)
	d.state.Wave, d.state.WaveReady, d.state.Phase = d.Strategy.waves[0].name, nil, hubv1.RolloutProgressing
	d.state.Waves = nil
}

// mayGoBack returns whether clusters with the newest revision get the last completed one again if it fails.
func (d *deciding) mayGoBack() bool {
	c := d.state.CompletedRevision
	return d.Strategy.rollback && c != "" && d.renewed(c) != d.Revision && !d.barred(c) && d.Exists(c)
}

func at(t time.Time) *metav1.Time {
	out := metav1.NewTime(t.UTC().Truncate(time.Second)) // as it is stored
	return &out
}

// renewed returns the revision with the content of another one that this hub can render: of the newest one's epoch.
func (d *deciding) renewed(revision string) string { return identity.Renewed(revision, d.Revision) }

func (d *deciding) barred(revision string) bool { return Barred(&d.state, revision) }

// Barred returns whether a revision has failed, and is not rolled out by itself, by whatever epoch it was rendered. The state may be nil.
func Barred(state *hubv1.RolloutStatus, revision string) bool {
	return state != nil && Listed(revision, state.FailedRevisions)
}

func (d *deciding) pausedNow() bool {
	paused, until := Paused(d.Pause, d.Now)
	if !until.IsZero() {
		d.look(until)
	}
	return paused
}

// Paused returns whether a pause, or nil for none, holds back new revisions at a time, and until when; zero if it has no end.
func Paused(p *hubv1.RolloutPause, now time.Time) (paused bool, until time.Time) {
	switch {
	case p == nil:
		return false, time.Time{}
	case p.Until == nil:
		return true, time.Time{}
	case !now.Before(p.Until.Time):
		return false, time.Time{}
	}
	return true, p.Until.Time
}

// look has the next decision made at a time, if none is made before.
func (d *deciding) look(t time.Time) {
	if d.next.IsZero() || t.Before(d.next) {
		d.next = t
	}
}

// place puts the clusters into their waves. A wave has passed by its name: one that a user has put before others, or renamed,
// has not.
func (d *deciding) place() {
	d.places = d.Strategy.assign(d.Set, d.Clusters)
	for i := range d.places {
		p := &d.places[i]
		p.passed = d.complete() || slices.ContainsFunc(d.state.Waves, func(w hubv1.WaveStatus) bool { return w.Passed && w.Name == p.name })
	}
}

func (d *deciding) complete() bool {
	return d.state.Phase == hubv1.RolloutDone || d.state.Phase == hubv1.RolloutRolledBack
}

// count finds out what each cluster is.
func (d *deciding) count() {
	var named []string
	for i := range d.places {
		p := &d.places[i]
		for j := range p.members {
			m := &p.members[j]
			m.is, m.why = d.judge(m.Cluster, p.passed)
			p.add(m, d.target)
			if m.is == failed && len(named) < maxNamed {
				named = append(named, fmt.Sprintf("%s (%s)", m.Key.Name, m.why))
			}
			if m.is == running || m.is == sickRunning {
				d.look(d.late(m.Cluster))
			}
			if m.is == skipped && m.Revision == d.target && m.Start != nil && m.Start.Healthy && d.excuse(m.Cluster) != "" {
				// Later it cannot be told whether it failed by itself. So it counts as not healthy from now on.
				d.give(m.Cluster, d.target, false, m.Start.Time.Time)
			}
		}
	}
	if len(named) > 0 || !d.barred(d.Revision) { // else it says why the revision is barred, also after the rollback
		d.state.Failed = named
	}
}

// startAnew lets the clusters that failed begin anew with the revision that they have.
func (d *deciding) startAnew() {
	d.state.Failed = nil
	for i := range d.places {
		p := &d.places[i]
		for j := range p.members {
			if m := &p.members[j]; m.is == failed {
				p.move(m, running)
				d.give(m.Cluster, d.target, true, d.Now)
			}
		}
	}
}

// bar notes that the revision has failed, if too many clusters of a wave have. One that has started may have come to a wave that is
// still to come.
func (d *deciding) bar() {
	if d.back || d.atOnce || d.complete() {
		return
	}
	for i := range d.places {
		if p := &d.places[i]; p.failedTooMany() && !d.barred(d.target) {
			d.state.FailedRevisions = remember(d.state.FailedRevisions, d.target, d.Exists)
			d.state.Wave = p.name
		}
	}
}

// remember adds a revision to those that have failed. One that still exists is not forgotten, but for a bound that no fleet comes to.
func remember(failed []string, revision string, exists func(string) bool) []string {
	failed = append(failed, revision)
	gone := 0
	for _, r := range failed {
		if !exists(r) {
			gone++
		}
	}
	failed = slices.DeleteFunc(failed, func(r string) bool {
		drop := gone > maxNamed && !exists(r)
		if drop {
			gone--
		}
		return drop
	})
	return failed[max(0, len(failed)-maxFailed):]
}

// held returns whether nothing may start, and says why.
func (d *deciding) held() bool {
	switch {
	case d.barred(d.target) && !d.back && !d.complete():
		d.state.Phase, d.state.WaveReady = hubv1.RolloutFailed, nil
		d.state.WaitingFor = fmt.Sprintf("another revision, since %s failed in wave %s; or for `chandler rollout retry`", d.target, d.state.Wave)
		if d.mayGoBack() {
			d.look(d.Now) // it goes back in the next decision, after this one has been written
		}
	case d.paused && !d.complete():
		d.state.Phase, d.state.WaitingFor = hubv1.RolloutPaused, pauseText(d.Pause)
	case d.blind():
		d.state.WaitingFor = "the hub, which has just started, to look at the clusters that have the revision"
		d.look(d.Known)
	default:
		return d.paused
	}
	return true
}

// blind returns whether clusters got the revision in this rollout before this process of the hub began, and it has not had the time to look
// at them: a canary may have failed in its soak. While no cluster has got the revision, there is nothing to be seen.
func (d *deciding) blind() bool {
	since := d.Since.Truncate(time.Second) // as the times of a rollout and of a start are stored
	before := d.state.Started == nil || d.state.Started.Time.Before(since)
	if !before || !d.Now.Before(d.Known) || d.back || d.atOnce || d.complete() {
		return false
	}
	return slices.ContainsFunc(d.Clusters, func(c Cluster) bool {
		return c.Revision == d.target && c.Start != nil && c.Start.Time.Time.Before(since)
	})
}

func pauseText(p *hubv1.RolloutPause) string {
	text := "the end of spec.pause"
	if p.Reason != "" {
		text += " (" + p.Reason + ")"
	}
	if p.Until != nil {
		text += " until " + p.Until.UTC().Format(time.RFC3339)
	}
	return text
}

// idle returns whether no cluster takes part. What no cluster has tried passes no wave.
func (d *deciding) idle() bool {
	return !d.complete() && !slices.ContainsFunc(d.places, func(p place) bool { return p.n[skipped] < p.total() })
}

// completed notes that the revision is completed, if it is not the last one that was.
func (d *deciding) completed() {
	s := &d.state
	if s.CompletedRevision == d.target {
		return
	}
	before := append([]string{s.CompletedRevision}, s.CompletedBefore...)
	before = slices.DeleteFunc(before, func(r string) bool { return r == "" || r == d.target || !d.Exists(r) })
	s.CompletedBefore = before[:min(len(before), maxBefore)]
	s.CompletedRevision, s.CompletedTime = d.target, at(d.Now)
}

// advance goes on to the wave that may work now.
func (d *deciding) advance() {
	if d.idle() {
		if d.state.Phase = hubv1.RolloutProgressing; d.back {
			d.state.Phase = hubv1.RolloutRollingBack
		}
		d.state.WaitingFor = "a cluster that answers, and is not paused or asleep"
		return
	}
	for i := range d.places {
		p := &d.places[i]
		if p.passed {
			continue
		}
		if d.state.Wave != p.name {
			d.state.Wave, d.state.WaveReady = p.name, nil
		}
		if d.back {
			d.state.Phase = hubv1.RolloutRollingBack
		} else {
			d.state.Phase = hubv1.RolloutProgressing
		}
		if !d.atOnce {
			if p.passed = d.passes(p); !p.passed {
				return
			}
		}
	}
	if !d.complete() && slices.ContainsFunc(d.places, func(p place) bool { return !p.over() }) {
		return // also one that was skipped when its wave passed takes part when it is back
	}
	if !d.complete() && !slices.ContainsFunc(d.places, func(p place) bool { return p.n[done] > 0 }) {
		d.state.WaitingFor = "a cluster that is Ready on it"
		return
	}
	d.completed()
	for i := range d.places {
		d.places[i].passed = true
	}
	d.state.Wave, d.state.WaveReady, d.state.Phase = "", nil, hubv1.RolloutDone
	if d.back {
		d.state.Phase = hubv1.RolloutRolledBack
		d.state.WaitingFor = fmt.Sprintf("another revision than %s, which is not rolled out", d.Revision)
	}
}

// passes returns whether the wave after this one may begin.
func (d *deciding) passes(p *place) bool {
	if !d.concerned(p) {
		return true
	}
	if p.n[done] == 0 && !p.over() {
		d.state.WaveReady = nil // all were skipped, and now one can tell whether the revision is good
	}
	if d.state.WaveReady == nil {
		if !p.over() {
			return false
		}
		d.state.WaveReady = at(d.Now)
	}
	if d.back {
		return true
	}
	soaked := d.state.WaveReady.Add(p.soak)
	if _, expedited := d.Orders.Expedited(d.target); d.Now.Before(soaked) && !expedited {
		d.look(soaked)
		d.state.Phase = hubv1.RolloutSoaking
		d.state.WaitingFor = fmt.Sprintf("the soak of wave %s, until %s", p.name, soaked.UTC().Format(time.RFC3339))
		return false
	}
	if p.manual && !d.Orders.Approves(d.target, p.name) {
		d.state.Phase = hubv1.RolloutWaitingForApproval
		d.state.WaitingFor = fmt.Sprintf("an approval of wave %s: `chandler rollout approve`, or annotation %s=%s",
			p.name, hubv1.ApproveAnnotation, Approval(d.target, p.name))
		return false
	}
	return true
}

// decision returns what was decided.
func (d *deciding) decision() Decision {
	d.state.Waves = nil
	for i := range d.places {
		d.state.Waves = append(d.state.Waves, d.places[i].status())
	}
	out := Decision{State: d.state, Starts: d.starts, Next: d.next}
	out.Newcomers, out.After = d.newcomers()
	slices.SortStableFunc(out.Starts, func(a, b Start) int { return inOrder(a.Cluster, b.Cluster) })
	return out
}

// newcomers returns the revision that clusters get at once which were registered after a time; "" if none does.
func (d *deciding) newcomers() (revision string, after time.Time) {
	c := d.state.CompletedRevision
	if c == "" {
		return "", after
	}
	if d.state.CompletedTime != nil {
		after = d.state.CompletedTime.Time
	}
	switch {
	case d.back:
		return d.target, after
	case !d.Exists(c) || d.barred(c):
		return "", after
	}
	return d.renewed(c), after
}

// together decides about a revision that every cluster gets at once. It is completed when each has been Ready on it that answers and is not
// excused.
func (d *deciding) together() Decision {
	s := &d.state
	works, ready := 0, 0
	for i := range d.Clusters {
		switch is, _ := d.ofAll(&d.Clusters[i]); is {
		case done:
			ready++
		case skipped:
		default:
			works++
		}
	}
	s.Waves, s.Wave, s.WaveReady, s.WaitingFor, s.Phase = nil, "", nil, "", hubv1.RolloutProgressing
	if s.Failed = nil; works == 0 && ready > 0 {
		s.Phase = hubv1.RolloutDone
		d.completed()
	}
	return Decision{State: *s, Next: d.next, Everyone: d.target, Newcomers: d.target}
}
