// SPDX-License-Identifier: Apache-2.0

// Package teams is the controller that keeps the AddonSet of each Team, which brings the team's namespaces and rights to its
// clusters. All else about that set is the addonset controller's: rollout, removal guard, teardown.
package teams

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/demise"
	"github.com/chandler-hub/chandler/internal/apply"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/internal/team"
)

// Reconciler works on one Team at a time.
type Reconciler struct {
	Client client.Client
	Live   client.Reader
	Config *hubconfig.Config
	Clock  clock.PassiveClock
}

// Reconcile keeps the AddonSet of a Team, and reports how it stands.
func (r *Reconciler) Reconcile(ctx context.Context, t *hubv1.Team) (ctrl.Result, error) {
	if t.DeletionTimestamp != nil {
		return apply.Retried(ctrl.Result{}, r.finalize(ctx, t))
	}
	before := t.DeepCopy()
	if controllerutil.AddFinalizer(t, hubv1.Finalizer) {
		if err := r.Client.Patch(ctx, t, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return apply.Retried(ctrl.Result{}, client.IgnoreNotFound(fmt.Errorf("add finalizer: %w", err)))
		}
		before = t.DeepCopy()
	}
	set, summary, err := r.serve(ctx, t)
	if err != nil {
		return apply.Retried(ctrl.Result{}, err)
	}
	report(t, set)
	status.Summarize(t, summary, r.Clock.Now())
	return apply.Retried(ctrl.Result{}, apply.Status(ctx, r.Client, before, t))
}

// serve writes the AddonSet of a Team, and returns it, nil if there is none, and how the Team stands. A Team that is
// not valid keeps the set that it has.
func (r *Reconciler) serve(ctx context.Context, t *hubv1.Team) (*hubv1.AddonSet, status.Summary, error) {
	if !r.Config.IsPlatform(t.Namespace) {
		return nil, stalled(hubv1.NamespaceNotAllowedReason, "namespace %q is not a platform namespace, so this Team governs nothing; "+
			"write it in one of %v", t.Namespace, r.Config.PlatformNamespaces), nil
	}
	all := &hubv1.TeamList{}
	if err := r.Client.List(ctx, all, client.UnsafeDisableDeepCopy); err != nil {
		return nil, status.Summary{}, fmt.Errorf("list the Teams: %w", err)
	}
	if o := team.Namesake(t, all.Items, r.Config.IsPlatform); o != nil {
		return nil, stalled(hubv1.NotOwnedReason, "Team %s/%s has the same name, and so the same ServiceAccount on clusters: make one of "+
			"them again "+
			"under another name", o.Namespace, o.Name), nil
	}
	set, err := r.set(ctx, t)
	if err != nil {
		return nil, status.Summary{}, err
	}
	if set != nil && set.Labels[hubv1.TeamLabel] != t.Name {
		return nil, stalled(hubv1.NotOwnedReason, "AddonSet %q exists, and the hub did not make it for this Team: rename that AddonSet, "+
			"or the Team", set.Name), nil
	}
	spec, err := team.Bootstrap(t)
	if err != nil {
		set, yieldErr := r.yield(ctx, t, set, all.Items)
		return set, stalled(hubv1.InvalidSpecReason, "%s; what is on the clusters stays as it is", err), yieldErr
	}
	shared, err := r.shared(ctx, t, all.Items)
	if err != nil {
		return nil, status.Summary{}, err
	}
	if len(shared) > 0 {
		set, err = r.yield(ctx, t, set, all.Items)
		return set, stalled(hubv1.NamespaceTakenReason, "%s; what is on the clusters stays as it is", status.List(shared, 3)), err
	}
	if set, err = r.write(ctx, t, set, spec); err != nil {
		return nil, status.Summary{}, err
	}
	return set, r.stands(t, set, all.Items), nil
}

// shared returns the namespaces that an older Team has on one of the clusters of a Team.
func (r *Reconciler) shared(ctx context.Context, t *hubv1.Team, all []hubv1.Team) ([]string, error) {
	if len(all) < 2 {
		return nil, nil
	}
	clusters := &hubv1.ClusterRegistrationList{}
	if err := r.Client.List(ctx, clusters, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the registrations: %w", err)
	}
	return team.Shared(t, all, clusters.Items, r.Config.IsPlatform), nil
}

// yield writes the AddonSet of a Team as it is, but for that the namespaces stay on the clusters that are another Team's.
func (r *Reconciler) yield(ctx context.Context, t *hubv1.Team, set *hubv1.AddonSet, all []hubv1.Team) (*hubv1.AddonSet, error) {
	if set == nil {
		return nil, nil
	}
	spec, err := team.Yield(t, &set.Spec, all, r.Config.IsPlatform)
	if err != nil {
		return nil, err
	}
	return r.write(ctx, t, set, spec)
}

// set returns the AddonSet that has the name of a Team's; nil if there is none.
func (r *Reconciler) set(ctx context.Context, t *hubv1.Team) (*hubv1.AddonSet, error) {
	set := &hubv1.AddonSet{}
	err := r.Live.Get(ctx, types.NamespacedName{Namespace: t.Namespace, Name: team.SetName(t.Name)}, set)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read AddonSet %s: %w", team.SetName(t.Name), err)
	}
	return set, nil
}

