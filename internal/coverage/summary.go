// SPDX-License-Identifier: Apache-2.0

package coverage

import (
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/rollout"
	"github.com/chandler-hub/chandler/internal/status"
)

// Summarize sets the conditions Ready, RolloutComplete and Healthy of a set. invalid says why the set does not compile; nil if it does. A
// cluster that does not answer is counted, but a tool that waits for the set does not wait for it.
func (f *Fleet) Summarize(set *hubv1.AddonSet, invalid error, now time.Time) {
	complete, reason, message := f.complete(set, invalid)
	status.Set(set, hubv1.RolloutCompleteCondition, complete, reason, message, now)

	healthy, reason, message := metav1.ConditionTrue, hubv1.SucceededReason, "every add-on is Ready on every cluster"
	if f.Counts.Ready < f.Counts.Matched {
		healthy, reason = metav1.ConditionFalse, hubv1.ProgressingReason
		message = fmt.Sprintf("%s clusters are Ready, %d offline", f.Counts.ReadySummary, f.Counts.Offline)
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
	status.Summarize(set, f.summary(set, invalid), now)
}

// complete says whether every cluster has been Ready on what the set says now.
func (f *Fleet) complete(set *hubv1.AddonSet, invalid error) (is metav1.ConditionStatus, reason, message string) {
	const every = "every cluster has been Ready on the newest revision"
	state := set.Status.Rollout
	switch {
	case invalid != nil:
		return metav1.ConditionFalse, hubv1.InvalidSpecReason, "the set does not compile, and clusters keep what they have"
	case f.Next.Waits != "":
		return metav1.ConditionFalse, hubv1.SourcesNotReadyReason, f.Next.text()
	case f.Counts.Matched == 0:
		return metav1.ConditionFalse, hubv1.NoClusterMatchesReason, "the set selects no cluster"
	case f.Counts.Updated+f.without < f.Counts.Matched || state == nil || state.Phase != hubv1.RolloutDone:
		reason, message = hubv1.ProgressingReason, f.Counts.UpdatedSummary+" clusters have been Ready on the newest revision"
		if state != nil && state.Phase != hubv1.RolloutDone {
			reason = string(state.Phase)
		}
		if state != nil && state.WaitingFor != "" {
			message += "; the rollout waits for " + state.WaitingFor
		}
		return metav1.ConditionFalse, reason, message
	case f.without > 0:
		return metav1.ConditionTrue, hubv1.SucceededReason, every + ", but for those where other sets deliver every add-on of this one"
	}
	return metav1.ConditionTrue, hubv1.SucceededReason, every
}

// summary says whether a set is Ready: every cluster that answers, is not paused, and that the rollout has come to, has been Ready on what
// the set says now. After a rollback the clusters have something else, and where other sets deliver all of it they have nothing.
func (f *Fleet) summary(set *hubv1.AddonSet, invalid error) status.Summary {
	updated := f.Counts.UpdatedSummary + " clusters have been Ready on this revision"
	switch {
	case invalid != nil:
		return status.Summary{Phase: status.Stalled, Reason: hubv1.InvalidSpecReason,
			Message: invalid.Error() + ". Clusters keep what they have" + f.leaving()}
	case f.Next.Waits != "":
		phase := map[bool]status.Phase{true: status.Broken, false: status.Working}[f.Next.Broken]
		return status.Summary{Phase: phase, Reason: hubv1.SourcesNotReadyReason,
			Message: f.Next.text() + ". Clusters keep what they have" + f.notes()}
	case rollout.Barred(set.Status.Rollout, set.Status.Revision):
		return status.Summary{Phase: status.Broken, Reason: hubv1.RolloutFailedReason, Message: updated + f.Rollout +
			"; failed: " + status.List(set.Status.Rollout.Failed, 3)}
	case f.Counts.Matched == 0:
		return status.Summary{Phase: status.Done, Reason: hubv1.NoClusterMatchesReason, Message: f.Nothing + f.leaving()}
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
	case f.without > 0 && (f.Counts.Updated == 0 || f.Counts.Ready == 0):
		return status.Summary{Phase: status.Broken, Reason: hubv1.AddonsLostReason,
			Message: "nothing of this set is delivered anywhere" + f.notes()}
	}
	reason := hubv1.SucceededReason
	if len(f.lost) > 0 {
		reason = hubv1.AddonsLostReason
	}
	return status.Summary{Phase: status.Done, Reason: reason,
		Message: status.DeliveredTo(f.Counts.UpdatedSummary) + f.notes()}
}

// goesBack returns whether clusters have, or get, an older revision than the set has.
func goesBack(is *hubv1.RolloutStatus) bool {
	return is != nil && (is.Phase == hubv1.RolloutRollingBack || is.Phase == hubv1.RolloutRolledBack)
}

// goneBack is the summary of a set whose newest revision a user has undone.
func (f *Fleet) goneBack(set *hubv1.AddonSet) status.Summary {
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
func (f *Fleet) notes() string {
	m := f.Rollout
	if f.Counts.Offline > 0 {
		m += fmt.Sprintf("; %d offline", f.Counts.Offline)
	}
	if paused := f.Counts.Paused; paused > 0 {
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
func (f *Fleet) leaving() string {
	m := ""
	if f.withdrawn > 0 {
		m += "; being withdrawn from " + status.Count(f.withdrawn, "cluster")
	}
	if len(f.deselected) > 0 {
		m += "; leaves, unless it selects them again: " + status.List(f.deselected, 3)
	}
	if held := f.Held; held != nil {
		m += fmt.Sprintf("; removals are held on %s, see condition %s: %s", status.Count(held.Count, "cluster"), hubv1.RemovalsHeldCondition,
			status.List(held.Sample, int(held.Count)))
	}
	return m
}

// LeavingCounts returns the counts of a set that is being deleted: it has clusters to leave, and none to be Ready on.
func LeavingCounts(set *hubv1.AddonSet, deliveries []hubv1.AddonDelivery) *hubv1.ClusterCounts {
	counts := &hubv1.ClusterCounts{Leaving: int32(len(deliveries))} //nolint:gosec // as many as there are clusters
	if held := set.Status.HeldRemovals; held != nil {
		counts.Held = held.Count
	}
	return counts
}

// LeavingText names what a set that is being deleted waits for: the clusters that it still has to leave.
func LeavingText(deliveries []hubv1.AddonDelivery, held *hubv1.HeldRemovals) string {
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
