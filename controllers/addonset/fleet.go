// SPDX-License-Identifier: Apache-2.0

package addonset

import (
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/rollout"
	"github.com/chandler-hub/chandler/internal/status"
)

// fleet is the state of a set's clusters.
type fleet struct {
	counts hubv1.ClusterCounts
	// inUse are the revisions that deliveries name.
	inUse map[string]bool
	// behind names clusters in reach that have not been Ready on the newest revision, with the reason, except those of
	// failedBehind.
	behind, failedBehind []string
	// later names those of them that the rollout has not come to.
	later []string
	// failed names the other clusters with a failed add-on, with the reason: they were Ready on the newest revision before.
	failed []string
	// originless names the clusters on which nothing changes while their origin cannot be read.
	originless []string
	// suspended names the clusters with an add-on that a user has suspended.
	suspended []string
	// without counts the clusters that get nothing of the set, because other sets deliver all of its add-ons there.
	without int32
	// lost counts the clusters by what the set lost there, and to whom.
	lost map[string]int
	// nothing says why no cluster is selected; empty if one is.
	nothing string
	// withdrawn counts the clusters that the set is being withdrawn from. deselected names those that it does not select any more,
	// and after which time it is withdrawn from them. held is what the removal guard holds.
	withdrawn  int32
	deselected []string
	held       *hubv1.HeldRemovals
	// removals are what the clusters are to lose.
	removals *removals
	// clusters are those of a rollout. waiting do not have the newest revision yet.
	clusters []rollout.Cluster
	waiting  []waiting
	// rollout says what the rollout waits for, and newest what the next revision waits for.
	rollout string
	newest  *revised
}

// waiting is a cluster that does not have the newest revision yet.
type waiting struct {
	key       types.NamespacedName
	name, why string
	counts    bool
	// fresh is true if it has no delivery yet, and registered is when it was registered.
	fresh      bool
	registered time.Time
}

// admit sorts the clusters that do not have the newest revision yet. Those that get it now are behind, or have failed: all, or
// the ones in coming, and those without a delivery that get one at once. The set does not wait for the others before the rollout has come
// to them.
func (f *fleet) admit(everyone bool, coming map[types.NamespacedName]bool, next *rollout.Decision) {
	for _, w := range f.waiting {
		now := everyone || coming[w.key] || w.fresh && next != nil && next.Newcomers != "" && rollout.Young(w.registered, next.After)
		switch {
		case w.why != "" && now && w.counts:
			f.failedBehind = append(f.failedBehind, w.name+" ("+w.why+")")
		case w.why != "":
			f.failed = append(f.failed, w.name+" ("+w.why+")")
		case now && w.counts:
			f.behind = append(f.behind, w.name)
		case w.counts:
			f.later = append(f.later, w.name)
		}
		if w.fresh && !now {
			f.counts.Waiting++
		}
	}
	f.sum()
}

// coming returns the clusters that are about to get the newest revision: those that start now, and those of which the matcher has been
// told before, which the cache does not show yet.
func (f *fleet) coming(newest string, starts []rollout.Start) map[types.NamespacedName]bool {
	out := map[types.NamespacedName]bool{}
	for i := range f.clusters {
		if c := &f.clusters[i]; c.Revision == newest {
			out[c.Key] = true
		}
	}
	for i := range starts {
		if starts[i].Revision == newest {
			out[starts[i].Cluster] = true
		}
	}
	return out
}

// expect counts a selected cluster that has no delivery yet.
func (f *fleet) expect(c *rollout.Cluster) {
	f.counts.Matched++
	if c.Offline {
		f.counts.Offline++
	}
	f.waiting = append(f.waiting, waiting{key: c.Key, name: c.Key.Name,
		counts: !c.Offline && c.Excused == "", registered: c.Registered, fresh: true})
}

// leave counts a cluster that has a delivery, and that the set does not select any more. waits is true while its time is not over.
func (f *fleet) leave(d *hubv1.AddonDelivery, waits bool) {
	f.counts.Leaving++
	if !waits {
		return // it is withdrawn now, or the removal guard holds that
	}
	name := d.Spec.RegistrationRef.Name
	if after := d.Spec.WithdrawAfter; after != nil {
		name += " after " + after.UTC().Format(time.RFC3339)
	}
	f.deselected = append(f.deselected, name)
}

