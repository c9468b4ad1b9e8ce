// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/internal/identity"
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

// dated notes since when a registration is of its cluster. before is the registration as it was read. A registration
// that was deleted and made again has left its Flux objects: it counts as of the cluster since the platform's sets
// began to deliver through it, so that one that came in between does not take precedence. In other namespaces
// somebody may have made such an object before there was any registration. What is being withdrawn does not count. Its
// users have unregistered the cluster, and registered it again before that was done. Another registration may have the
// add-ons by now, and if that one stood back, they would be uninstalled.
func (r *Reconciler) dated(ctx context.Context, before, reg *hubv1.ClusterRegistration) error {
	was, is := before.Status.ClusterID(), reg.Status.ClusterID()
	if is == "" {
		reg.Status.ClusterSince = nil
	}
	if is == "" || was == is {
		return nil
	}
	leaves, err := r.leavingOf(ctx, reg)
	if err != nil {
		return err
	}
	since, err := r.deliveredSince(ctx, reg, is, leaves)
	if err != nil {
		return err
	}
	if now := metav1.NewTime(r.Clock.Now()); since.IsZero() || now.Before(&since) {
		since = now
	}
	reg.Status.ClusterSince = &since
	return nil
}

// leavingOf returns the deliveries of a registration that are being withdrawn.
func (r *Reconciler) leavingOf(ctx context.Context, reg *hubv1.ClusterRegistration) (map[types.NamespacedName]bool, error) {
	deliveries, err := r.deliveriesOf(ctx, reg)
	out := map[types.NamespacedName]bool{}
	for i := range deliveries {
		if d := &deliveries[i]; d.Withdrawn() {
			out[client.ObjectKeyFromObject(d)] = true
		}
	}
	return out, err
}

// deliveredSince returns since when the platform's sets have delivered through a registration to a cluster, by the
// Flux objects that exist, but for those of some deliveries; zero if there are none. In other namespaces anybody may
// have made them.
func (r *Reconciler) deliveredSince(ctx context.Context, reg *hubv1.ClusterRegistration, cluster string,
	without map[types.NamespacedName]bool) (metav1.Time, error) {
	objects, err := index.FluxObjects(ctx, r.Client, identity.ClusterKey(r.Config.HubID, client.ObjectKeyFromObject(reg)))
	var since metav1.Time
	for _, obj := range objects {
		of := types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetAnnotations()[hubv1.DeliveryAnnotation]}
		made, stays := obj.GetCreationTimestamp(), obj.GetDeletionTimestamp() == nil && r.Config.IsPlatform(obj.GetNamespace()) && !without[of]
		if stays && obj.GetAnnotations()[hubv1.ClusterUIDAnnotation] == cluster && (since.IsZero() || made.Before(&since)) {
			since = made
		}
	}
	return since, err
}

// madeAgain returns the registrations that do not say yet of which cluster they are, and were made again: the platform's sets
// deliver to this one through them, or would if another registration were not served. If the cluster does not answer to
// them, that may last.
func (r *Reconciler) madeAgain(ctx context.Context, cluster string) ([]hubv1.ClusterRegistration, error) {
	if cluster == "" {
		return nil, nil
	}
	list := &hubv1.ClusterRegistrationList{}
	if err := r.Client.List(ctx, list, client.MatchingFields{index.ClusterID: ""}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("look for registrations that were made again: %w", err)
	}
	var out []hubv1.ClusterRegistration
	for i := range list.Items {
		reg := &list.Items[i]
		if since, err := r.deliveredSince(ctx, reg, cluster, nil); err != nil {
			return nil, err
		} else if !since.IsZero() {
			out = append(out, *reg)
			continue
		}
		if stoodBack, err := r.stoodBack(ctx, reg, cluster); err != nil {
			return nil, err
		} else if stoodBack {
			out = append(out, *reg)
		}
	}
	return out, nil
}

// stoodBack returns whether another registration of a cluster was served instead of one, by the deliveries of the platform's
// sets, which outlive it. Those in other namespaces anybody may have written.
func (r *Reconciler) stoodBack(ctx context.Context, reg *hubv1.ClusterRegistration, cluster string) (bool, error) {
	deliveries, err := r.deliveriesOf(ctx, reg)
	return slices.ContainsFunc(deliveries, func(d hubv1.AddonDelivery) bool {
		return r.Config.IsPlatform(d.Namespace) && d.Status.ClusterID == cluster
	}), err
}

