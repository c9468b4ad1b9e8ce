// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/test/simulation/apiserver"
)

// counted is how long a set may take to count what has failed on a cluster. If the cluster leaves before, or another revision is rolled
// out, that failure does not count.
const counted = 2 * time.Second

// checkStart looks at a delivery that gets another revision, or begins anew with the one that it has.
func (w *World) checkStart(s *set, r *rolling, set *hubv1.AddonSet, before, d *hubv1.AddonDelivery) {
	to, key := d.Spec.RevisionName, d.Spec.RegistrationRef.Key()
	if set.UID != d.Spec.AddonSetRef.UID || len(r.specs) != 1 || r.specs[0] == nil {
		return // a process cannot know yet what holds
	}
	if d.Spec.Start == nil || !started(before.Spec.Start, d.Spec.Start) {
		again := d.Spec.Start != nil && !d.Spec.Start.Time.Time.Before(w.clock.Now().Truncate(time.Second)) // it has started in this very second
		if from := before.Spec.RevisionName; from != "" && !identity.SameEpoch(from, to) && !w.alone(s) && !again {
			w.violated("rollout", "%s gets %s in place of %s past the waves of %s", key, to, from, s.name)
		}
		return // it is no start
	}
	if is := set.Status.Rollout; is == nil || is.Revision != to {
		if slices.Contains(r.lately, to) {
			return // the controller that starts clusters hears of another revision after the status of the set is written
		}
		w.violated("rollout", "%s gets %s before the status of %s says that it is rolled out", key, to, s.name)
		return
	}
	has := before.Spec.RevisionName == to // what is tried again, also while spec.pause holds it
	if r.barred[content(to)] && !r.undone[content(to)] && !has {
		w.violated("rollout", "%s gets %s, which has failed, and nobody wants it tried again", key, to)
		return
	}
	if p := r.held; p != nil && !has && (p.Until == nil || w.clock.Now().Before(p.Until.Time)) {
		w.violated("rollout", "%s gets %s, and spec.pause of %s holds it", key, to, s.name)
	}
	w.checkAnew(r, set, before, d)
	w.checkWindow(r, set, before, d)
	m := r.members[key]
	if m == nil || m.wave < 0 || r.atOnce || m.moved > r.rest || has {
		return // what is tried again where it failed may be tried on all of these at once: they have it
	}
	w.checkConcurrency(r, m, key, to)
	for other, o := range r.members {
		if o.wave >= 0 && o.wave < m.wave && o.moved <= r.began && o.away <= r.began {
			w.checkBefore(r, set, o, other, key, to)
			w.checkUnseen(s, r, o, other, key, to)
		}
	}
}

// checkFirst: a cluster gets its first delivery without a wave only of a revision that was completed before the cluster was
// registered, or of one that somebody went back to.
func (w *World) checkFirst(s *set, r *rolling, set *hubv1.AddonSet, d *hubv1.AddonDelivery) {
	is, key := set.Status.Rollout, d.Spec.RegistrationRef.Key()
	reg, stays := w.registrationAt(key)
	if d.Spec.Start != nil || is == nil || !stays || set.UID != d.Spec.AddonSetRef.UID || len(r.specs) != 1 ||
		r.specs[0] == nil || set.DeletionTimestamp != nil || !matches(s.selector, reg.Labels) || w.alone(s, key) {
		return // a process cannot know yet what holds, or what is made is withdrawn at once
	}
	if to := d.Spec.RevisionName; is.CompletedTime == nil || reg.CreationTimestamp.Before(is.CompletedTime) ||
		!identity.SameContent(to, is.CompletedRevision) && !r.undone[content(to)] && !slices.Contains(r.lately, to) {
		w.violated("rollout", "%s gets %s as its first revision, past the waves of %s", key, d.Spec.RevisionName, s.name)
	}
}

// alone returns whether a set that names no waves has one cluster at most, beside some: that one gets a revision at once. The matcher may
// see a second cluster, which has nothing to wait for, before the set has counted it.
func (w *World) alone(s *set, beside ...types.NamespacedName) bool {
	spec := w.rolls[s.key()].specs[0]
	has := w.assign(s, spec)
	for _, key := range beside {
		delete(has, key)
	}
	return spec.Waves[0].Name == usualWaves[0].Name && len(has) <= few
}

// checkCompleted: what the set's status says is completed has been Ready on a cluster.
func (w *World) checkCompleted(write apiserver.Write, r *rolling, set *hubv1.AddonSet) {
	now, before := set.Status.Rollout.CompletedRevision, ""
	if write.Old != nil {
		if is := typed(w, write.Old, &hubv1.AddonSet{}).Status.Rollout; is != nil {
			before = is.CompletedRevision
		}
	}
	if w.at == nil || now == before || now == "" || slices.Contains(r.lately, now) && r.undone[content(now)] {
		return
	}
	for _, d := range w.deliveries() {
		if d.Status.ReadyRevision == now && d.SetKey().String() == set.Namespace+"/"+set.Name {
			return
		}
	}
	w.violated("rollout", "%s says that %s is completed, and no cluster has been Ready on it", set.Name, now)
}