// count counts a cluster that has a delivery.
func (f *fleet) count(set *hubv1.AddonSet, d *hubv1.AddonDelivery, online bool) {
	name := d.Spec.RegistrationRef.Name
	f.counts.Matched++
	if status.IsTrue(d, hubv1.ReadyCondition) && d.Status.ReadyRevision == d.Spec.RevisionName {
		f.counts.Ready++
	}
	if !online {
		f.counts.Offline++
	}
	paused, why := f.look(d)
	if status.Reason(d, hubv1.ReadyCondition) == hubv1.OriginMissingReason {
		f.originless = append(f.originless, name)
	}
	given := d.Spec.RevisionName == set.Status.Revision
	paused = paused || unserved(d)
	if paused {
		f.counts.Paused++
	}
	if why != "" {
		f.counts.Failed++
	}
	without := status.Reason(d, hubv1.ReadyCondition) == hubv1.AddonsLostReason && !status.IsTrue(d, hubv1.ReadyCondition)
	switch updated := d.Status.ReadyRevision == set.Status.Revision; {
	case without:
		f.without++
	case updated && why != "":
		f.counts.Updated++
		f.failed = append(f.failed, name+" ("+why+")")
	case updated:
		f.counts.Updated++
	case !given:
		f.waiting = append(f.waiting, waiting{key: d.Spec.RegistrationRef.Key(), name: name, why: why, counts: online && !excused(d)})
	case online && why != "":
		f.failedBehind = append(f.failedBehind, name+" ("+why+")")
	case online && !excused(d):
		f.behind = append(f.behind, name)
	}
}

// look reads the add-ons of a cluster. It returns whether a user has paused or suspended any, and why the first
// failed one failed.
func (f *fleet) look(d *hubv1.AddonDelivery) (paused bool, why string) {
	for _, a := range d.Status.Addons {
		switch a.State {
		case hubv1.AddonPaused:
			paused = true
		case hubv1.AddonSuspended:
			paused = true
			f.suspended = append(f.suspended, d.Spec.RegistrationRef.Name+"/"+a.Name)
		case hubv1.AddonLostTo:
			f.lost[fmt.Sprintf("%s (%s)", a.Name, a.Message)]++
		}
	}
	return paused, rollout.Trouble(d)
}

// sum sorts the names that were collected.
func (f *fleet) sum() {
	for _, names := range [][]string{f.behind, f.failedBehind, f.later, f.failed, f.originless, f.suspended, f.deselected} {
		slices.Sort(names)
	}
	f.counts.ReadySummary = status.Fraction(f.counts.Ready, f.counts.Matched)
	f.counts.UpdatedSummary = status.Fraction(f.counts.Updated, f.counts.Matched)
}

// excused returns whether a tool that waits for the set should not wait for a cluster.
func excused(d *hubv1.AddonDelivery) bool { return unserved(d) || rollout.Excused(d) }

// unserved returns whether nothing is delivered through a registration, because another registration of its cluster
// is served. It counts like a paused one.
func unserved(d *hubv1.AddonDelivery) bool {
	return status.Reason(d, hubv1.ReadyCondition) == hubv1.DuplicateReason
}

// summarize sets the conditions. A cluster that does not answer is counted, but a tool that waits for the set does not wait
// for it.
func (r *Reconciler) summarize(set *hubv1.AddonSet, f *fleet, invalid error) {
	now := r.Clock.Now()
	complete, reason, message := f.complete(set, invalid)
	status.Set(set, hubv1.RolloutCompleteCondition, complete, reason, message, now)
	r.summarizeRollout(set)

	healthy, reason, message := metav1.ConditionTrue, hubv1.SucceededReason, "every add-on is Ready on every cluster"
	if f.counts.Ready < f.counts.Matched {
		healthy, reason = metav1.ConditionFalse, hubv1.ProgressingReason
		message = fmt.Sprintf("%s clusters are Ready, %d offline", f.counts.ReadySummary, f.counts.Offline)
		if failed := append(slices.Clone(f.failedBehind), f.failed...); len(failed) > 0 {
			slices.Sort(failed)
			reason, message = hubv1.AddonsFailedReason, message+", failed: "+status.List(failed, 3)
		}
	}
	if set.Status.Revision == "" { // nothing is delivered anywhere
		healthy, reason, message = metav1.ConditionFalse, hubv1.ProgressingReason, "the set has no revision yet"
		if invalid != nil {
			reason, message = hubv1.InvalidSpecReason, "the set has never compiled"
		}
	}
	status.Set(set, hubv1.HealthyCondition, healthy, reason, message, now)
	status.Summarize(set, summary(set, f, invalid), now)
}

