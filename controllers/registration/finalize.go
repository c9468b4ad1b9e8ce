// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/demise"
	"github.com/chandler-hub/chandler/controllers/reach"
	"github.com/chandler-hub/chandler/internal/apply"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/origin"
	"github.com/chandler-hub/chandler/internal/pace"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/internal/teardown"
)

// recreate releases a registration that discovery makes again.
func (r *Reconciler) recreate(ctx context.Context, reg *hubv1.ClusterRegistration, obj *unstructured.Unstructured,
	facts teardown.RegistrationFacts, decision teardown.Decision) (ctrl.Result, error) {
	if still, err := r.remade(ctx, reg, obj, facts); err != nil || !still {
		return ctrl.Result{RequeueAfter: time.Second}, err
	}
	r.Recorder.Eventf(reg, nil, corev1.EventTypeWarning, hubv1.RegisteredEvent, "Register", "%s", recreated(facts, decision))
	r.notes.probes(client.ObjectKeyFromObject(reg), nil, r.Pool.Remove)
	return ctrl.Result{}, apply.RemoveFinalizer(ctx, r.Client, reg, hubv1.Finalizer)
}

// finalize removes a registration's finalizer. If the origin still wants the registration, it does so at once: the
// registration is made again, and the add-ons do not notice. Otherwise it waits until the deliveries have gone.
func (r *Reconciler) finalize(ctx context.Context, reg *hubv1.ClusterRegistration, obj *unstructured.Unstructured,
	verdict origin.Verdict) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(reg, hubv1.Finalizer) {
		r.forget(client.ObjectKeyFromObject(reg))
		return ctrl.Result{}, nil
	}
	facts, err := r.endFacts(ctx, reg, verdict)
	if err != nil {
		return ctrl.Result{}, err
	}
	decision, key := teardown.Registration(facts), client.ObjectKeyFromObject(reg)
	if decision.Mode == teardown.Recreate {
		return r.recreate(ctx, reg, obj, facts, decision)
	}
	reason := unregisteringReason(facts, decision)
	if behind, err := r.behind(ctx, reg, obj, reason); err != nil || behind {
		return ctrl.Result{RequeueAfter: time.Second}, err
	}
	before := reg.DeepCopy()
	seen, err := r.deliveriesLeft(ctx, reg)
	if err != nil {
		return ctrl.Result{}, err
	}
	left := seen
	found, again, err := r.lastAccess(ctx, before, reg, obj, verdict)
	if err != nil {
		return ctrl.Result{}, err
	}
	fresh := r.goes(reg, reason, decision)
	if reason != "" && left == 0 && !fresh {
		if left, err = r.unseen(ctx, reg); err != nil {
			return ctrl.Result{}, err
		}
	}
	status.Summarize(reg, status.Summary{Phase: status.Working, Reason: hubv1.TerminatingReason,
		Message: decision.Reason + "; " + status.Count(left, "delivery") + " left"}, r.Clock.Now())
	if err := apply.Status(ctx, r.Client, before, reg); err != nil {
		return ctrl.Result{}, err
	}
	r.tellSuspended(before, reg)
	switch {
	case reason == "":
		return ctrl.Result{RequeueAfter: time.Minute}, nil // held: look again whether the origin can be read
	case left > 0:
		if seen == 0 {
			again = pace.Sooner(again, time.Second) // the cache is behind, and may never show what has gone meanwhile
		}
		return ctrl.Result{RequeueAfter: again}, found.unread // the last delivery wakes us when it goes
	case fresh:
		// The matcher may have been making deliveries before it knew. Once it knows the condition, it makes no more.
		return ctrl.Result{RequeueAfter: time.Second}, nil
	}
	if err := r.unmark(ctx, reg, obj); err != nil {
		return ctrl.Result{}, err
	}
	r.forget(key)
	return ctrl.Result{}, apply.RemoveFinalizer(ctx, r.Client, reg, hubv1.Finalizer)
}

