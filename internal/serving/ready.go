// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/drain"
	"github.com/chandler-hub/chandler/internal/status"
)

// Refusal is why a cluster's answer is not accepted.
type Refusal struct{ Reason, Message string }

// Access is what is known of the way to a cluster besides the conditions of its registration.
type Access struct {
	// Waiting is true if the kubeconfig is not there yet, and is on its way.
	Waiting bool
	// Refused is why the hub does not accept what answers; nil if it does.
	Refused *Refusal
}

// Summarize sets Ready, and the conditions that say what is refused and what is held.
func (s *Sets) Summarize(reg *hubv1.ClusterRegistration, access Access, now time.Time) {
	out := s.summary(reg, access)
	if c := status.Find(reg, hubv1.UnregisteringCondition); c != nil && hubv1.Waits(c.Reason) && reg.DeletionTimestamp == nil {
		if out.Reason == hubv1.OriginNotFoundReason {
			out.Message = c.Message // which says so already, and what follows
		} else {
			out.Message = c.Message + "; " + out.Message
		}
	}
	if s.Doubt != "" {
		out.Message += "; " + s.Doubt
	}
	if len(s.later) > 0 && out.Reason != hubv1.WaitingForWaveReason {
		out.Message += "; waits for its wave: " + status.List(s.later, 3)
	}
	if len(s.idle) > 0 && len(s.addons) > 0 {
		out.Message += fmt.Sprintf("; spec.overrides names what no set delivers here: %s", status.List(s.idle, 3))
	}
	var leave []string
	for _, set := range slices.Sorted(maps.Keys(s.deselected)) {
		if set != s.quoted {
			leave = append(leave, set+" "+s.deselected[set])
		}
	}
	if len(leave) > 0 {
		out.Message += "; not selected any more, and leaves unless it is selected again: " + status.List(leave, 3)
	}
	out.Message += s.reportRefused(reg, now)
	out.Message += s.reportHeld(reg, now)
	if s.IdleDrain != "" {
		out.Message += "; " + s.IdleDrain
	}
	status.Summarize(reg, out, now)
}

// reportHeld sets or clears the condition that removal guards of sets hold something on the cluster, and returns what
// Ready says of it besides what it quotes.
func (s *Sets) reportHeld(reg *hubv1.ClusterRegistration, now time.Time) string {
	if len(s.held) == 0 {
		status.Clear(reg, hubv1.RemovalsHeldCondition)
		return ""
	}
	held := slices.Sorted(maps.Values(s.held))
	status.Set(reg, hubv1.RemovalsHeldCondition, metav1.ConditionTrue, hubv1.TooManyRemovalsReason, status.List(held, 3), now)
	if s.held[s.quoted] != "" {
		return ""
	}
	return "; a removal is held: see condition " + hubv1.RemovalsHeldCondition
}

// summary sums up a cluster: the way to it first, then what the sets do there.
func (s *Sets) summary(reg *hubv1.ClusterRegistration, access Access) status.Summary {
	valid, reachable := status.Find(reg, hubv1.KubeConfigValidCondition), status.Find(reg, hubv1.ReachableCondition)
	suspended, maintenance := status.Find(reg, hubv1.SuspendedCondition), status.Find(reg, hubv1.MaintenanceCondition)
	switch {
	case reg.Status.DuplicateOf != nil:
		return status.Summary{Phase: status.Broken, Reason: hubv1.DuplicateReason, Message: status.Find(reg, hubv1.DuplicateCondition).Message}
	case suspended != nil && !hubv1.Tripped(suspended.Reason):
		// A user chose this. It is no failure, and what was Ready stays Ready.
		phase := status.Done
		if s.Lags() {
			phase = status.Working
		}
		return status.Summary{Phase: phase, Reason: suspended.Reason, Message: suspended.Message + "; its Flux objects are suspended"}
	case valid.Status != metav1.ConditionTrue:
		phase := status.Broken
		if access.Waiting {
			phase = status.Working
		}
		return status.Summary{Phase: phase, Reason: valid.Reason, Message: valid.Message}
	case access.Refused != nil:
		return status.Summary{Phase: status.Broken, Reason: access.Refused.Reason, Message: access.Refused.Message}
	case reachable.Status == metav1.ConditionUnknown && !reg.Status.UsesWorkloadIdentity():
		return status.Summary{Phase: status.Working, Reason: reachable.Reason, Message: reachable.Message}
	case reachable.Status == metav1.ConditionFalse && maintenance != nil:
		return status.Summary{Phase: status.Working, Reason: maintenance.Reason,
			Message: fmt.Sprintf("%s: %s", maintenance.Message, reachable.Message)}
	case reachable.Status == metav1.ConditionFalse:
		return status.Summary{Phase: status.Broken, Reason: reachable.Reason, Message: reachable.Message}
	case suspended != nil: // by the breaker, and it answers
		return status.Summary{Phase: status.Broken, Reason: suspended.Reason, Message: suspended.Message}
	case drain.Requested(reg):
		return draining(status.Find(reg, hubv1.DrainingCondition))
	}
	return s.delivered()
}

