// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/origin"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/internal/teardown"
)

// wouldLose returns whether a registration that is being deleted would be made again without what somebody wrote into it. A cluster that was
// paused would be worked on, and one that keeps its add-ons by deletionPolicy: Orphan would lose them the next time. So it stays, and is
// served as before, until somebody has looked.
func (r *Reconciler) wouldLose(ctx context.Context, reg *hubv1.ClusterRegistration, verdict origin.Verdict) (bool, error) {
	if len(written(&reg.Spec)) == 0 || reg.Annotations[hubv1.DiscardSpecAnnotation] == "true" || forced(reg) || !controllerutil.ContainsFinalizer(reg, hubv1.RegistrationFinalizer) {
		return false, nil
	}
	facts, err := r.endFacts(ctx, reg, verdict)
	if err != nil || facts.KindDeleted {
		return false, err // with its kind everything goes, and nothing waits
	}
	return teardown.Registration(facts).Mode == teardown.Recreate, nil
}

// written names the fields of a registration that only its user knows.
func written(s *hubv1.ClusterRegistrationSpec) []string {
	var out []string
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

// keepWritten says that a deletion waits for somebody to look, and how to go on.
func (r *Reconciler) keepWritten(reg *hubv1.ClusterRegistration, lossy bool) {
	if !lossy {
		status.Clear(reg, hubv1.DeletionHeldCondition)
		return
	}
	message := fmt.Sprintf("deleted while its origin still says that it is registered, and made again it would be without %s: it stays, and is served as before. "+
		"To have it made again without them: kubectl annotate clusterregistration -n %s %s %s=true. To unregister it, set label %s to \"false\" on %s %q",
		strings.Join(written(&reg.Spec), ", "), reg.Namespace, reg.Name, hubv1.DiscardSpecAnnotation, hubv1.RegisterLabel, reg.Spec.OriginRef.Kind, reg.Spec.OriginRef.Name)
	status.Set(reg, hubv1.DeletionHeldCondition, metav1.ConditionTrue, hubv1.SpecWouldBeLostReason, message, r.Clock.Now())
	if status.IsTrue(reg, hubv1.ReadyCondition) {
		status.Summarize(reg, status.Outcome{Phase: status.Working, Reason: hubv1.SpecWouldBeLostReason, Message: message}, r.Clock.Now())
	}
}

// tellKept sends an event when a deletion begins to wait.
func (r *Reconciler) tellKept(before, after *hubv1.ClusterRegistration) {
	if is := status.Find(after, hubv1.DeletionHeldCondition); is != nil && status.Find(before, hubv1.DeletionHeldCondition) == nil {
		r.Recorder.Eventf(after, nil, corev1.EventTypeWarning, hubv1.HeldEvent, "Unregister", "%s", is.Message)
	}
}
