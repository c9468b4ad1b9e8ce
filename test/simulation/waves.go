// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/apply"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/test/simulation/apiserver"
)

// This file looks at how revisions reach clusters. It counts from what is written to deliveries, registrations and sets, and
// never asks the hub's own rollout engine. What a process may not have known yet is no violation: a cluster whose state has
// changed since the world was last at rest, or was another one when the rollout began, is left out of the counts.

// rolling is what has come of a set that has, or has had, waves.
type rolling struct {
	uid any
	// specs are the strategies that were written since the last rest, the newest last; nil for none.
	specs []*hubv1.Rollout
	// target is the revision that the set's status says is rolled out, and since when. began is the last rest before that, and rest the
	// last one.
	// lately are the revisions that it named since then, and the one before.
	// first is true for the first target of a set that is new.
	target      string
	first       bool
	began, rest int
	lately      []string
	// passed are the waves that had passed, by their names, when people wrote another strategy; "" for all. They do not soak, and nobody
	// has to approve them, by what that says.
	passed map[string]bool
	// wentBack are the waves that passed while the set had a newer revision, which asks for no soak and no approval. They have passed, also
	// if the set then comes to have this one.
	wentBack map[string]bool
	// approved are revisions and waves, expedited revisions.
	approved, expedited map[string]bool
	// undone are contents that somebody went back to; atOnce is true if somebody wanted that at once since the last rest.
	undone map[string]bool
	atOnce bool
	// barred are contents that have failed, and broke those with which something has failed on a cluster that they were rolled out to.
	barred, broke map[string]bool
	failing       map[string]time.Time // since when contents fail whose failure the set may not have counted yet
	retried       string
	// held is the spec.pause that a process knows.
	held    *hubv1.RolloutPause
	members map[types.NamespacedName]*rolled
	// totals are how many clusters each wave has had at most since the rollout began.
	totals map[int]int
}

// rolled is a cluster in it.
type rolled struct {
	wave int
	// away is when it was last seen in a state in which nobody waits for it, before it got the revision. moved is when it last came to
	// another wave.
	away, moved int
	revision    string
	start       *hubv1.DeliveryStart
	// readyAt is when it was first seen Ready on the revision since its start. lapsed is true if it has not counted as working on it
	// for a while.
	readyAt time.Time
	lapsed  bool
	// failed is true while an add-on has failed, since failedAt, and excused while nobody waits for the cluster.
	failed, excused bool
	failedAt        time.Time
	// broken is like failed, if that was said of another generation of the delivery.
	broken bool
	// without is since when it has had no delivery.
	without time.Time
}

// content returns a revision without the epoch of its renderer.
func content(revision string) string {
	if i := strings.LastIndex(revision, "-e"); i > 0 {
		return revision[:i]
	}
	return revision
}

// noteRollouts is called after every write.
func (w *World) noteRollouts(write apiserver.Write) {
	w.seq++
	if !write.Changed || write.Key.Group != "chandler.dev" {
		return
	}
	if write.Key.Kind == "AddonSet" {
		w.noteStrategy(write)
	}
	for _, s := range w.staged() {
		r := w.rolls[s.key()]
		if r == nil {
			continue
		}
		set := typed(w, w.server.Get(s.key()), &hubv1.AddonSet{})
		if write.Key.Kind == "AddonDelivery" && write.New != nil && w.at != nil && setNameOf(write.New) == s.namespace+"/"+s.name {
			before, after := &hubv1.AddonDelivery{}, typed(w, write.New, &hubv1.AddonDelivery{})
			if write.Old != nil {
				before = typed(w, write.Old, &hubv1.AddonDelivery{})
			} else {
				w.checkFirst(s, r, set, after)
			}
			if before.Spec.RevisionName != after.Spec.RevisionName || started(before.Spec.Start, after.Spec.Start) {
				w.say("  %s gets %s", after.Spec.RegistrationRef.Name, after.Spec.RevisionName)
			}
			w.checkStart(s, r, set, before, after)
		}
		w.noteMembers(s, r, set)
	}
}