// delivered sums up what the sets do here.
func (s *Sets) delivered() status.Summary {
	ready := status.SomeReady(s.counts.Ready, s.counts.Total)
	leaving := "being withdrawn: " + status.List(s.leaving, 3)
	switch {
	case s.counts.Failed > 0:
		m := fmt.Sprintf("%d of %s failed: %s", s.counts.Failed, status.Count(s.counts.Total, "add-on"), status.List(s.failed, 2))
		if len(s.leaving) > 0 {
			m += "; " + leaving
		}
		return status.Summary{Phase: status.Broken, Reason: hubv1.AddonsFailedReason, Message: m}
	case len(s.leaving) > 0:
		return status.Summary{Phase: status.Working, Reason: hubv1.AddonsLeavingReason, Message: leaving}
	case len(s.unready) > 0:
		return s.waits(ready)
	case len(s.pending) > 0 && s.counts.Total == 0:
		return status.Summary{Phase: status.Working, Reason: hubv1.ProgressingReason,
			Message: "about to be delivered: " + status.List(s.pending, 3)}
	case len(s.pending) > 0:
		return status.Summary{Phase: status.Working, Reason: hubv1.ProgressingReason,
			Message: ready + "; about to be delivered: " + status.List(s.pending, 3)}
	case s.counts.Total == 0 && len(s.addons) > 0:
		return status.Summary{Phase: status.Done, Reason: hubv1.SucceededReason,
			Message: "every add-on is left out here, or delivered by another set"}
	case s.counts.Total == 0 && len(s.later) > 0:
		return status.Summary{Phase: status.Done, Reason: hubv1.WaitingForWaveReason, Message: "waits for its wave: " + status.List(s.later, 3)}
	case s.counts.Total == 0:
		return status.Summary{Phase: status.Done, Reason: hubv1.NoAddonSetReason, Message: noSet(s.why)}
	case s.counts.Ready < s.counts.Total:
		return status.Summary{Phase: status.Working, Reason: hubv1.ProgressingReason, Message: ready}
	}
	if len(s.suspended) > 0 {
		return status.Summary{Phase: status.Done, Reason: hubv1.SuspendedReason, Message: ready + "; suspended: " + status.List(s.suspended, 3)}
	}
	return status.Summary{Phase: status.Done, Reason: hubv1.SucceededReason, Message: ready}
}

// onTheWay are reasons, besides the breaker's, of a delivery that need no mention: the counts say the same, or they are about to change,
// since this cluster answers and is not paused.
var onTheWay = []string{
	hubv1.ProgressingReason, hubv1.WaitingForClusterReason, hubv1.PausedReason, hubv1.ClusterSleepingReason,
	hubv1.ClusterWriteLimitedReason, hubv1.ClusterMigratingReason,
}

// waits returns the summary of a cluster with a delivery that is not Ready and has not failed. It has the reason of
// the first delivery that is not merely on its way, and quotes it.
func (s *Sets) waits(ready string) status.Summary {
	for _, u := range s.unready {
		if !hubv1.Tripped(u.reason) && !slices.Contains(onTheWay, u.reason) {
			s.quoted = u.set
			return status.Summary{Phase: status.Working, Reason: u.reason, Message: fmt.Sprintf("%s; %s: %s", ready, u.set, u.message)}
		}
	}
	if s.counts.Ready < s.counts.Total {
		return status.Summary{Phase: status.Working, Reason: hubv1.ProgressingReason, Message: ready}
	}
	s.quoted = s.unready[0].set
	return status.Summary{Phase: status.Working, Reason: hubv1.ProgressingReason,
		Message: fmt.Sprintf("%s; %s: %s", ready, s.unready[0].set, s.unready[0].message)}
}

func noSet(why []string) string {
	if len(why) == 0 {
		return "no AddonSet is in reach: make one in a platform namespace, or in this one"
	}
	return "no AddonSet delivers to this cluster: " + status.List(why, 3)
}

// draining returns the summary of a cluster that is being drained.
func draining(c *metav1.Condition) status.Summary {
	phase := map[string]status.Phase{hubv1.DrainInProgressReason: status.Working, hubv1.DrainedReason: status.Done,
		hubv1.DrainTimedOutReason: status.Broken}
	return status.Summary{Phase: phase[c.Reason], Reason: c.Reason, Message: c.Message}
}
