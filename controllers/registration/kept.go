// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/origin"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/internal/teardown"
)

// stays returns why a registration that is being deleted stays, and is served as before; "" if it goes.
//
// One reason is that it would be made again without what somebody wrote into it. A paused cluster would be changed,
// an add-on that stays by deletionPolicy: Orphan would be lost the next time, and so would a cluster that is selected
// by a label of its own. The other is that its Secret has gone since it was deleted. Then nobody has asked for an
// uninstall: with the Secret it would have been made again, and without the Secret nothing happens before the grace
// is over.
func (r *Reconciler) stays(ctx context.Context, reg *hubv1.ClusterRegistration, obj *unstructured.Unstructured,
	verdict origin.Verdict) (string, error) {
	loses := len(written(reg, obj)) > 0 && reg.Annotations[hubv1.DiscardSpecAnnotation] != "true"
	if !loses && !unsaid(reg, verdict) || forced(reg) || !controllerutil.ContainsFinalizer(reg, hubv1.RegistrationFinalizer) {
		return "", nil
	}
	facts, err := r.endFacts(ctx, reg, verdict)
	switch d := teardown.Registration(facts); {
	case err != nil || facts.KindDeleted:
		return "", err // with its kind everything goes, and nothing waits
	case d.Mode == teardown.Recreate && loses:
		return hubv1.SpecWouldBeLostReason, nil
	case d.Mode == teardown.Hold && facts.Unsaid:
		return hubv1.OriginMissingReason, nil
	}
	return "", nil
}

// unsaid returns whether a registration's Secret is missing, and the status did not say so yet when somebody deleted
// the registration.
func unsaid(reg *hubv1.ClusterRegistration, verdict origin.Verdict) bool {
	if reg.DeletionTimestamp == nil || verdict.Origin != teardown.OriginGone || !missing(reg) {
		return false
	}
	c := status.Find(reg, hubv1.UnregisteringCondition)
	return c == nil || c.Reason == hubv1.OriginMissingReason && !c.LastTransitionTime.Time.Before(reg.DeletionTimestamp.Time)
}

// graceLeft returns after how long to requeue a registration that was deleted and whose Secret is missing; 0 if
// nothing is waited for.
func (r *Reconciler) graceLeft(reg *hubv1.ClusterRegistration) time.Duration {
	c := status.Find(reg, hubv1.UnregisteringCondition)
	if reg.DeletionTimestamp == nil || c == nil || c.Reason != hubv1.OriginMissingReason {
		return 0
	}
	return max(r.Config.TeardownGrace-r.Clock.Since(c.LastTransitionTime.Time), 0) + 10*time.Millisecond
}

// written names the fields of a registration that its user has set, and that its origin does not know. The origin is
// nil if it does not exist.
func written(reg *hubv1.ClusterRegistration, obj *unstructured.Unstructured) []string {
	s, out := &reg.Spec, ownLabels(reg, obj)
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"kubeConfig", s.KubeConfig != nil},
		{"variables", len(s.Variables) > 0},
		{"overrides", len(s.Overrides) > 0},
		{"serviceAccountName", s.ServiceAccountName != ""},
		{"pause", s.Pause != nil},
		{"deletionPolicy", s.DeletionPolicy != "" && s.DeletionPolicy != hubv1.DeletionPolicyDelete},
		{"drainBeforeDeletion", s.DrainBeforeDeletion != nil},
	} {
		if f.set {
			out = append(out, "spec."+f.name)
		}
	}
	return out
}

// ownLabels names the labels of a registration that its origin does not have with the same value. Sets may select it
// by them.
func ownLabels(reg *hubv1.ClusterRegistration, obj *unstructured.Unstructured) []string {
	if obj == nil {
		return nil
	}
	var out []string
	theirs := obj.GetLabels()
	for k, v := range origin.MirroredLabels(reg.Labels) {
		if is, there := theirs[k]; !there || is != v {
			out = append(out, "label "+k)
		}
	}
	slices.Sort(out)
	return out
}

// keep sets or clears the condition that says why a deletion waits, and how to continue; why is "" if it does not
// wait.
func (r *Reconciler) keep(reg *hubv1.ClusterRegistration, obj *unstructured.Unstructured, why string) {
	if why == "" {
		status.Clear(reg, hubv1.DeletionHeldCondition)
		return
	}
	message := r.keptBecause(reg, obj, why)
	status.Set(reg, hubv1.DeletionHeldCondition, metav1.ConditionTrue, why, message, r.Clock.Now())
	if status.IsTrue(reg, hubv1.ReadyCondition) {
		status.Summarize(reg, status.Summary{Phase: status.Working, Reason: why, Message: message}, r.Clock.Now())
	}
}

func (r *Reconciler) keptBecause(reg *hubv1.ClusterRegistration, obj *unstructured.Unstructured, why string) string {
	if why == hubv1.OriginMissingReason {
		return fmt.Sprintf("deleted, and Secret %q, which it came from, does not exist: it is served as before. It is made again "+
			"when the Secret is back, and its add-ons are let go "+
			"when the Secret has not been there for %s. To let them go at once: kubectl annotate clusterregistration -n %s %s %s=true",
			reg.Spec.OriginRef.Name, r.Config.TeardownGrace, reg.Namespace, reg.Name, hubv1.ForceUnregisterAnnotation)
	}
	return fmt.Sprintf("deleted while its origin still says that it is registered, and made again it would be without %s: it "+
		"stays, and is served as before. "+
		"To have it made again without them: kubectl annotate clusterregistration -n %s %s %s=true. To unregister it, set label "+
		"%s to \"false\" on %s %q",
		status.List(written(reg, obj), 10), reg.Namespace, reg.Name, hubv1.DiscardSpecAnnotation, hubv1.RegisterLabel,
		reg.Spec.OriginRef.Kind, reg.Spec.OriginRef.Name)
}

// tellKept sends an event when a deletion begins to wait.
func (r *Reconciler) tellKept(before, after *hubv1.ClusterRegistration) {
	if is := status.Find(after, hubv1.DeletionHeldCondition); is != nil && status.Reason(before, hubv1.DeletionHeldCondition) != is.Reason {
		r.Recorder.Eventf(after, nil, corev1.EventTypeWarning, hubv1.HeldEvent, "Unregister", "%s", is.Message)
	}
}
