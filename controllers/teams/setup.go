// SPDX-License-Identifier: Apache-2.0

package teams

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
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
	"github.com/chandler-hub/chandler/controllers/logkey"
	"github.com/chandler-hub/chandler/internal/team"
)

// SetupWithManager starts the controller.
func (r *Reconciler) SetupWithManager(mgr manager.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("team").
		For(&hubv1.Team{}, builder.WithPredicates(enqueue.Changes())).
		Watches(&hubv1.Team{}, handler.EnqueueRequestsFromMapFunc(r.all), builder.WithPredicates(enqueue.Changes())). // rivals
		Watches(&hubv1.ClusterRegistration{}, handler.EnqueueRequestsFromMapFunc(r.all),
			builder.WithPredicates(predicate.LabelChangedPredicate{})). // which two Teams may select
		Watches(&hubv1.AddonSet{}, handler.EnqueueRequestsFromMapFunc(ofSet), builder.WithPredicates(setChanges())).
		WithOptions(enqueue.Options(1)).
		WithLogConstructor(logkey.Of(mgr, "team", logkey.Team)).
		Complete(reconcile.AsReconciler(mgr.GetClient(), r))
}

// setChanges lets through what a Team reports of its AddonSet, edits by other writers, and that the label comes or goes by which it is the
// Team's.
func setChanges() predicate.Predicate {
	return predicate.Or(enqueue.Changes(), predicate.LabelChangedPredicate{}, predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		a, b := e.ObjectOld.(*hubv1.AddonSet), e.ObjectNew.(*hubv1.AddonSet)
		return !equality.Semantic.DeepEqual(a.Status.Conditions, b.Status.Conditions) ||
			!equality.Semantic.DeepEqual(a.Status.Clusters, b.Status.Clusters)
	}})
}

// ofSet returns the Team whose AddonSet has the name of one, also if the Team has not made that: then the Team waits.
func ofSet(_ context.Context, obj client.Object) []reconcile.Request {
	name, ok := team.OfSet(obj.GetName())
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(), Name: name}}}
}

func (r *Reconciler) all(ctx context.Context, _ client.Object) []reconcile.Request {
	list := &hubv1.TeamList{}
	if err := r.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list the Teams")
		return nil
	}
	out := make([]reconcile.Request, len(list.Items))
	for i := range list.Items {
		out[i].NamespacedName = client.ObjectKeyFromObject(&list.Items[i])
	}
	return out
}
