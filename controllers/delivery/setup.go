// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"maps"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/enqueue"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/internal/fluxstate"
	"github.com/chandler-hub/chandler/internal/status"
)

// SetupWithManager starts the room. Every event is turned into the registration that it concerns.
func (r *Reconciler) SetupWithManager(mgr manager.Manager) error {
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	ofAnnotation := handler.EnqueueRequestsFromMapFunc(registrationOfObject)
	return ctrl.NewControllerManagedBy(mgr).Named("delivery").
		Watches(&hubv1.AddonDelivery{}, handler.EnqueueRequestsFromMapFunc(enqueue.RegistrationOfDelivery), builder.WithPredicates(deliveryChanges())).
		Watches(&hubv1.ClusterRegistration{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(registrationChanges())).
		Watches(&hubv1.AddonSet{}, handler.EnqueueRequestsFromMapFunc(r.clustersOfSet), builder.WithPredicates(setChanges())).
		Watches(&appsv1.ControllerRevision{}, handler.EnqueueRequestsFromMapFunc(r.clustersOfRevision), builder.WithPredicates(onlyCreations())).
		Watches(&helmv2.HelmRelease{}, ofAnnotation, builder.WithPredicates(fluxChanges())).
		Watches(&kustomizev1.Kustomization{}, ofAnnotation, builder.WithPredicates(fluxChanges())).
		WatchesMetadata(secret, ofAnnotation, builder.WithPredicates(mirrorChanges())).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Config.Concurrency}).
		Complete(r)
}

func deliveryChanges() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero()
	}})
}

// registrationChanges: what decides whether and how objects are written. The counts that change all the time do not.
func registrationChanges() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		a, b := e.ObjectOld.(*hubv1.ClusterRegistration), e.ObjectNew.(*hubv1.ClusterRegistration)
		ua, ub := status.Find(a, hubv1.UnregisteringCondition), status.Find(b, hubv1.UnregisteringCondition)
		return a.DeletionTimestamp.IsZero() != b.DeletionTimestamp.IsZero() ||
			status.IsTrue(a, hubv1.ReachableCondition) != status.IsTrue(b, hubv1.ReachableCondition) ||
			a.Status.ClusterUID != b.Status.ClusterUID ||
			fingerprint(a) != fingerprint(b) ||
			(ua == nil) != (ub == nil) || ua != nil && ua.Reason != ub.Reason
	}})
}

func fingerprint(reg *hubv1.ClusterRegistration) string {
	if reg.Status.Credential == nil {
		return ""
	}
	return reg.Status.Credential.Fingerprint
}

// setChanges: what a delivery reads of its set beside the revision.
func setChanges() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		a, b := e.ObjectOld.(*hubv1.AddonSet), e.ObjectNew.(*hubv1.AddonSet)
		return a.Spec.Priority != b.Spec.Priority || a.Spec.DeletionPolicy != b.Spec.DeletionPolicy
	}}
}

func onlyCreations() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(event.UpdateEvent) bool { return false },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// fluxChanges leaves out Flux's many status writes that change nothing of substance. It asks the very function that the
// report asks, so that the two cannot disagree.
func fluxChanges() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return fluxstate.Of(e.ObjectOld) != fluxstate.Of(e.ObjectNew) ||
			!maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) ||
			e.ObjectOld.GetAnnotations()[hubv1.HashAnnotation] != e.ObjectNew.GetAnnotations()[hubv1.HashAnnotation]
	}}
}

// mirrorChanges leaves out all Secrets on the hub but the mirrors.
func mirrorChanges() predicate.Predicate {
	mirror := predicate.NewPredicateFuncs(func(obj client.Object) bool { _, ok := obj.GetLabels()[hubv1.MirrorLabel]; return ok })
	return predicate.And(mirror, predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return !equality.Semantic.DeepEqual(e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations())
	}})
}

func registrationOfObject(_ context.Context, obj client.Object) []reconcile.Request {
	k, ok := index.Registration(obj.GetAnnotations()[hubv1.RegistrationAnnotation])
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: k}}
}

func (r *Reconciler) clustersOfSet(ctx context.Context, obj client.Object) []reconcile.Request {
	return r.clusters(ctx, obj.GetNamespace(), obj.GetName(), "")
}

func (r *Reconciler) clustersOfRevision(ctx context.Context, obj client.Object) []reconcile.Request {
	for _, o := range obj.GetOwnerReferences() {
		if o.Kind == "AddonSet" {
			return r.clusters(ctx, obj.GetNamespace(), o.Name, obj.GetName())
		}
	}
	return nil
}

// clusters returns the clusters that a set delivers to; with a revision, only those that have it.
func (r *Reconciler) clusters(ctx context.Context, namespace, set, revision string) []reconcile.Request {
	list := &hubv1.AddonDeliveryList{}
	err := r.Client.List(ctx, list, client.InNamespace(namespace), client.MatchingFields{index.DeliverySet: set}, client.UnsafeDisableDeepCopy)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list deliveries")
	}
	var out []reconcile.Request
	for i := range list.Items {
		if revision == "" || list.Items[i].Spec.RevisionName == revision {
			out = append(out, enqueue.RegistrationOfDelivery(ctx, &list.Items[i])...)
		}
	}
	return out
}