// noteStrategy notes what people have written to a set, and what its status says of its target.
func (w *World) noteStrategy(write apiserver.Write) {
	if write.New == nil {
		delete(w.rolls, write.Key)
		return
	}
	set := typed(w, write.New, &hubv1.AddonSet{})
	r := w.rolls[write.Key]
	if r == nil || r.uid != set.UID {
		if wavesOf(set) == nil {
			return
		}
		r = &rolling{uid: set.UID, approved: map[string]bool{}, expedited: map[string]bool{}, undone: map[string]bool{},
			barred: map[string]bool{}, broke: map[string]bool{}, failing: map[string]time.Time{},
			members: map[types.NamespacedName]*rolled{}, totals: map[int]int{},
			passed: map[string]bool{}, wentBack: map[string]bool{}}
		w.rolls[write.Key] = r
		r.specs, r.first = []*hubv1.Rollout{nil, wavesOf(set)}, set.Status.Revision == ""
	}
	if last := r.specs[len(r.specs)-1]; nested(write.Old, "metadata", "generation") != nested(write.New, "metadata", "generation") &&
		!sameStrategy(last, wavesOf(set)) {
		r.specs = append(r.specs, wavesOf(set))
	}
	for text := range strings.SplitSeq(set.Annotations[hubv1.ApproveAnnotation], ",") {
		revision, wave, _ := strings.Cut(text, "/")
		r.approved[revision+"/"+wave] = true
	}
	revision, _, _ := strings.Cut(set.Annotations[hubv1.ExpediteAnnotation], ":")
	r.expedited[revision] = true
	if parts := strings.Split(set.Annotations[hubv1.UndoAnnotation], "/"); len(parts) > 1 {
		r.undone[content(parts[1])] = true
		r.atOnce = r.atOnce || len(parts) > 2
	}
	if set.Spec.Pause == nil || r.held == nil || !set.Spec.Pause.Until.Equal(r.held.Until) {
		r.held = nil
	}
	if mark := set.Annotations[hubv1.RetryAnnotation]; mark != r.retried {
		r.retried = mark
		revision, _, _ := strings.Cut(mark, "/")
		delete(r.barred, content(revision))
		delete(r.failing, content(revision))
	}
	is := set.Status.Rollout
	if is == nil {
		return
	}
	w.noteBarred(write, r, set)
	target := is.Revision
	if is.Started != nil {
		target += " " + is.Started.UTC().String()
	}
	if target != r.target {
		r.first = r.first && r.target == ""
		w.say("  %s rolls out %s", set.Name, is.Revision)
		r.target, r.began, r.totals, r.passed, r.wentBack = target, r.rest, map[int]int{}, map[string]bool{}, map[string]bool{}
	}
	r.notePassed(set)
	w.checkCompleted(write, r, set)
	r.lately = append(r.lately, is.Revision)
}

// notePassed notes the waves that the set's status says have passed, where they need no soak and no approval.
func (r *rolling) notePassed(set *hubv1.AddonSet) {
	is, another, back := set.Status.Rollout, len(r.specs) > 1, targetOf(set) != set.Status.Revision
	r.passed[""] = r.passed[""] || another && is.Phase == hubv1.RolloutDone
	for _, wave := range is.Waves {
		r.passed[wave.Name] = r.passed[wave.Name] || another && wave.Passed
		r.wentBack[wave.Name] = r.wentBack[wave.Name] || back && wave.Passed
	}
}

// noteBarred notes which revisions the set's status says have failed. Something has to have failed on a cluster that got one.
func (w *World) noteBarred(write apiserver.Write, r *rolling, set *hubv1.AddonSet) {
	before := typed(w, write.New, &hubv1.AddonSet{}).Status.Rollout
	if write.Old != nil {
		before = typed(w, write.Old, &hubv1.AddonSet{}).Status.Rollout
	}
	for _, revision := range set.Status.Rollout.FailedRevisions {
		of := content(revision)
		again, _, _ := strings.Cut(r.retried, "/")
		if w.at != nil && (content(again) != of || set.Status.Rollout.Retried == r.retried) { // it has seen who wants it tried again
			r.barred[of] = true
		}
		known := before != nil && slices.ContainsFunc(before.FailedRevisions, func(r string) bool { return content(r) == of })
		if w.at != nil && !known && !r.broke[of] && !w.late(r, of) {
			w.violated("rollout", "%s says that %s has failed, and no cluster failed on it: %s", set.Name, revision, set.Status.Rollout.Failed)
		}
	}
}

// late returns whether a cluster has not been Ready on a content by its deadline.
func (w *World) late(r *rolling, of string) bool {
	for _, m := range r.members {
		works := content(m.revision) == of && m.start != nil && m.readyAt.IsZero()
		if works && slices.ContainsFunc(r.specs, func(spec *hubv1.Rollout) bool {
			return spec != nil && w.overdue(m.start.Time.Time, spec)
		}) {
			return true
		}
	}
	return false
}

