// SPDX-License-Identifier: Apache-2.0

package addonset

import (
	"context"
	"slices"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/enqueue"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/controllers/logkey"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/drain"
	"github.com/chandler-hub/chandler/internal/pin"
	"github.com/chandler-hub/chandler/internal/status"
)

// The set's status is counted over the whole fleet, so it is counted once for many events of its clusters: at most once in countDelay, and
// above 2,500 clusters at most once in perCluster for each of them, so that the share of a processor that this takes does not grow.
const (
	countDelay = time.Second
	perCluster = 400 * time.Microsecond
)

// delay returns for how long the events of a set's clusters are collected.
func (r *Reconciler) delay(ctx context.Context, req reconcile.Request) time.Duration {
	set := &hubv1.AddonSet{}
	if err := r.Client.Get(ctx, req.NamespacedName, set, client.UnsafeDisableDeepCopy); err != nil || set.Status.Clusters == nil {
		return countDelay
	}
	return max(countDelay, time.Duration(set.Status.Clusters.Matched)*perCluster)
}

// SetupWithManager starts both controllers.
func (r *Reconciler) SetupWithManager(mgr manager.Manager) error {
	r.changed = enqueue.NewFleetBell(enqueue.InReach(r.Client, r.Config))
	r.starts = enqueue.NewBell(enqueue.Itself)
	configMap := &corev1.ConfigMap{}
	err := ctrl.NewControllerManagedBy(mgr).Named("addonset").
		For(&hubv1.AddonSet{},
			builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, deletionChanged(), approvalChanged()))).
		Watches(&hubv1.AddonSet{}, handler.EnqueueRequestsFromMapFunc(r.dependentSets),
			builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&hubv1.AddonDelivery{}, r.setOfDelivery()).
		Watches(&hubv1.Team{}, handler.EnqueueRequestsFromMapFunc(enqueue.SetsOfTeam(r.Client)),
			builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, deletionChanged()))).
		Watches(&hubv1.ClusterRegistration{}, r.setsOfRegistration(),
			builder.WithPredicates(countsOtherwise())).
		Watches(&sourcev1.HelmChart{}, handler.EnqueueRequestsFromMapFunc(r.followersOf(sourcev1.HelmChartKind)),
			builder.WithPredicates(hasNews())).
		Watches(&sourcev1.GitRepository{}, handler.EnqueueRequestsFromMapFunc(r.followersOf(sourcev1.GitRepositoryKind)),
			builder.WithPredicates(hasNews())).
		Watches(&sourcev1.OCIRepository{}, handler.EnqueueRequestsFromMapFunc(r.followersOf(sourcev1.OCIRepositoryKind)),
			builder.WithPredicates(hasNews())).
		WatchesMetadata(configMap, handler.EnqueueRequestsFromMapFunc(r.documents.ReadersOf("ConfigMap")),
			builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		WatchesRawSource(r.Rejudged).
		WithOptions(enqueue.Options(r.Config.Concurrency)).
		WithLogConstructor(logkey.Of(mgr, "addonset", logkey.Set)).
		Complete(reconcile.Func(r.reconcileNamed))
	if err != nil {
		return err
	}
	m := &Matcher{Reconciler: r}
	return ctrl.NewControllerManagedBy(mgr).Named("matcher").
		For(&hubv1.ClusterRegistration{},
			builder.WithPredicates(predicate.Or(predicate.LabelChangedPredicate{}, deletionChanged(), unregisteringChanged(), drainRequested()))).
		Watches(&hubv1.AddonDelivery{}, handler.EnqueueRequestsFromMapFunc(enqueue.RegistrationOfDelivery),
			builder.WithPredicates(r.strangersAndDeletions())).
		WatchesRawSource(r.changed).
		WatchesRawSource(r.starts).
		WithOptions(enqueue.Options(r.Config.Concurrency)).
		WithLogConstructor(logkey.Of(mgr, "matcher", logkey.Cluster)).
		Complete(reconcile.AsReconciler(mgr.GetClient(), m))
}

// reconcileNamed reconciles a set, and forgets one that is gone. It is not always this process that has let it go: the one that led before
// may have, or a user has taken its finalizer off. The matcher would go on to deliver it.
func (r *Reconciler) reconcileNamed(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	set := &hubv1.AddonSet{}
	if err := r.Client.Get(ctx, req.NamespacedName, set); apierrors.IsNotFound(err) {
		r.forget(req.NamespacedName)
		return reconcile.Result{}, nil
	} else if err != nil {
		return reconcile.Result{}, err
	}
	return r.Reconcile(ctx, set)
}

// Readers returns how many times it is noted that a set reads a document.
func (r *Reconciler) Readers() int { return r.documents.Notes() }

// followersOf returns a map function from a source of a kind to the sets that follow it.
func (r *Reconciler) followersOf(kind string) handler.MapFunc {
	return func(ctx context.Context, obj client.Object) []reconcile.Request {
		sets := &hubv1.AddonSetList{}
		if err := r.Client.List(ctx, sets, client.MatchingFields{index.Uses: index.Source(kind, obj.GetNamespace(), obj.GetName())},
			client.UnsafeDisableDeepCopy); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "list the sets that follow a source", "source", client.ObjectKeyFromObject(obj).String())
		}
		out := make([]reconcile.Request, len(sets.Items))
		for i := range sets.Items {
			out[i].NamespacedName = client.ObjectKeyFromObject(&sets.Items[i])
		}
		return out
	}
}

