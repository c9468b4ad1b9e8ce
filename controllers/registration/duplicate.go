// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/internal/precedence"
	"github.com/chandler-hub/chandler/internal/status"
)

// ofCluster lists the registrations of a cluster; none if its UID is not known.
func (r *Reconciler) ofCluster(ctx context.Context, id string) ([]hubv1.ClusterRegistration, error) {
	if id == "" {
		return nil, nil
	}
	list := &hubv1.ClusterRegistrationList{}
	if err := r.Client.List(ctx, list, client.MatchingFields{index.ClusterID: id}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("look for other registrations of the cluster: %w", err)
	}
	return list.Items, nil
}

// dated notes since when a registration is of its cluster. before is the registration as it was read.
func (r *Reconciler) dated(before, reg *hubv1.ClusterRegistration) {
	switch was, is := before.Status.ClusterID(), reg.Status.ClusterID(); {
	case is == "":
		reg.Status.ClusterSince = nil
	case was != is:
		now := metav1.NewTime(r.Clock.Now())
		reg.Status.ClusterSince = &now
	}
}

// duplicates says which other registration has the cluster of this one, and sets the condition that there are several.
func (r *Reconciler) duplicates(ctx context.Context, reg *hubv1.ClusterRegistration) error {
	all, err := r.ofCluster(ctx, reg.Status.ClusterID())
	if err != nil {
		return err
	}
	reg.Status.DuplicateOf = nil
	if holder := precedence.Holder(reg, all, r.Config.IsPlatform); holder != nil {
		reg.Status.DuplicateOf = &hubv1.RegistrationReference{Namespace: holder.Namespace, Name: holder.Name}
		status.Set(reg, hubv1.DuplicateCondition, metav1.ConditionTrue, hubv1.SameClusterReason, standsBack(reg, holder), r.Clock.Now())
		return nil
	}
	if beside := precedence.Beside(reg, all, r.Config.IsPlatform); len(beside) > 0 {
		status.Set(reg, hubv1.DuplicateCondition, metav1.ConditionTrue, hubv1.SameClusterReason, fmt.Sprintf(
			"this is the cluster of ClusterRegistration %s as well, or says so (%s). Their kubeconfigs have different CAs, or each "+
				"is in a tenant's namespace: sets deliver through all of them. If it is one cluster, remove all but one",
			status.List(beside, 3), sameness(&reg.Status)), r.Clock.Now())
		return nil
	}
	status.Clear(reg, hubv1.DuplicateCondition)
	return nil
}

// standsBack says why nothing is delivered through a registration, and what to do. Another one keeps the cluster while it does not
// answer: an expired kubeconfig must not change what is delivered to a cluster.
func standsBack(reg, holder *hubv1.ClusterRegistration) string {
	name := holder.Namespace + "/" + holder.Name
	remedy := "Remove one of them, and sets deliver through the other"
	if status.Online(reg) && !status.Online(holder) {
		remedy = fmt.Sprintf("The cluster answers here, and not through %s: repair its kubeconfig, or remove it, and sets deliver through "+
			"this one", name)
	}
	return fmt.Sprintf("ClusterRegistration %s has this cluster (%s): nothing is delivered through this one. %s",
		name, sameness(&reg.Status), remedy)
}

// stayer says which other registration stays on the cluster of one that is going; "" if none does. It reads live: if
// two are going, neither may take over from the other because of a stale cache. Once it has been said, it is kept,
// since add-ons have been orphaned because of it.
func (r *Reconciler) stayer(ctx context.Context, reg *hubv1.ClusterRegistration) (string, error) {
	if c := status.Find(reg, hubv1.UnregisteringCondition); c != nil && c.Reason == hubv1.SameClusterReason {
		return c.Message, nil
	}
	is := reg.Status.ClusterID()
	all, err := r.ofCluster(ctx, is)
	if err != nil {
		return "", err
	}
	for _, name := range precedence.Stayers(reg, all, r.Config.IsPlatform) {
		namespace, name, _ := strings.Cut(name, "/")
		live := &hubv1.ClusterRegistration{}
		err := r.Live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, live)
		if client.IgnoreNotFound(err) != nil {
			return "", fmt.Errorf("read ClusterRegistration %s/%s: %w", namespace, name, err)
		}
		if err == nil && !status.Goes(live) && live.Status.ClusterID() == is {
			return fmt.Sprintf("ClusterRegistration %s/%s of the same cluster stays", namespace, name), nil
		}
	}
	return "", nil
}

// sameness says what shows that two registrations are of one cluster.
func sameness(s *hubv1.ClusterRegistrationStatus) string {
	if s.UsesWorkloadIdentity() {
		return "they name it alike in spec.kubeConfig.workloadIdentity"
	}
	return fmt.Sprintf("kube-system has UID %s", s.ClusterUID)
}

// tellDuplicates sends an event when a registration turns out to be one of several.
func (r *Reconciler) tellDuplicates(before, after *hubv1.ClusterRegistration) {
	if is := status.Find(after, hubv1.DuplicateCondition); is != nil && status.Find(before, hubv1.DuplicateCondition) == nil {
		r.Recorder.Eventf(after, nil, corev1.EventTypeWarning, hubv1.DuplicateCondition, "Probe", "%s", is.Message)
	}
}