// lastAccess is access for a registration that goes, and suspend after it. To clean up, the last known way in will do. If there is none, as
// when the registration was made again and its cluster has not answered since, the origin says one.
func (r *Reconciler) lastAccess(ctx context.Context, before, reg *hubv1.ClusterRegistration, obj *unstructured.Unstructured,
	verdict origin.Verdict) (found resolution, again time.Duration, err error) {
	from := obj
	if reg.Status.Credential != nil {
		from, verdict = nil, origin.Verdict{Origin: teardown.OriginUnknown}
	}
	found, refused, err := r.access(ctx, reg, from, verdict)
	if err != nil {
		return found, 0, err
	}
	if again, _, err = r.suspend(ctx, reg, obj, refused); err != nil {
		return found, 0, err
	}
	r.dated(before, reg)
	return found, again, nil
}

// behind returns whether the cache does not show yet what became of the origin of a registration that is about to go. If the origin has
// come back, the registration is made again, and nothing is to be withdrawn: what has begun to leave goes on.
func (r *Reconciler) behind(ctx context.Context, reg *hubv1.ClusterRegistration, obj *unstructured.Unstructured,
	reason string) (bool, error) {
	kind, err := kindOf(reg)
	if err != nil || reg.Spec.OriginRef == nil || reason == "" || reason == hubv1.ForcedReason ||
		status.Reason(reg, hubv1.UnregisteringCondition) == reason {
		return false, nil //nolint:nilerr // of a kind that the hub does not know it waits for nothing
	}
	return r.Origins.Behind(ctx, kind, types.NamespacedName{Namespace: reg.Namespace, Name: reg.Spec.OriginRef.Name}, obj)
}

// goes says why a registration goes, and since when. It returns whether the status did not say so before.
func (r *Reconciler) goes(reg *hubv1.ClusterRegistration, reason string, decision teardown.Decision) bool {
	fresh := status.Reason(reg, hubv1.UnregisteringCondition) != reason
	if reason == "" {
		return fresh
	}
	if fresh {
		status.Clear(reg, hubv1.UnregisteringCondition) // each reason has a time of its own
	}
	status.Set(reg, hubv1.UnregisteringCondition, metav1.ConditionTrue, reason, decision.Reason, r.Clock.Now())
	return fresh
}

// remade returns whether a registration that goes is made again. It reads live: if the origin has gone or changed
// since the cache saw it, nothing would make the registration again, and nothing would withdraw what is delivered.
func (r *Reconciler) remade(ctx context.Context, reg *hubv1.ClusterRegistration, obj *unstructured.Unstructured,
	f teardown.RegistrationFacts) (bool, error) {
	kind, err := kindOf(reg)
	if f.KindDeleted || obj == nil || err != nil {
		return true, nil
	}
	behind, err := r.Origins.Behind(ctx, kind, client.ObjectKeyFromObject(obj), obj)
	return !behind && r.Origins.Installed(kind), err
}

// endFacts returns the facts that decide how a registration ends.
func (r *Reconciler) endFacts(ctx context.Context, reg *hubv1.ClusterRegistration,
	verdict origin.Verdict) (teardown.RegistrationFacts, error) {
	f := teardown.RegistrationFacts{
		Origin: verdict.Origin, Forced: forced(reg),
		Since: reg.DeletionTimestamp.Time, Now: r.Clock.Now(), Grace: r.Config.TeardownGrace,
	}
	if kind, err := kindOf(reg); err == nil {
		f.IsCluster = kind.IsCluster()
	}
	f.Lost = lost(reg, verdict, f)
	if since := r.notes.unreadSince(client.ObjectKeyFromObject(reg), verdict.Origin, f.Now); since.After(f.Since) {
		f.Since = since
	}
	var err error
	if f.Other, err = r.stayer(ctx, reg); err != nil {
		return f, err
	}
	if f.NamespaceDeleted, err = demise.Namespace(ctx, r.Live, reg.Namespace); err != nil {
		return f, err
	}
	f.KindDeleted, err = demise.AnyKind(ctx, r.Live, demise.Registrations)
	return f, err
}

