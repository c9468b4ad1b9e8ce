// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/originreader"
	"github.com/chandler-hub/chandler/internal/breaker"
	"github.com/chandler-hub/chandler/internal/origin"
	"github.com/chandler-hub/chandler/internal/probe"
	"github.com/chandler-hub/chandler/internal/serving"
	"github.com/chandler-hub/chandler/internal/status"
)

// suspend decides whether the cluster's Flux objects are to be suspended, and sets condition Suspended, by which the
// delivery controller suspends them. Condition Maintenance says what the origin's own controller does with the cluster. It
// returns after how long to decide again, and a doubt to report.
func (r *Reconciler) suspend(ctx context.Context, reg *hubv1.ClusterRegistration, obj *unstructured.Unstructured,
	refused *serving.Refusal) (time.Duration, string, error) {
	now := r.Clock.Now()
	was, reachable := status.Find(reg, hubv1.SuspendedCondition), status.Find(reg, hubv1.ReachableCondition)
	facts := breaker.Facts{
		Pause: reg.Spec.Pause, Answered: reg.Status.ClusterID() != "", Now: now, Again: r.Config.ProbeInterval,
		// If Flux's failures are all that is known, suspending Flux would end the only attempts to reach the cluster.
		Down: refused == nil && !reg.Status.UsesWorkloadIdentity() && reachable != nil && reachable.Status == metav1.ConditionFalse,
	}
	if was != nil {
		facts.Open, facts.OpenSince = was.Reason, was.LastTransitionTime.Time
	}
	if facts.Down && !hubv1.Tripped(facts.Open) && r.unheard(client.ObjectKeyFromObject(reg)) {
		facts.Down = false // another process saw that, and may have doubted it. The first probe of this one wakes us
	}
	if facts.Down {
		facts.DownSince = reachable.LastTransitionTime.Time
		facts.Refused = probe.Refuses(reachable.Reason)
		facts.Fleet.Probed, facts.Fleet.Failed = r.Pool.Recent(now.Add(-r.moment())) // looks at all of the fleet
	}
	if refused == nil && status.Online(reg) {
		if err := r.hangs(ctx, reg, &facts); err != nil {
			return 0, "", err
		}
	}
	facts.Expected, facts.Maintenance = said(reg, obj)
	d := breaker.Decide(facts)
	if d.Reason == "" {
		status.Clear(reg, hubv1.SuspendedCondition)
	} else {
		if d.Reason == hubv1.FluxHangsReason && facts.Open != d.Reason {
			status.Clear(reg, hubv1.SuspendedCondition) // how long it is open counts from now
		}
		status.Set(reg, hubv1.SuspendedCondition, metav1.ConditionTrue, d.Reason, d.Message, now)
	}
	if m := facts.Maintenance; m.Reason == "" {
		status.Clear(reg, hubv1.MaintenanceCondition)
	} else {
		status.Set(reg, hubv1.MaintenanceCondition, metav1.ConditionTrue, m.Reason, m.Message, now)
	}
	return d.Wait, d.Doubt, nil
}

// said returns the states that the origin says. While it does not exist, or cannot be read, they are those that it said last, as the
// conditions have them: absence resumes nothing.
func said(reg *hubv1.ClusterRegistration, obj *unstructured.Unstructured) (still, maintenance breaker.State) {
	kind, err := kindOf(reg)
	if err != nil {
		return breaker.State{}, breaker.State{}
	}
	if obj != nil || reg.Spec.OriginRef == nil {
		return kind.Still(obj), kind.Maintenance(obj)
	}
	if c := status.Find(reg, hubv1.SuspendedCondition); c != nil && c.Reason != hubv1.PausedReason && !hubv1.Tripped(c.Reason) {
		still = breaker.State{Reason: c.Reason, Message: c.Message}
	}
	if c := status.Find(reg, hubv1.MaintenanceCondition); c != nil {
		maintenance = breaker.State{Reason: c.Reason, Message: c.Message}
	}
	return still, maintenance
}

func kindOf(reg *hubv1.ClusterRegistration) (origin.Kind, error) {
	if reg.Spec.OriginRef == nil {
		return origin.Secret, nil
	}
	return originreader.KindOf(reg)
}

// moment is how old a probe may be to count as current: long enough for several clusters to be probed, and too short
// for probes from before the network failed.
func (r *Reconciler) moment() time.Duration { return max(r.Config.ProbeInterval/6, 10*time.Second) }

// tellSuspended sends an event when the hub suspends or resumes a cluster.
func (r *Reconciler) tellSuspended(before, after *hubv1.ClusterRegistration) {
	was, is := status.Find(before, hubv1.SuspendedCondition), status.Find(after, hubv1.SuspendedCondition)
	switch {
	case is != nil && (was == nil || was.Reason != is.Reason):
		typ := corev1.EventTypeNormal
		if is.Reason == hubv1.FluxHangsReason || is.Reason == hubv1.CredentialRefusedReason {
			typ = corev1.EventTypeWarning // of a cluster that is silent, another event warns
		}
		r.Recorder.Eventf(after, nil, typ, hubv1.SuspendedCondition, "Suspend", "its Flux objects are suspended: %s", is.Message)
	case is == nil && was != nil:
		r.Recorder.Eventf(after, nil, corev1.EventTypeNormal, hubv1.ResumedEvent, "Resume",
			"its Flux objects are resumed; they were suspended because of %s", was.Reason)
	}
}