// wavesOf returns how a set's revisions reach its clusters; nil for all at once.
func wavesOf(set *hubv1.AddonSet) *hubv1.Rollout {
	r := set.Spec.Rollout.DeepCopy()
	switch {
	case r == nil:
		r = &hubv1.Rollout{}
	case r.Strategy == hubv1.AllAtOnceStrategy:
		return nil
	}
	if len(r.Waves) == 0 {
		r.Waves = usualWaves
	}
	return r
}

// usualWaves are those of a set that names none, with more than few clusters.
var usualWaves = []hubv1.Wave{{Name: "first", Size: amount("1")}, {Name: "quarter", Size: amount("25%")}}

const few = 1

func sameStrategy(a, b *hubv1.Rollout) bool {
	name := func(of *hubv1.Rollout) string {
		if of == nil || len(of.Waves) == 0 {
			return ""
		}
		return of.Waves[0].Name + string(of.OnFailure) + of.Waves[0].Name
	}
	return name(a) == name(b)
}

// noteMembers notes how the clusters of a set stand now.
func (w *World) noteMembers(s *set, r *rolling, set *hubv1.AddonSet) {
	spec := r.specs[len(r.specs)-1]
	if spec == nil {
		return
	}
	placed := w.assign(s, spec)
	sizes := map[int]int{}
	for key, wave := range placed {
		sizes[wave]++
		m := r.members[key]
		if m == nil {
			m = &rolled{moved: w.seq, away: w.seq, wave: wave}
			r.members[key] = m
		}
		if m.wave != wave {
			m.wave, m.moved = wave, w.seq
		}
		w.noteMember(s, m, key, set, spec)
		if m.revision != "" && m.start != nil && m.broken {
			r.broke[content(m.revision)] = true
		}
	}
	for wave, n := range sizes {
		r.totals[wave] = max(r.totals[wave], n)
	}
	for key, m := range r.members {
		if _, there := placed[key]; !there {
			m.moved, m.away, m.wave, m.without = w.seq, w.seq, -1, time.Time{}
		}
	}
}

// noteMember notes how one cluster stands.
func (w *World) noteMember(s *set, m *rolled, key types.NamespacedName, set *hubv1.AddonSet, spec *hubv1.Rollout) {
	d := w.deliveryOf(s, keyOf("ClusterRegistration", key.Namespace, key.Name))
	reg, _ := w.registrationAt(key)
	if d == nil {
		// What has nothing yet takes part, if it answers. What loses what it had comes back in its own time.
		if m.revision != "" || reg == nil || !status.Online(reg) || status.Reason(reg, hubv1.SuspendedCondition) != "" {
			m.away = w.seq
		}
		m.revision, m.start, m.readyAt = "", nil, time.Time{}
		return
	}
	if m.without = (time.Time{}); m.revision != d.Spec.RevisionName || started(m.start, d.Spec.Start) {
		m.readyAt, m.lapsed = time.Time{}, false
	}
	m.revision, m.start = d.Spec.RevisionName, d.Spec.Start
	current := d.Status.ObservedGeneration == d.Generation
	m.broken = brokenSince(d, time.Time{})
	since := time.Time{}
	if d.Spec.Start != nil {
		since = d.Spec.Start.Time.Time // what has failed since before is no fault of this revision, unless it is late
	}
	if failed := current && brokenSince(d, since); failed != m.failed {
		m.failed, m.failedAt = failed, w.clock.Now()
	}
	excused := reg == nil || d.DeletionTimestamp != nil || excusedFrom(d, reg) || !matches(s.selector, reg.Labels)
	m.excused = excused
	if d.Spec.RevisionName != targetOf(set) {
		if excused || m.broken || !current || !status.Online(reg) || !status.IsTrue(d, hubv1.ReadyCondition) {
			m.away = w.seq
		}
		return
	}
	if d.Spec.Start == nil {
		return
	}
	ready := current && d.Status.ReadyRevision == d.Spec.RevisionName && d.Status.ReadyTime != nil &&
		!d.Status.ReadyTime.Before(&d.Spec.Start.Time)
	if ready && m.readyAt.IsZero() {
		m.readyAt = w.clock.Now()
	}
	late := w.overdue(d.Spec.Start.Time.Time, spec)
	if m.readyAt.IsZero() && (excused || m.failed || late || !d.Spec.Start.Healthy) {
		m.lapsed = true
	}
}

// brokenSince returns whether something of a delivery has failed since a time or later.
func brokenSince(d *hubv1.AddonDelivery, since time.Time) bool {
	if c := status.Find(d, hubv1.StalledCondition); c != nil && c.Status == metav1.ConditionTrue && !c.LastTransitionTime.Time.Before(since) {
		return true
	}
	return slices.ContainsFunc(d.Status.Addons, func(a hubv1.AddonStatus) bool {
		passes := strings.Contains(a.Message, "Kubernetes cluster unreachable") || strings.Contains(a.Message, errServer.Error()) ||
			strings.Contains(a.Message, apply.ErrBeingDeleted.Error())
		return (a.State == hubv1.AddonFailed && !passes || a.State == hubv1.AddonNotOwned) && (a.Since == nil || !a.Since.Time.Before(since))
	})
}