// write writes the AddonSet of a Team, unless it is there as it should be, and returns it.
func (r *Reconciler) write(ctx context.Context, t *hubv1.Team, there *hubv1.AddonSet, spec *hubv1.AddonSetSpec) (*hubv1.AddonSet, error) {
	want, err := fields(spec)
	if err != nil {
		return nil, err
	}
	if there != nil {
		has, err := fields(&there.Spec)
		if err != nil {
			return nil, err
		}
		if there.DeletionTimestamp != nil || holds(has, want) {
			return there, nil // one that a user deletes is made again when it is gone
		}
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": want}}
	u.SetGroupVersionKind(hubv1.GroupVersion.WithKind("AddonSet"))
	u.SetNamespace(t.Namespace)
	u.SetName(team.SetName(t.Name))
	u.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "chandler", hubv1.TeamLabel: t.Name})
	written, err := apply.Update(ctx, r.Client, u, hubv1.FieldManager)
	if err != nil {
		return nil, err
	}
	set := &hubv1.AddonSet{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(written.Object, set); err != nil {
		return nil, fmt.Errorf("read the AddonSet: %w", err)
	}
	return set, nil
}

// fields returns a spec as its API object has it.
func fields(spec *hubv1.AddonSetSpec) (map[string]any, error) {
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(spec)
	if err != nil {
		return nil, fmt.Errorf("write the spec of an AddonSet: %w", err)
	}
	return out, nil
}

// holds returns whether a spec has every field of another one as it is there. People may add others, such as a removal
// guard. dependsOn is compared also where the other one has none, because a Team may drop its own.
func holds(has, want map[string]any) bool {
	if !equality.Semantic.DeepEqual(has["dependsOn"], want["dependsOn"]) {
		return false
	}
	for k, v := range want {
		if !equality.Semantic.DeepEqual(has[k], v) {
			return false
		}
	}
	return true
}

// stands returns how a Team stands whose AddonSet is written.
func (r *Reconciler) stands(t *hubv1.Team, set *hubv1.AddonSet, all []hubv1.Team) status.Summary {
	if rivals := team.Rivals(t, all, r.Config.IsPlatform); len(rivals) > 0 {
		return status.Summary{Phase: status.Broken, Reason: hubv1.NamespaceTakenReason, Message: status.List(rivals, 3)}
	}
	ready := status.Find(set, hubv1.ReadyCondition)
	switch {
	case ready == nil || set.Status.ObservedGeneration != set.Generation:
		return status.Summary{Phase: status.Working, Reason: hubv1.ProgressingReason,
			Message: fmt.Sprintf("AddonSet %q is on its way", set.Name)}
	case status.IsTrue(set, hubv1.ReadyCondition):
		return status.Summary{Phase: status.Done, Reason: hubv1.SucceededReason, Message: "its namespaces and rights: " + ready.Message}
	case status.IsTrue(set, hubv1.ReconcilingCondition):
		return status.Summary{Phase: status.Working, Reason: ready.Reason, Message: fmt.Sprintf("AddonSet %q: %s", set.Name, ready.Message)}
	}
	return status.Summary{Phase: status.Broken, Reason: ready.Reason, Message: fmt.Sprintf("AddonSet %q: %s", set.Name, ready.Message)}
}

// finalize deletes the AddonSet of a Team, and takes the Team's finalizer off when that is gone. If the Team is deleted because the CRD of
// Teams is, no user has asked for a removal: the AddonSet stays, and is the Team's again when that is back.
func (r *Reconciler) finalize(ctx context.Context, t *hubv1.Team) error {
	if !controllerutil.ContainsFinalizer(t, hubv1.Finalizer) {
		return nil
	}
	if forsaken, err := demise.AnyKind(ctx, r.Live, demise.Teams); err != nil {
		return err
	} else if forsaken {
		log.FromContext(ctx).Info("a Team is deleted because the CRD of Teams is; its AddonSet stays, and what that has on the clusters")
		return apply.RemoveFinalizer(ctx, r.Client, t, hubv1.Finalizer)
	}
	set, err := r.set(ctx, t)
	if err != nil {
		return err
	}
	if set == nil || set.Labels[hubv1.TeamLabel] != t.Name {
		return apply.RemoveFinalizer(ctx, r.Client, t, hubv1.Finalizer)
	}
	if set.DeletionTimestamp == nil {
		if err := apply.Delete(ctx, r.Client, set); err != nil {
			return fmt.Errorf("delete AddonSet %q: %w", set.Name, err)
		}
	}
	before := t.DeepCopy()
	report(t, set)
	message := fmt.Sprintf("AddonSet %q is being withdrawn", set.Name)
	if ready := status.Find(set, hubv1.ReadyCondition); ready != nil && set.DeletionTimestamp != nil {
		message = fmt.Sprintf("AddonSet %q: %s", set.Name, ready.Message)
	}
	status.Summarize(t, status.Summary{Phase: status.Working, Reason: hubv1.TerminatingReason, Message: message}, r.Clock.Now())
	return apply.Status(ctx, r.Client, before, t)
}

// report copies into the status of a Team what its AddonSet says; nothing if there is none.
func report(t *hubv1.Team, set *hubv1.AddonSet) {
	t.Status.AddonSet, t.Status.Clusters = "", nil
	if set != nil {
		t.Status.AddonSet, t.Status.Clusters = set.Name, set.Status.Clusters.DeepCopy()
	}
}

func stalled(reason, format string, args ...any) status.Summary {
	return status.Summary{Phase: status.Stalled, Reason: reason, Message: fmt.Sprintf(format, args...)}
}
