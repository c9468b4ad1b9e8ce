// SPDX-License-Identifier: Apache-2.0

// Package drain decides when an origin may be deleted, if its add-ons are to be uninstalled first. It is pure: facts
// in, a decision out.
//
// Add-ons create things outside their cluster, such as load balancers and volumes. These go away only if the add-ons
// are uninstalled while the cluster still runs. A finalizer of ours cannot delay the end of the cluster: Kamaji drops
// a tenant's database as soon as it sees a deletionTimestamp. So an admission policy denies the deletion itself,
// a user asks for a drain, and the hub annotates the origin when the drain is done.
package drain

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/origin"
	"github.com/chandler-hub/chandler/internal/status"
)

// DefaultTimeout is the maximum time of a drain if the registration does not set one.
const DefaultTimeout = 30 * time.Minute

// settle is the minimum time of a drain. A reconcile of the delivery controller may have started before it knew of the
// drain. The start of the drain is kept in whole seconds, so it may be up to one second too early.
const settle = 2 * time.Second

// Requested returns whether a cluster is being drained. Then the hub withdraws all its deliveries, and makes none.
// The removal guard does not apply, because a user asked for exactly this, for exactly this cluster.
func Requested(reg *hubv1.ClusterRegistration) bool {
	return status.IsTrue(reg, hubv1.DrainingCondition)
}

// Timeout returns the maximum time of a drain.
func Timeout(spec *hubv1.DrainBeforeDeletion) time.Duration {
	if spec == nil || spec.Timeout == nil {
		return DefaultTimeout
	}
	return spec.Timeout.Duration
}

// Facts are what a decision is made from.
type Facts struct {
	// Spec is the registration's spec.drainBeforeDeletion.
	Spec *hubv1.DrainBeforeDeletion
	// Kind and Origin are the cluster's origin. Origin is nil if it does not exist or cannot be read.
	Kind   origin.Kind
	Origin *unstructured.Unstructured
	// Was is the registration's condition Draining; nil for none.
	Was *metav1.Condition
	// Left names the add-ons that are not uninstalled yet.
	Left []string
	// Waits says why they cannot be uninstalled now; empty if they can.
	Waits string
	// Now is the time. Since is since when this process of the hub is at work; zero if that is not known.
	Now, Since time.Time
}

// Decision says which marks the origin gets, and which condition the registration.
type Decision struct {
	// Keep leaves the marks and the condition as they are.
	Keep bool
	// Guarded is true if the origin gets the label that makes the policy deny its deletion. Drained is true if it
	// gets the annotation that makes the policy allow it.
	Guarded, Drained bool
	// Reason and Message are those of the condition Draining; empty if there is to be no condition.
	Reason, Message string
	// Idle says which annotation or field has no effect, and why; empty if all have one.
	Idle string
	// Wait is when to decide again even if no fact changes; 0 for never.
	Wait time.Duration
}

// Decide decides from the facts.
func Decide(f Facts) Decision {
	switch {
	case !f.Kind.IsCluster() && f.Spec != nil:
		return Decision{Keep: true, Idle: "spec.drainBeforeDeletion has no effect: it is only for clusters that come from a TenantControlPlane " +
			"or a Cluster"}
	case !f.Kind.IsCluster():
		return Decision{Keep: true}
	case f.Origin == nil || f.Origin.GetDeletionTimestamp() != nil:
		return Decision{Keep: true} // absence brings nothing back, and who is going needs no permission any more
	case f.Spec == nil && !f.requested():
		return Decision{}
	case f.Spec == nil:
		return Decision{Idle: fmt.Sprintf("annotation %s of %s does nothing without spec.drainBeforeDeletion", hubv1.DrainAnnotation,
			f.subject())}
	case !f.requested():
		return Decision{Guarded: true}
	case f.Was == nil:
		return f.inProgress(settle)
	}
	began, timeout := f.Now.Sub(f.Was.LastTransitionTime.Time), Timeout(f.Spec)
	worked := f.worked(began)
	over := worked >= timeout
	switch {
	case over && (len(f.Left) > 0 || f.Was.Reason == hubv1.DrainTimedOutReason):
		// The timeout stays on record when no add-on is left later: the rest may have been orphaned, and not
		// uninstalled.
		return Decision{Guarded: true, Drained: true, Reason: hubv1.DrainTimedOutReason, Message: fmt.Sprintf(
			"not everything was uninstalled within %s, and %s may be deleted all the same; %s", timeout, f.subject(), f.left())}
	case began < settle:
		return f.inProgress(settle - began)
	case len(f.Left) > 0:
		return f.inProgress(timeout - worked)
	}
	return Decision{Guarded: true, Drained: true, Reason: hubv1.DrainedReason, Message: fmt.Sprintf(
		"no add-on is left, and %s may be deleted; to bring the add-ons back, remove annotation %s from it", f.subject(), hubv1.DrainAnnotation)}
}

// worked returns for how long this process has been at work on a drain that began some time ago. Before that there may have been none, and
// nothing was uninstalled. What has timed out stays so.
func (f *Facts) worked(began time.Duration) time.Duration {
	if f.Was.Reason == hubv1.DrainTimedOutReason {
		return began
	}
	return min(began, f.Now.Sub(f.Since))
}

func (f *Facts) requested() bool { return f.Origin.GetAnnotations()[hubv1.DrainAnnotation] == "true" }

func (f *Facts) subject() string { return fmt.Sprintf("%s %q", f.Kind.Kind, f.Origin.GetName()) }

func (f *Facts) inProgress(wait time.Duration) Decision {
	message := fmt.Sprintf("%s; %s may be deleted when none is left, or %s after this began", f.left(), f.subject(), Timeout(f.Spec))
	if f.Waits != "" && len(f.Left) > 0 {
		message += "; it waits: " + f.Waits
	}
	return Decision{Guarded: true, Reason: hubv1.DrainInProgressReason, Message: message, Wait: wait}
}

func (f *Facts) left() string {
	if len(f.Left) == 0 {
		return "no add-on is left"
	}
	return "left: " + status.List(f.Left, 5)
}