func targetOf(set *hubv1.AddonSet) string {
	if set.Status.Rollout == nil {
		return set.Status.Revision
	}
	return set.Status.Rollout.Revision
}

func deadlineOf(spec *hubv1.Rollout) time.Duration {
	if spec.Deadline == nil {
		return 30 * time.Minute
	}
	return spec.Deadline.Duration
}

// started returns whether a cluster has begun with what it has after another start.
func started(before, after *hubv1.DeliveryStart) bool {
	return after != nil && (before == nil || !before.Time.Equal(&after.Time))
}

// registrationAt returns a registration, and whether its set may count it.
func (w *World) registrationAt(key types.NamespacedName) (reg *hubv1.ClusterRegistration, stays bool) {
	o := w.server.Get(keyOf("ClusterRegistration", key.Namespace, key.Name))
	if o == nil {
		return nil, false
	}
	reg = typed(w, o, &hubv1.ClusterRegistration{})
	return reg, !status.Goes(reg)
}

// delayed returns when what was to be withdrawn at a time may be. A process that starts counts the delay anew, but not while the set's
// guard holds something: its list stays.
func (w *World) delayed(s *set, at time.Time) time.Time {
	holds := nested(w.server.Get(s.key()), "status", "heldRemovals") != nil
	if anew := w.hubBegan.Add(w.config.DeselectionDelay); anew.After(at) && !holds {
		return anew
	}
	return at
}

// assign returns the wave of each cluster of a set, by its number; what no wave owns is in one more. It does by itself what
// docs/rollouts.md says.
func (w *World) assign(s *set, spec *hubv1.Rollout) map[types.NamespacedName]int {
	of := map[types.NamespacedName]labels.Set{}
	for _, o := range w.server.List(kinds["ClusterRegistration"].GroupKind(), "") {
		reg := typed(w, o, &hubv1.ClusterRegistration{})
		if !status.Goes(reg) && matches(s.selector, reg.Labels) {
			of[types.NamespacedName{Namespace: reg.Namespace, Name: reg.Name}] = reg.Labels
		}
	}
	for _, d := range w.deliveries() {
		key, mine := d.Spec.RegistrationRef.Key(), d.SetKey().String() == s.namespace+"/"+s.name && !forged(d)
		if reg, _ := w.registrationAt(key); reg == nil && mine && !d.Withdrawn() {
			of[key] = nil
		} else if after := d.Spec.WithdrawAfter; mine && !d.Withdrawn() && reg != nil && !status.Goes(reg) &&
			(after == nil && w.config.DeselectionDelay > 0 || after != nil && w.delayed(s, after.Time).After(w.clock.Now())) {
			of[key] = reg.Labels // it may be selected again before its delay is over
		}
		if mine && d.Withdrawn() {
			delete(of, key) // it comes new when that is gone
		}
	}
	var rest []types.NamespacedName
	for key := range of {
		rest = append(rest, key)
	}
	rank := func(key types.NamespacedName) string { return identity.Hash(16, s.namespace+"/"+s.name, key.String()) }
	slices.SortFunc(rest, func(a, b types.NamespacedName) int { return cmp.Compare(rank(a), rank(b)) })
	out := map[types.NamespacedName]int{}
	for i := range spec.Waves {
		if spec.Waves[0].Name == usualWaves[0].Name && len(of) <= few {
			break
		}
		wave := &spec.Waves[i]
		owns := labels.Everything()
		if wave.ClusterSelector != nil {
			owns, _ = metav1.LabelSelectorAsSelector(wave.ClusterSelector)
		}
		var mine []types.NamespacedName
		for _, key := range rest {
			if owns.Matches(of[key]) {
				mine = append(mine, key)
			}
		}
		for _, key := range mine[:min(len(mine), share(wave.Size, len(mine), len(mine), true))] {
			out[key] = i
		}
		rest = slices.DeleteFunc(rest, func(key types.NamespacedName) bool { _, taken := out[key]; return taken })
	}
	for _, key := range rest {
		out[key] = len(spec.Waves)
	}
	return out
}

func share(of *intstr.IntOrString, total, otherwise int, up bool) int {
	if of == nil {
		return otherwise
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(of, total, up)
	must(err)
	return n
}
