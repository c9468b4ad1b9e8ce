// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/status"
)

// Facts are what decides the Ready condition of a delivery.
type Facts struct {
	// Addons are the add-ons of the delivery's status, and Counts is the result of Count for them.
	Addons []hubv1.AddonStatus
	Counts hubv1.ObjectCounts
	// Set and Registration name the AddonSet and the ClusterRegistration. Registered is true if the
	// ClusterRegistration exists.
	Set, Registration types.NamespacedName
	Registered        bool
	// Answered is true if the cluster has answered once, or cannot be probed.
	Answered bool
	// Suspended is the condition that says why the cluster's Flux objects are suspended; nil if they are not.
	Suspended *metav1.Condition
	// Leaving is true if the set withdraws the delivery. DeletedByHand is true if a user deleted it, and the
	// set does not make it again.
	Leaving, DeletedByHand bool
	// Handing says which add-ons of a delivery that leaves another one has now, and has not written yet.
	Handing []string
	// Failed is true if the delivery could not be read or rendered, and the hub tries again. Unrendered is true if
	// its revision cannot be rendered. Reason and Why describe either problem.
	Failed, Unrendered bool
	Reason, Why        string
	// Frozen is true if another version of the hub made the revision.
	Frozen bool
	// WasReady is true if every add-on has been Ready on this revision.
	WasReady bool
}

// paused returns whether a user, or the origin, wants the cluster's objects suspended. A cluster that does not
// answer is not paused.
func (f *Facts) paused() bool {
	return f.Suspended != nil && !hubv1.Tripped(f.Suspended.Reason)
}

// tally sorts the add-ons of a delivery by what its Ready condition says about them.
type tally struct {
	failed, waiting, held, suspended, lost []string
	// reasons counts the failed add-ons by reason.
	reasons map[string]int
	// waits counts the waiting add-ons by reason.
	waits map[string]int
	// delivered is true if the cluster has something of the set.
	delivered bool
}

func tallyOf(addons []hubv1.AddonStatus) tally {
	t := tally{reasons: map[string]int{}, waits: map[string]int{}}
	for _, a := range addons {
		switch a.State {
		case hubv1.AddonFailed, hubv1.AddonNotOwned:
			t.failed = append(t.failed, fmt.Sprintf("%s: %s", a.Name, a.Message))
			t.reasons[a.Reason]++
		case hubv1.AddonLostTo:
			if a.Reason == hubv1.HandOverReason {
				t.waiting = append(t.waiting, fmt.Sprintf("%s waits to take over (%s)", a.Name, a.Message))
				continue
			}
			t.lost = append(t.lost, fmt.Sprintf("%s (%s)", a.Name, a.Message))
		case hubv1.AddonReady, hubv1.AddonPaused:
			t.delivered = true
		case hubv1.AddonExcluded, hubv1.AddonOrphaned:
		case hubv1.AddonSuspended:
			t.suspended = append(t.suspended, a.Name)
			t.delivered = true
		case hubv1.AddonHeld:
			t.held = append(t.held, fmt.Sprintf("%s stays as it is: %s", a.Name, a.Message))
		default:
			t.waits[a.Reason]++
			text := fmt.Sprintf("%s is %s", a.Name, a.State)
			if a.Message != "" {
				text += " (" + a.Message + ")"
			}
			t.waiting = append(t.waiting, text)
		}
	}
	return t
}