// complete says whether every cluster has been Ready on what the set says now.
func (f *fleet) complete(set *hubv1.AddonSet, invalid error) (is metav1.ConditionStatus, reason, message string) {
	const every = "every cluster has been Ready on the newest revision"
	state := set.Status.Rollout
	switch {
	case invalid != nil:
		return metav1.ConditionFalse, hubv1.InvalidSpecReason, "the set does not compile, and clusters keep what they have"
	case f.newest.waiting():
		return metav1.ConditionFalse, hubv1.SourcesNotReadyReason, f.newest.text()
	case f.counts.Matched == 0:
		return metav1.ConditionFalse, hubv1.NoClusterMatchesReason, "the set selects no cluster"
	case f.counts.Updated+f.without < f.counts.Matched || state == nil || state.Phase != hubv1.RolloutDone:
		reason, message = hubv1.ProgressingReason, f.counts.UpdatedSummary+" clusters have been Ready on the newest revision"
		if state != nil && state.WaitingFor != "" {
			reason, message = string(state.Phase), message+"; the rollout waits for "+state.WaitingFor
		}
		return metav1.ConditionFalse, reason, message
	case f.without > 0:
		return metav1.ConditionTrue, hubv1.SucceededReason, every + ", but for those where other sets deliver every add-on of this one"
	}
	return metav1.ConditionTrue, hubv1.SucceededReason, every
}

// summary says whether a set is Ready: every cluster that answers, is not paused, and that the rollout has come to, has been Ready on what
// the set says now. After a rollback the clusters have something else, and where other sets deliver all of it they have nothing.
func summary(set *hubv1.AddonSet, f *fleet, invalid error) status.Summary {
	updated := f.counts.UpdatedSummary + " clusters have been Ready on this revision"
	switch {
	case invalid != nil:
		return status.Summary{Phase: status.Stalled, Reason: hubv1.InvalidSpecReason,
			Message: invalid.Error() + ". Clusters keep what they have" + f.leaving()}
	case f.newest.waiting():
		phase := map[bool]status.Phase{true: status.Broken, false: status.Working}[f.newest.broken]
		return status.Summary{Phase: phase, Reason: hubv1.SourcesNotReadyReason,
			Message: f.newest.text() + ". Clusters keep what they have" + f.notes()}
	case rollout.Barred(set.Status.Rollout, set.Status.Revision):
		return status.Summary{Phase: status.Broken, Reason: hubv1.RolloutFailedReason, Message: updated + f.rollout +
			"; failed: " + status.List(set.Status.Rollout.Failed, 3)}
	case f.counts.Matched == 0:
		return status.Summary{Phase: status.Done, Reason: hubv1.NoClusterMatchesReason, Message: f.nothing + f.leaving()}
	case goesBack(set.Status.Rollout):
		return f.goneBack(set)
	case len(f.failedBehind) > 0:
		m := updated + "; failed: " + status.List(f.failedBehind, 3)
		if len(f.behind) > 0 {
			m += "; not yet: " + status.List(f.behind, 5)
		}
		return status.Summary{Phase: status.Broken, Reason: hubv1.AddonsFailedReason, Message: m}
	case len(f.behind) > 0:
		m := updated + "; not yet: " + status.List(f.behind, 5)
		return status.Summary{Phase: status.Working, Reason: hubv1.ProgressingReason, Message: m + f.notes()}
	case len(f.later) > 0 && set.Status.Rollout != nil && set.Status.Rollout.Phase == hubv1.RolloutProgressing:
		return status.Summary{Phase: status.Working, Reason: hubv1.ProgressingReason,
			Message: updated + "; to come: " + status.List(f.later, 5) + f.notes()}
	case f.without > 0 && (f.counts.Updated == 0 || f.counts.Ready == 0):
		return status.Summary{Phase: status.Broken, Reason: hubv1.AddonsLostReason,
			Message: "nothing of this set is delivered anywhere" + f.notes()}
	}
	reason := hubv1.SucceededReason
	if len(f.lost) > 0 {
		reason = hubv1.AddonsLostReason
	}
	return status.Summary{Phase: status.Done, Reason: reason,
		Message: fmt.Sprintf("delivered to %s clusters%s", f.counts.UpdatedSummary, f.notes())}
}