// lost returns whether a registration goes because its Secret has been missing for the grace. If the status says that
// the Secret is missing, and a user deletes the registration before the grace is over, it is unregistered.
func lost(reg *hubv1.ClusterRegistration, verdict origin.Verdict, f teardown.RegistrationFacts) bool {
	c := status.Find(reg, hubv1.UnregisteringCondition)
	if c == nil || f.IsCluster || verdict.Origin != teardown.OriginGone {
		return false
	}
	return c.Reason == hubv1.OriginLostReason || c.Reason == hubv1.OriginMissingReason && f.Since.Sub(c.LastTransitionTime.Time) >= f.Grace
}

// forced returns whether a user wants a registration gone, whatever it waits for.
func forced(obj client.Object) bool {
	return obj.GetAnnotations()[hubv1.ForceUnregisterAnnotation] == "true"
}

// recreated says why nothing is uninstalled, and what a user who wanted that can do.
func recreated(f teardown.RegistrationFacts, d teardown.Decision) string {
	if f.KindDeleted {
		return "deleted because " + d.Reason + "; nothing is uninstalled, and Flux goes on with what it has"
	}
	return fmt.Sprintf("deleted while %s; nothing is uninstalled, and it is made again. To unregister, set label %s to \"false\" there",
		d.Reason, hubv1.RegisterLabel)
}

// unregisteringReason returns the reason of condition Unregistering, because of which the deliveries go; "" if they
// do not go.
func unregisteringReason(f teardown.RegistrationFacts, d teardown.Decision) string {
	switch {
	case d.Mode == teardown.Hold:
		return ""
	case d.Mode == teardown.Orphan && f.Forced:
		return hubv1.ForcedReason
	case d.Mode == teardown.Orphan && d.Reason == f.Other:
		return hubv1.SameClusterReason
	case d.Mode == teardown.Orphan && f.Lost:
		return hubv1.OriginLostReason
	case d.Mode == teardown.Orphan:
		return hubv1.OriginDeletedReason
	}
	return hubv1.UnregisteredReason
}

// deliveriesLeft counts the deliveries of a registration that the cache shows. Before the registration goes, unseen looks for the others.
func (r *Reconciler) deliveriesLeft(ctx context.Context, reg *hubv1.ClusterRegistration) (int, error) {
	list, err := r.deliveriesOf(ctx, client.ObjectKeyFromObject(reg))
	return len(list), err
}

// unseen counts the deliveries of a registration that are not in the cache yet, and would lose their registration. It reads each live, by
// the name that a set's delivery has: a list would have the API server look at every delivery of the fleet, for each cluster that goes.
func (r *Reconciler) unseen(ctx context.Context, reg *hubv1.ClusterRegistration) (int, error) {
	sets, key := &hubv1.AddonSetList{}, client.ObjectKeyFromObject(reg)
	if err := r.Client.List(ctx, sets, client.UnsafeDisableDeepCopy); err != nil {
		return 0, fmt.Errorf("list the sets: %w", err)
	}
	left := 0
	for i := range sets.Items {
		name := types.NamespacedName{Namespace: sets.Items[i].Namespace, Name: identity.Delivery(sets.Items[i].Name, key)}
		from, err := reach.Of(ctx, r.Client, r.Config, name.Namespace)
		if err != nil {
			return 0, err
		}
		if !from.To(reg) {
			continue // what it had here was made long ago
		}
		d := &hubv1.AddonDelivery{}
		switch err := r.Live.Get(ctx, name, d); {
		case client.IgnoreNotFound(err) != nil:
			return 0, fmt.Errorf("read AddonDelivery %s: %w", name, err)
		case err == nil && d.Spec.RegistrationRef.Key() == key:
			left++
		}
	}
	return left, nil
}
