// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/drain"
	"github.com/chandler-hub/chandler/internal/serving"
	"github.com/chandler-hub/chandler/internal/status"
)

// drain marks the origin, so that the admission policy can decide whether it may be deleted, and sets condition
// Draining, by which the addonset controller withdraws deliveries. It returns after how long to decide again.
//
// The mark is written before the status. So the mark has gone before anything is delivered again, and the status
// never reports a mark that does not exist.
func (r *Reconciler) drain(ctx context.Context, reg *hubv1.ClusterRegistration, obj *unstructured.Unstructured,
	s *serving.Sets) (time.Duration, error) {
	kind, err := kindOf(reg)
	if err != nil {
		return 0, nil // resolve says so in the status
	}
	facts := drain.Facts{
		Spec: reg.Spec.DrainBeforeDeletion, Kind: kind, Origin: obj, Was: status.Find(reg, hubv1.DrainingCondition), Left: s.Left,
		Now: r.Clock.Now(), Since: r.Tenure.Since(r.Clock.Now()),
	}
	if c := status.Find(reg, hubv1.SuspendedCondition); c != nil {
		facts.Waits = c.Message
	}
	d := drain.Decide(facts)
	if d.Reason == hubv1.DrainedReason && !marked(obj) {
		left, err := r.deliveriesLeft(ctx, reg)
		if err != nil {
			return 0, err
		}
		if left > 0 { // of which the cache does not know yet
			facts.Left = []string{status.Count(left, "delivery")}
			d = drain.Decide(facts)
		}
	}
	s.IdleDrain = d.Idle
	if d.Keep {
		return 0, nil
	}
	if err := r.mark(ctx, obj, d.Guarded, d.Drained); err != nil {
		s.IdleDrain = fmt.Sprintf("%s %q cannot be marked for its deletion: the hub tries again, and its log says why", kind.Kind, obj.GetName())
		return 0, err
	}
	if d.Reason == "" {
		status.Clear(reg, hubv1.DrainingCondition)
	} else {
		status.Set(reg, hubv1.DrainingCondition, metav1.ConditionTrue, d.Reason, d.Message, facts.Now)
	}
	return d.Wait, nil
}

func marked(obj *unstructured.Unstructured) bool {
	return obj.GetAnnotations()[hubv1.DrainedAnnotation] == "true"
}

// mark sets or removes the two marks of an origin, if they are not as they should be. It uses a merge patch and not
// server-side apply: a mark that came from a backup, or from another management cluster, has another field manager,
// and has to be removed as well.
func (r *Reconciler) mark(ctx context.Context, obj *unstructured.Unstructured, guarded, drained bool) error {
	if obj == nil {
		return nil
	}
	value := map[bool]any{true: "true"} // false is null
	is := func(m map[string]string, key string, want bool) bool {
		v, there := m[key]
		return want && v == "true" || !want && !there
	}
	if is(obj.GetLabels(), hubv1.DrainBeforeDeletionLabel, guarded) && is(obj.GetAnnotations(), hubv1.DrainedAnnotation, drained) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":         obj.GetUID(), // never another one that took its place
		"labels":      map[string]any{hubv1.DrainBeforeDeletionLabel: value[guarded]},
		"annotations": map[string]any{hubv1.DrainedAnnotation: value[drained]},
	}})
	if err != nil {
		return err
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(obj.GroupVersionKind())
	u.SetNamespace(obj.GetNamespace())
	u.SetName(obj.GetName())
	err = r.Client.Patch(ctx, u, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(hubv1.FieldManager))
	if err != nil {
		return client.IgnoreNotFound(fmt.Errorf("mark %s %s/%s for its deletion: %w", obj.GetKind(), obj.GetNamespace(), obj.GetName(), err))
	}
	return nil
}

// unmark removes the marks from an origin whose registration goes, unless the origin is being deleted as well.
func (r *Reconciler) unmark(ctx context.Context, reg *hubv1.ClusterRegistration, obj *unstructured.Unstructured) error {
	kind, err := kindOf(reg)
	if err != nil || drain.Decide(drain.Facts{Kind: kind, Origin: obj}).Keep {
		return nil
	}
	return r.mark(ctx, obj, false, false)
}

// tellDrain sends an event at each step of a drain. It is about the origin, because that is what a user wants to
// delete.
func (r *Reconciler) tellDrain(before, after *hubv1.ClusterRegistration, obj *unstructured.Unstructured) {
	was, is := status.Find(before, hubv1.DrainingCondition), status.Find(after, hubv1.DrainingCondition)
	switch {
	case obj == nil || is == nil && was == nil || is != nil && was != nil && is.Reason == was.Reason:
	case is == nil:
		r.Recorder.Eventf(obj, after, corev1.EventTypeNormal, hubv1.DrainCancelledEvent, "Drain",
			"the add-ons come back: the origin asks for no drain any more")
	case is.Reason == hubv1.DrainTimedOutReason:
		r.Recorder.Eventf(obj, after, corev1.EventTypeWarning, hubv1.DrainTimedOutReason, "Drain", "%s", is.Message)
	case is.Reason == hubv1.DrainedReason:
		r.Recorder.Eventf(obj, after, corev1.EventTypeNormal, hubv1.DrainedReason, "Drain", "%s", is.Message)
	default:
		r.Recorder.Eventf(obj, after, corev1.EventTypeNormal, hubv1.DrainingCondition, "Drain", "%s", is.Message)
	}
}