// checkAnew: a cluster that has got a revision begins anew with it only if somebody wants that. Its deadline would never be over
// otherwise. A cluster that was to get another one meanwhile, by an edit that was then taken back or undone, begins anew once.
func (w *World) checkAnew(r *rolling, set *hubv1.AddonSet, before, d *hubv1.AddonDelivery) {
	revision, _, _ := strings.Cut(r.retried, "/")
	wanted := content(revision) == content(set.Status.Revision) || // also if the clusters are on their way back to an older one
		r.hadAnother(d.Spec.RevisionName) || r.undone[content(d.Spec.RevisionName)] && slices.Contains(r.lately, d.Spec.RevisionName)
	if to := d.Spec.RevisionName; before.Spec.Start != nil && before.Spec.RevisionName == to && !wanted {
		w.violated("rollout", "%s begins anew with %s, and nobody wants it tried again", d.Spec.RegistrationRef.Key(), to)
	}
}

// hadAnother returns whether another revision was to be rolled out after this one, since the last rest.
func (r *rolling) hadAnother(to string) bool {
	first := max(0, slices.Index(r.lately, to))
	return slices.ContainsFunc(r.lately[first:], func(other string) bool { return other != to })
}

// tried is for how long a write may be tried again after a window has closed.
const tried = 10 * time.Minute

// checkWindow: a cluster gets a newer revision in a window, or if a user has opened them all. What clusters are on their way back to may
// become the newest one again before they have it.
func (w *World) checkWindow(r *rolling, set *hubv1.AddonSet, before, d *hubv1.AddonDelivery) {
	to := d.Spec.RevisionName
	if len(r.specs[0].Windows) == 0 || r.expedited[to] || before.Spec.RevisionName == to ||
		to != set.Status.Revision || r.undone[content(to)] && slices.Contains(r.lately, to) {
		return
	}
	now := w.clock.Now().UTC() // that of the strategy "evenhours", the only one
	if open := now.Truncate(2 * time.Hour); now.Sub(open) >= halfAnHour+tried {
		w.violated("rollout", "%s gets %s at %s, and no window of %s is open", d.Spec.RegistrationRef.Key(), to,
			now.Format(time.TimeOnly), set.Name)
	}
}

// checkConcurrency: no more clusters of a wave work on a revision than may. One that was paused after it was told to start does not work on
// what it gets.
func (w *World) checkConcurrency(r *rolling, m *rolled, key types.NamespacedName, to string) {
	reg, registered := w.registrationAt(key)
	paused := registered && status.Reason(reg, hubv1.SuspendedCondition) != ""
	if paused || m.wave >= len(r.specs[0].Waves) { // the last one has no limit
		return
	}
	limit := max(1, share(r.specs[0].Waves[m.wave].MaxConcurrency, r.totals[m.wave], r.totals[m.wave], true))
	busy := []string{key.Name}
	for other, o := range r.members {
		works := o.revision == to && o.start != nil && o.readyAt.IsZero() && !o.lapsed
		if o != m && o.wave == m.wave && o.moved <= r.rest && works && !w.overdue(o.start.Time.Time, r.specs[0]) {
			busy = append(busy, other.Name)
		}
	}
	if slices.Sort(busy); len(busy) > limit {
		w.violated("rollout", "%s work on %s at once, and of their wave %d may", strings.Join(busy, ", "), to, limit)
	}
}

// checkBefore: a cluster of an earlier wave has the revision before one of a later wave, its soak is over, and its wave is approved.
func (w *World) checkBefore(r *rolling, set *hubv1.AddonSet, o *rolled, other, key types.NamespacedName, to string) {
	spec := r.specs[0]
	wave := &spec.Waves[o.wave]
	if r.passed[wave.Name] || r.passed[""] {
		return
	}
	switch {
	case o.revision != to:
		w.violated("rollout", "%s gets %s, and %s of wave %s has not got it", key, to, other, wave.Name)
		return
	case o.start == nil || o.lapsed:
		return
	case o.readyAt.IsZero() && !w.overdue(o.start.Time.Time, spec):
		w.violated("rollout", "%s gets %s, and %s of wave %s works on it", key, to, other, wave.Name)
		return
	case o.readyAt.IsZero() || to != set.Status.Revision || r.wentBack[wave.Name]:
		return // going back waits for no soak and no approval
	}
	if soak := wave.Soak; soak != nil && !r.expedited[to] && w.clock.Now().Before(o.readyAt.Add(soak.Duration-time.Second)) {
		w.violated("rollout", "%s gets %s, and %s of wave %s has been Ready on it for %s of %s", key, to, other, wave.Name,
			w.clock.Now().Sub(o.readyAt), soak.Duration)
	}
	if wave.Approval == hubv1.ManualApproval && !r.approved[to+"/"+wave.Name] {
		w.violated("rollout", "%s gets %s, and nobody has approved wave %s", key, to, wave.Name)
	}
}

