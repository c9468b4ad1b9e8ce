// SPDX-License-Identifier: Apache-2.0

package sharedobjects

import (
	"context"
	"maps"
	"slices"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
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
)

// SetupWithManager starts one controller for each kind.
func (k *Keeper) SetupWithManager(mgr manager.Manager) error {
	kinds := objects()
	for _, kind := range slices.Sorted(maps.Keys(kinds)) { // in one order, for the simulation, which runs the controllers one by one
		obj := kinds[kind]
		to := handler.EnqueueRequestsFromMapFunc(usesOf(kind))
		name := "shared-" + strings.ToLower(kind)
		b := ctrl.NewControllerManagedBy(mgr).Named(name).
			WithLogConstructor(logkey.OfAny(mgr, name, logkey.Object, func(req reconcile.Request) string { return kind + " " + req.String() })).
			Watches(obj, k.itself(kind), builder.WithPredicates(enqueue.Deletion())).
			Watches(&helmv2.HelmRelease{}, to, builder.WithPredicates(usesChanged())).
			Watches(&hubv1.AddonSet{}, to, builder.WithPredicates(usesChanged())).
			WithOptions(enqueue.Options(1))
		if kind != sourcev1.HelmChartKind {
			b = b.Watches(&kustomizev1.Kustomization{}, to, builder.WithPredicates(usesChanged())).
				Watches(&sourcev1.HelmChart{}, to, builder.WithPredicates(usesChanged()))
		}
		err := b.Complete(reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
			return k.reconcile(ctx, id{kind, req.NamespacedName})
		}))
		if err != nil {
			return err
		}
	}
	return nil
}

// itself enqueues an object itself, and forgets what is known of one that is deleted. A placeholder ServiceAccount is left out, which only
// goes when the hub lets it.
func (k *Keeper) itself(kind string) handler.EventHandler {
	plain := &handler.EnqueueRequestForObject{}
	return handler.Funcs{
		CreateFunc: plain.Create,
		UpdateFunc: plain.Update,
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			if kind != index.ServiceAccount && k.ours(e.Object) {
				k.Gone(kind, client.ObjectKeyFromObject(e.Object))
			}
			plain.Delete(ctx, e, q)
		},
	}
}

// usesChanged lets through an object that goes, or that refers to another source: it may have been the last user of
// one.
func usesChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return strings.Join(index.UsesOf(e.ObjectOld), ",") != strings.Join(index.UsesOf(e.ObjectNew), ",")
		},
	}
}

// usesOf returns a map function to the objects of a kind that an object refers to.
func usesOf(kind string) handler.MapFunc {
	return func(_ context.Context, obj client.Object) []reconcile.Request {
		var out []reconcile.Request
		for _, use := range index.UsesOf(obj) {
			if key, ok := parse(use); ok && key.kind == kind {
				out = append(out, reconcile.Request{NamespacedName: key.NamespacedName})
			}
		}
		return out
	}
}

// parse reads what index.Source wrote.
func parse(use string) (id, bool) {
	parts := strings.Split(use, "/")
	if len(parts) != 3 {
		return id{}, false
	}
	return id{parts[0], types.NamespacedName{Namespace: parts[1], Name: parts[2]}}, true
}