// duplicates sets the condition that another registration of the same cluster is served instead of this one, and
// returns that registration; nil if this one is served.
func (r *Reconciler) duplicates(ctx context.Context, reg *hubv1.ClusterRegistration) (*hubv1.ClusterRegistration, error) {
	all, err := r.ofCluster(ctx, reg.Status.ClusterID())
	if err != nil {
		return nil, err
	}
	instead := precedence.Instead(reg, all, r.Config.IsPlatform)
	beside := precedence.Beside(reg, all, r.Config.IsPlatform)
	switch {
	case instead != nil:
		status.Set(reg, hubv1.DuplicateCondition, metav1.ConditionTrue, hubv1.SameClusterReason, standsBack(reg, instead), r.Clock.Now())
	case len(beside) > 0:
		status.Set(reg, hubv1.DuplicateCondition, metav1.ConditionTrue, hubv1.SameClusterReason, fmt.Sprintf(
			"this is the cluster of ClusterRegistration %s as well, or says so (%s). Their kubeconfigs have different CAs, or each "+
				"is in a tenant's namespace: sets deliver through all of them. If it is one cluster, remove all but one",
			status.List(beside, 3), sameness(&reg.Status)), r.Clock.Now())
	default:
		status.Clear(reg, hubv1.DuplicateCondition)
	}
	return instead, nil
}

// standsBack says why a registration is not served, and what to do. The registration that is served stays so while it
// does not answer: an expired kubeconfig must not change what is delivered to a cluster.
func standsBack(reg, instead *hubv1.ClusterRegistration) string {
	name := instead.Namespace + "/" + instead.Name
	if precedence.LedElsewhere(reg) {
		now := "spec.kubeConfig does not name it any more, and no cluster has answered to what is there instead"
		if kc := reg.Spec.KubeConfig; kc != nil && kc.SecretRef != nil {
			now = fmt.Sprintf("spec.kubeConfig names Secret %q, to which no cluster has answered yet", kc.SecretRef.Name)
		}
		return fmt.Sprintf("this was the cluster of ClusterRegistration %s as well (%s), by Secret %q. Now %s: until then that one is "+
			"served, and nothing is delivered through this one", name, sameness(&reg.Status), reg.Status.Credential.SecretName, now)
	}
	remedy := "Remove one of them, and the other is served"
	if status.Online(reg) && !status.Online(instead) {
		remedy = fmt.Sprintf("The cluster answers here, and not through %s: repair its kubeconfig, or remove it, and this one is served", name)
	}
	return fmt.Sprintf("this is the cluster of ClusterRegistration %s as well (%s): that one is served, and nothing is "+
		"delivered through this one. %s",
		name, sameness(&reg.Status), remedy)
}

// stayer says which other registration stays on the cluster of one that is going; "" if none does. It reads live: if
// two are going, neither may take over from the other because of a stale cache. Once it has been said, it is kept,
// since add-ons have been let go because of it.
func (r *Reconciler) stayer(ctx context.Context, reg *hubv1.ClusterRegistration) (string, error) {
	if c := status.Find(reg, hubv1.UnregisteringCondition); c != nil && c.Reason == hubv1.SameClusterReason {
		return c.Message, nil
	}
	clusters, err := r.clustersOf(ctx, reg)
	if err != nil {
		return "", err
	}
	for _, is := range clusters {
		if why, err := r.stayerOn(ctx, reg, is); err != nil || why != "" {
			return why, err
		}
	}
	return "", nil
}

// clustersOf returns the cluster of a registration. One that was made again, and has not answered since, is of those to which the
// platform's sets have delivered through it: the objects are still there.
func (r *Reconciler) clustersOf(ctx context.Context, reg *hubv1.ClusterRegistration) ([]string, error) {
	if is := reg.Status.ClusterID(); is != "" {
		return []string{is}, nil
	}
	objects, err := index.FluxObjects(ctx, r.Client, identity.ClusterKey(r.Config.HubID, client.ObjectKeyFromObject(reg)))
	var out []string
	for _, obj := range objects {
		is := obj.GetAnnotations()[hubv1.ClusterUIDAnnotation]
		if is != "" && r.Config.IsPlatform(obj.GetNamespace()) && !slices.Contains(out, is) {
			out = append(out, is)
		}
	}
	slices.Sort(out)
	return out, err
}

// stayerOn is stayer for one cluster.
func (r *Reconciler) stayerOn(ctx context.Context, reg *hubv1.ClusterRegistration, is string) (string, error) {
	all, err := r.ofCluster(ctx, is)
	if err != nil {
		return "", err
	}
	again, err := r.madeAgain(ctx, is)
	if err != nil {
		return "", err
	}
	for _, name := range precedence.Stayers(reg, append(all, again...), r.Config.IsPlatform) {
		namespace, name, _ := strings.Cut(name, "/")
		live := &hubv1.ClusterRegistration{}
		err := r.Live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, live)
		if client.IgnoreNotFound(err) != nil {
			return "", fmt.Errorf("read ClusterRegistration %s/%s: %w", namespace, name, err)
		}
		// One that says nothing was made again, and it was of this cluster before.
		if of := live.Status.ClusterID(); err == nil && !status.Goes(live) && (of == is || of == "") {
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
		r.Recorder.Eventf(after, nil, corev1.EventTypeWarning, hubv1.DuplicateEvent, "Probe", "%s", is.Message)
	}
}