// restRollouts is called at rest, when a process knows all that is written.
func (w *World) restRollouts() {
	for _, s := range w.staged() {
		r := w.rolls[s.key()]
		if r == nil {
			continue
		}
		r.specs, r.rest, r.lately = r.specs[len(r.specs)-1:], w.seq, r.lately[max(0, len(r.lately)-1):]
		set := typed(w, w.server.Get(s.key()), &hubv1.AddonSet{})
		if is := set.Status.Rollout; r.first && is != nil {
			// Nobody had anything before, so who takes part is known at rest. Who comes to a wave that is Ready is not waited for.
			if r.first = is.WaveReady == nil && !slices.ContainsFunc(is.Waves, func(w hubv1.WaveStatus) bool { return w.Passed }); r.first {
				r.began = w.seq
			}
		}
		r.held = set.Spec.Pause
		r.atOnce = strings.HasSuffix(set.Annotations[hubv1.UndoAnnotation], "/now")
		w.restMembers(s, r, set)
	}
}

// restMembers notes which revision has failed, and checks that no cluster waits for its first one.
func (w *World) restMembers(s *set, r *rolling, set *hubv1.AddonSet) {
	spec, failed := r.specs[0], map[int]int{}
	if spec == nil {
		return
	}
	for key, m := range r.members {
		if m.wave < 0 {
			continue
		}
		is := set.Status.Rollout // before the rollout has come to it, a cluster has nothing
		waits := r.held != nil || len(spec.Windows) > 0 || is == nil || is.Phase != hubv1.RolloutDone || m.away > r.rest
		if reg, stays := w.registrationAt(key); m.revision == "" && stays && reg.DeletionTimestamp == nil && status.Online(reg) &&
			status.Reason(reg, hubv1.SuspendedCondition) == "" && !waits {
			if m.without.IsZero() {
				m.without = w.clock.Now()
			} else if w.clock.Now().Sub(m.without) > 20*time.Minute {
				w.violated("rollout", "%s has waited for a delivery of %s since %s", key, s.name, m.without.UTC().Format(time.TimeOnly))
			}
		}
		bad := m.failed && !m.excused && m.start != nil && m.start.Healthy && m.moved <= r.began && (m.readyAt.IsZero() || r.soaks(set, m))
		if bad && m.revision == set.Status.Revision && targetOf(set) == set.Status.Revision {
			failed[m.wave]++
		}
	}
	complete := set.Status.Rollout != nil && set.Status.Rollout.Phase == hubv1.RolloutDone
	over := false
	for wave, n := range failed {
		allowed := 0
		if wave < len(spec.Waves) {
			allowed = share(spec.Waves[wave].MaxFailures, r.totals[wave], 0, false)
		}
		over = over || n > allowed && !complete && !r.atOnce
	}
	r.noteFailing(content(set.Status.Revision), over, w.clock.Now())
}

// noteFailing notes whether too much of a revision fails. It is barred when the set has had time to count that.
func (r *rolling) noteFailing(revision string, fails bool, now time.Time) {
	switch {
	case !fails:
		delete(r.failing, revision)
	case r.failing[revision].IsZero():
		r.failing[revision] = now
	case !now.Before(r.failing[revision].Add(counted)):
		r.barred[revision] = true
	}
}

// soaks returns whether a cluster that had been Ready on a revision failed before the soak of its wave could be over. The soak of a wave
// that has passed does not begin again, should a cluster of it get the revision anew. What was Ready on a completed revision fails by
// itself, also while that is rolled out once more.
func (r *rolling) soaks(set *hubv1.AddonSet, m *rolled) bool {
	if is := set.Status.Rollout; is != nil && is.CompletedRevision == m.revision && is.Started != nil && m.start.Time.Before(is.Started) {
		return false
	}
	if is := set.Status.Rollout; is != nil && m.wave < len(is.Waves) && is.Waves[m.wave].Passed {
		return false
	}
	if spec := r.specs[0]; m.wave < len(spec.Waves) && spec.Waves[m.wave].Soak != nil && !r.expedited[m.revision] {
		return m.failedAt.Before(m.readyAt.Add(spec.Waves[m.wave].Soak.Duration))
	}
	return false
}