// Ready returns the Ready condition of a delivery, as a summary.
func Ready(f Facts) status.Summary {
	counts, t := &f.Counts, tallyOf(f.Addons)
	switch {
	case f.Failed:
		return status.Summary{Phase: status.Broken, Reason: f.Reason, Message: f.Why}
	case f.Leaving:
		return status.Summary{Phase: status.Working, Reason: hubv1.TerminatingReason,
			Message: status.List(append(append([]string{"being withdrawn"}, t.waiting...), f.Handing...), 4)}
	case !f.Registered:
		return status.Summary{Phase: status.Broken, Reason: hubv1.RegistrationNotFoundReason,
			Message: fmt.Sprintf("ClusterRegistration %s does not exist; what is delivered stays as it is", f.Registration)}
	case f.DeletedByHand:
		return status.Summary{Phase: status.Working, Reason: hubv1.TerminatingReason, Message: fmt.Sprintf(
			"deleted by hand; it goes when AddonSet %s withdraws it, which takes its add-ons off the cluster as far as the removal "+
				"guard lets it", f.Set)}
	case f.Unrendered && f.Reason == hubv1.FactUnknownReason:
		return f.waits()
	case f.Unrendered && !(f.Frozen && f.paused()):
		if f.Frozen && counts.Total > 0 && counts.Ready == counts.Total {
			return frozen(counts)
		}
		return status.Summary{Phase: status.Broken, Reason: f.Reason, Message: f.Why}
	case len(t.failed) > 0:
		reason := hubv1.AddonsFailedReason
		for _, one := range []string{hubv1.FluxObjectsInFolderReason, hubv1.TeamForbiddenReason, hubv1.DefaultServiceAccountReason,
			hubv1.SourceNotFoundReason, hubv1.RenderFailedReason} {
			if t.reasons[one] == len(t.failed) {
				reason = one // all of them for the one reason
			}
		}
		return status.Summary{Phase: status.Broken, Reason: reason, Message: status.List(t.failed, 2)}
	case !f.Answered:
		return unanswered
	case f.paused():
		return status.Summary{Phase: f.keeps(&t), Reason: f.Suspended.Reason, Message: f.Suspended.Message + "; what runs stays as it is"}
	case f.Suspended != nil:
		return status.Summary{Phase: status.Working, Reason: f.Suspended.Reason, Message: f.Suspended.Message + "; what runs stays as it is"}
	case len(t.waiting) > 0:
		return status.Summary{Phase: status.Working, Reason: t.progress(), Message: status.List(t.waiting, 3)}
	case len(t.held) > 0:
		return status.Summary{Phase: status.Working, Reason: hubv1.RemovalsHeldReason, Message: status.List(t.held, 3)}
	case len(t.suspended) > 0:
		return status.Summary{Phase: f.keeps(&t), Reason: hubv1.SuspendedReason,
			Message: fmt.Sprintf("%s suspended: %s; `flux resume` lets it go on", status.Count(len(t.suspended), "add-on"),
				status.List(t.suspended, 3))}
	case len(t.lost) > 0:
		return t.loses(counts)
	case f.Frozen && counts.Total > 0:
		return frozen(counts)
	case counts.Total == 0:
		return status.Summary{Phase: status.Done, Reason: hubv1.AddonsReadyReason, Message: "no add-on of this set is for this cluster"}
	}
	return status.Summary{Phase: status.Done, Reason: hubv1.AddonsReadyReason, Message: status.SomeReady(counts.Ready, counts.Total)}
}

// unanswered is the summary of a delivery to a cluster that has not answered yet.
var unanswered = status.Summary{Phase: status.Working, Reason: hubv1.WaitingForClusterReason,
	Message: "nothing is made before the cluster has answered"}

// waits returns the summary of a delivery of which nothing can be rendered for want of a fact about the cluster.
func (f *Facts) waits() status.Summary {
	if !f.Answered {
		return unanswered
	}
	return status.Summary{Phase: status.Working, Reason: f.Reason, Message: f.Why + "; what is delivered stays as it is"}
}

// progress returns the reason of a delivery that waits: the fact about the cluster, or the source, that is missing, if it waits for
// nothing else.
func (t *tally) progress() string {
	for _, one := range []string{hubv1.FactUnknownReason, hubv1.SourceNotFoundReason} {
		if t.waits[one] == len(t.waiting) {
			return one
		}
	}
	return hubv1.ProgressingReason
}

// keeps returns the phase of a delivery that is paused or has suspended objects. It is Ready if it was Ready before,
// and no change waits for it to be resumed.
func (f *Facts) keeps(t *tally) status.Phase {
	missing := int(f.Counts.Total-f.Counts.Ready) - len(t.lost)
	if f.WasReady && missing == 0 && len(t.waiting)+len(t.held) == 0 && (f.Counts.Ready > 0 || f.Counts.Total == 0) {
		return status.Done
	}
	return status.Working
}

// loses returns the summary of a delivery that has add-ons which other sets deliver. That is not a failure, as long
// as it delivers at least one.
func (t *tally) loses(counts *hubv1.ObjectCounts) status.Summary {
	m := "delivered by other sets: " + status.List(t.lost, 2)
	if t.delivered {
		return status.Summary{Phase: status.Done, Reason: hubv1.AddonsLostReason,
			Message: status.SomeReady(counts.Ready, counts.Total) + "; " + m}
	}
	return status.Summary{Phase: status.Broken, Reason: hubv1.AddonsLostReason, Message: "nothing of this set is delivered here; " + m}
}

// frozen returns the summary of a delivery that is Ready with the objects that another version of the hub made.
func frozen(counts *hubv1.ObjectCounts) status.Summary {
	return status.Summary{Phase: status.Done, Reason: hubv1.FrozenReason, Message: fmt.Sprintf(
		"%s add-ons are Ready; another version of the hub made the revision, and what is there of it stays as it is until the "+
			"rollout comes to this cluster", counts.Summary)}
}