// goesBack returns whether clusters have, or get, an older revision than the set has.
func goesBack(is *hubv1.RolloutStatus) bool {
	return is != nil && (is.Phase == hubv1.RolloutRollingBack || is.Phase == hubv1.RolloutRolledBack)
}

// goneBack is the summary of a set whose newest revision a user has undone.
func (f *fleet) goneBack(set *hubv1.AddonSet) status.Summary {
	is := set.Status.Rollout
	phase, have := status.Broken, "have"
	if is.Phase == hubv1.RolloutRollingBack {
		phase, have = status.Working, "get"
	}
	return status.Summary{Phase: phase, Reason: string(is.Phase),
		Message: fmt.Sprintf("the clusters %s revision %s again, and not %s, which is undone%s",
			have, is.Revision, set.Status.Revision, f.notes())}
}

// notes returns what is worth saying and is nothing to wait for.
func (f *fleet) notes() string {
	m := f.rollout
	if f.counts.Offline > 0 {
		m += fmt.Sprintf("; %d offline", f.counts.Offline)
	}
	if paused := f.counts.Paused; paused > 0 {
		m += fmt.Sprintf("; %d paused or suspended", paused)
		if len(f.suspended) > 0 {
			m += ", `flux suspend`: " + status.List(f.suspended, 3)
		}
	}
	if len(f.originless) > 0 {
		m += "; nothing changes where the origin cannot be read: " + status.List(f.originless, 3)
	}
	if len(f.lost) > 0 {
		var lost []string
		for _, what := range slices.Sorted(maps.Keys(f.lost)) {
			lost = append(lost, what+" on "+status.Count(f.lost[what], "cluster"))
		}
		m += "; delivered by other sets: " + status.List(lost, 3)
	}
	if len(f.failed) > 0 {
		m += "; failed since: " + status.List(f.failed, 3)
	}
	return m + f.leaving()
}

// leaving says which clusters the set leaves, and what of that the removal guard holds.
func (f *fleet) leaving() string {
	m := ""
	if f.withdrawn > 0 {
		m += "; being withdrawn from " + status.Count(f.withdrawn, "cluster")
	}
	if len(f.deselected) > 0 {
		m += "; leaves, unless it selects them again: " + status.List(f.deselected, 3)
	}
	if held := f.held; held != nil {
		m += fmt.Sprintf("; removals are held on %s, see condition %s: %s", status.Count(held.Count, "cluster"), hubv1.RemovalsHeldCondition,
			status.List(held.Sample, int(held.Count)))
	}
	return m
}

// leavingCounts returns the counts of a set that is being deleted: it has clusters to leave, and none to be Ready on.
func leavingCounts(set *hubv1.AddonSet, deliveries []hubv1.AddonDelivery) *hubv1.ClusterCounts {
	counts := &hubv1.ClusterCounts{Leaving: int32(len(deliveries))} //nolint:gosec // as many as there are clusters
	if held := set.Status.HeldRemovals; held != nil {
		counts.Held = held.Count
	}
	return counts
}

// leavingText names what a set that is being deleted waits for: the clusters that it still has to leave.
func leavingText(deliveries []hubv1.AddonDelivery, held *hubv1.HeldRemovals) string {
	names := make([]string, len(deliveries))
	for i := range deliveries {
		names[i] = deliveries[i].Spec.RegistrationRef.Name
	}
	slices.Sort(names)
	text := fmt.Sprintf("being withdrawn from %s: %s", status.Count(len(names), "cluster"), status.List(names, 5))
	if held != nil {
		text += fmt.Sprintf(", of which the removal guard holds %d: see condition %s", held.Count, hubv1.RemovalsHeldCondition)
	}
	return text
}