// hasNews lets through a source that has something else than before, begins or ceases to fail, or has gone. Why it fails counts as long as
// it has nothing: each try of Flux may have another text.
func hasNews() predicate.Predicate {
	revision := func(o pin.Source) string {
		if a := o.GetArtifact(); a != nil {
			return a.Revision
		}
		return ""
	}
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		a, b := e.ObjectOld.(pin.Source), e.ObjectNew.(pin.Source)
		before, now := pin.Failure(a), pin.Failure(b)
		return revision(a) != revision(b) || (before == "") != (now == "") || revision(b) == "" && before != now
	}}
}

func deletionChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero() ||
			len(e.ObjectOld.GetFinalizers()) != len(e.ObjectNew.GetFinalizers())
	}}
}

// approvalChanged lets through what people ask of a set by its annotations.
func approvalChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return slices.ContainsFunc(orders, func(of string) bool { return e.ObjectOld.GetAnnotations()[of] != e.ObjectNew.GetAnnotations()[of] })
	}}
}

// orders are the annotations of a set that its controller reads.
var orders = []string{hubv1.ApproveRemovalAnnotation, hubv1.ApproveAnnotation, hubv1.ExpediteAnnotation, hubv1.RetryAnnotation,
	hubv1.UndoAnnotation}

func unregisteringChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		a, b := e.ObjectOld.(*hubv1.ClusterRegistration), e.ObjectNew.(*hubv1.ClusterRegistration)
		return status.Reason(a, hubv1.UnregisteringCondition) != status.Reason(b, hubv1.UnregisteringCondition) ||
			status.Goes(a) != status.Goes(b)
	}}
}

// drainRequested lets through that a drain begins, or is cancelled.
func drainRequested() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return drain.Requested(e.ObjectOld.(*hubv1.ClusterRegistration)) != drain.Requested(e.ObjectNew.(*hubv1.ClusterRegistration))
	}}
}

// strangersAndDeletions lets through deliveries that the matcher may have to write. One that was deleted may have to
// be made again. One that no set has claimed, for example from a backup, has to be claimed. One with other content
// than its set's has to be updated: a hub wrote it that did not know yet that another one leads.
func (r *Reconciler) strangersAndDeletions() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return r.registry.strange(e.Object.(*hubv1.AddonDelivery)) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() && r.registry.strange(e.ObjectNew.(*hubv1.AddonDelivery))
		},
	}
}

// countsOtherwise lets through what a set counts of a cluster. No set selects one that is being drained.
func countsOtherwise() predicate.Predicate {
	return predicate.Or(reachableOrLabels(), deletionChanged(), unregisteringChanged(), drainRequested())
}

// reachableOrLabels lets through what changes a set's counts, whether it selects the cluster, or whether a cluster that has nothing
// of it yet takes part in its rollout.
func reachableOrLabels() predicate.Predicate {
	return predicate.Or(predicate.LabelChangedPredicate{}, predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		a, b := e.ObjectOld.(*hubv1.ClusterRegistration), e.ObjectNew.(*hubv1.ClusterRegistration)
		return status.Online(a) != status.Online(b) || status.Reason(a, hubv1.SuspendedCondition) != status.Reason(b, hubv1.SuspendedCondition)
	}})
}

// dependentSets returns the sets of the same namespace that name another set: whether they compile depends on it.
func (r *Reconciler) dependentSets(ctx context.Context, obj client.Object) []reconcile.Request {
	sets := &hubv1.AddonSetList{}
	if err := r.Client.List(ctx, sets, client.InNamespace(obj.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list sets", logkey.Set, client.ObjectKeyFromObject(obj).String())
	}
	var out []reconcile.Request
	for i := range sets.Items {
		s := &sets.Items[i]
		if names := compile.SetsNamed(&s.Spec); s.Name != obj.GetName() && len(names) > 0 {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(s)})
		}
	}
	return out
}

func (r *Reconciler) setOfDelivery() handler.EventHandler {
	return enqueue.LaterBy(r.delay, func(_ context.Context, obj client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(),
			Name: obj.(*hubv1.AddonDelivery).Spec.AddonSetRef.Name}}}
	})
}

// setsOfRegistration enqueues the sets that an event of a registration concerns.
func (r *Reconciler) setsOfRegistration() handler.EventHandler {
	return enqueue.LaterBy(r.delay, r.setsCounting)
}

// setsCounting returns the sets that deliver to a cluster, those that wait for it without a delivery, and those without any cluster, which
// say why.
func (r *Reconciler) setsCounting(ctx context.Context, obj client.Object) []reconcile.Request {
	deliveries := &hubv1.AddonDeliveryList{}
	if err := r.Client.List(ctx, deliveries, index.DeliveriesOf(client.ObjectKeyFromObject(obj)), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list deliveries", logkey.Cluster, client.ObjectKeyFromObject(obj).String())
	}
	var out []reconcile.Request
	for i := range deliveries.Items {
		d := &deliveries.Items[i]
		out = append(out, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: d.Namespace, Name: d.Spec.AddonSetRef.Name}})
	}
	sets := &hubv1.AddonSetList{}
	if err := r.Client.List(ctx, sets, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list sets", logkey.Cluster, client.ObjectKeyFromObject(obj).String())
	}
	for i := range sets.Items {
		if c := sets.Items[i].Status.Clusters; c == nil || c.Matched == 0 {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&sets.Items[i])})
		}
	}
	for _, set := range r.registry.waitFor(obj.(*hubv1.ClusterRegistration)) {
		out = append(out, reconcile.Request{NamespacedName: set})
	}
	return out
}
