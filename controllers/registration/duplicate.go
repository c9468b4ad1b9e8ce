// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/enqueue"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/internal/status"
)

// duplicates says which other registrations are of the same cluster: their sets would deliver to it twice, and take from each
// other what they think is theirs. Which of them is meant, the hub cannot know.
func (r *Reconciler) duplicates(ctx context.Context, reg *hubv1.ClusterRegistration) error {
	id := reg.Status.ClusterID()
	if id == "" {
		status.Clear(reg, hubv1.DuplicateCondition)
		return nil
	}
	list := &hubv1.ClusterRegistrationList{}
	if err := r.Client.List(ctx, list, client.MatchingFields{index.ClusterID: id}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("look for other registrations of the cluster: %w", err)
	}
	var others []string
	for i := range list.Items {
		if o := &list.Items[i]; o.UID != reg.UID && !status.Goes(o) {
			others = append(others, o.Namespace+"/"+o.Name)
		}
	}
	if len(others) == 0 {
		status.Clear(reg, hubv1.DuplicateCondition)
		return nil
	}
	slices.Sort(others)
	status.Set(reg, hubv1.DuplicateCondition, metav1.ConditionTrue, hubv1.SameClusterReason, fmt.Sprintf(
		"this is the cluster of ClusterRegistration %s as well (%s): remove one of them, or their sets deliver to it twice; what the other delivers as well stays on the cluster",
		status.List(others, 3), sameness(&reg.Status)), r.Clock.Now())
	return nil
}

// sameness says by what a cluster is known to be the same.
func sameness(s *hubv1.ClusterRegistrationStatus) string {
	if s.UsesWorkloadIdentity() {
		return "they name it alike in spec.kubeConfig.workloadIdentity"
	}
	return fmt.Sprintf("kube-system has UID %s", s.ClusterUID)
}

// tellDuplicates sends an event when a registration turns out to be one of several.
func (r *Reconciler) tellDuplicates(before, after *hubv1.ClusterRegistration) {
	if is := status.Find(after, hubv1.DuplicateCondition); is != nil && status.Find(before, hubv1.DuplicateCondition) == nil {
		r.Recorder.Eventf(after, nil, corev1.EventTypeWarning, hubv1.DuplicateEvent, "Probe", "%s", is.Message)
	}
}

// sameCluster returns the registrations of one cluster.
func (r *Reconciler) sameCluster(ctx context.Context, obj client.Object) []reconcile.Request {
	id := obj.(*hubv1.ClusterRegistration).Status.ClusterID()
	if id == "" {
		return nil
	}
	return enqueue.Registrations(ctx, r.Client, client.MatchingFields{index.ClusterID: id})
}

// identityChanged: a registration that comes, goes, or turns out to be another cluster concerns the others of that cluster.
func identityChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			a, b := e.ObjectOld.(*hubv1.ClusterRegistration), e.ObjectNew.(*hubv1.ClusterRegistration)
			return a.Status.ClusterID() != b.Status.ClusterID() || status.Goes(a) != status.Goes(b)
		},
	}
}
