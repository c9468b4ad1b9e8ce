// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"errors"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"golang.org/x/time/rate"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/delivery/observed"
	"github.com/chandler-hub/chandler/controllers/enqueue"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/controllers/logkey"
	"github.com/chandler-hub/chandler/internal/assembly"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/origin"
	"github.com/chandler-hub/chandler/internal/status"
)

// SetupWithManager starts the controller. Every event is turned into the registration that it concerns.
func (r *Reconciler) SetupWithManager(mgr manager.Manager) error {
	r.resumes = rate.NewLimiter(resumedPerSecond, resumedAtOnce)
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	configMap := &metav1.PartialObjectMetadata{}
	configMap.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	ofAnnotation := handler.EnqueueRequestsFromMapFunc(enqueue.RegistrationOfObject)
	ofFlux := observed.FluxChanges(enqueue.UrgentFirst(enqueue.RegistrationOfObject, enqueue.Stays), &r.sightings, &r.ledger)
	changed := builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})
	c, err := ctrl.NewControllerManagedBy(mgr).Named("delivery").
		Watches(&hubv1.AddonDelivery{}, enqueue.UrgentFirst(enqueue.RegistrationOfDelivery, enqueue.SettledDelivery),
			builder.WithPredicates(enqueue.Changes())).
		Watches(&hubv1.ClusterRegistration{}, enqueue.UrgentFirst(enqueue.Itself, enqueue.SettledRegistration),
			builder.WithPredicates(registrationChanges())).
		Watches(&hubv1.AddonSet{}, r.ofSet(), builder.WithPredicates(setChanges())).
		Watches(&hubv1.Team{}, enqueue.ClustersOfTeam(r.Client),
			builder.WithPredicates(enqueue.Changes())).
		Watches(&appsv1.ControllerRevision{}, handler.EnqueueRequestsFromMapFunc(r.clustersOfRevision),
			builder.WithPredicates(comesOrChangesHands())).
		Watches(&helmv2.HelmRelease{}, ofFlux).
		Watches(&kustomizev1.Kustomization{}, ofFlux).
		Watches(&helmv2.HelmRelease{}, handler.EnqueueRequestsFromMapFunc(r.clusterOfForeign), builder.WithPredicates(foreignChanges())).
		Watches(&sourcev1.HelmChart{}, handler.EnqueueRequestsFromMapFunc(r.userOf(sourcev1.HelmChartKind)),
			builder.WithPredicates(deletionsAndEdits())).
		Watches(&sourcev1.HelmRepository{}, handler.EnqueueRequestsFromMapFunc(r.userOf(sourcev1.HelmRepositoryKind)),
			builder.WithPredicates(deletionsAndEdits())).
		Watches(&sourcev1.GitRepository{}, handler.EnqueueRequestsFromMapFunc(r.userOf(sourcev1.GitRepositoryKind)),
			builder.WithPredicates(deletionsAndEdits())).
		Watches(&sourcev1.OCIRepository{}, handler.EnqueueRequestsFromMapFunc(r.userOf(sourcev1.OCIRepositoryKind)),
			builder.WithPredicates(deletionsAndEdits())).
		Watches(&sourcev1.Bucket{}, handler.EnqueueRequestsFromMapFunc(r.userOf(sourcev1.BucketKind)),
			builder.WithPredicates(deletionsAndEdits())).
		WatchesMetadata(secret, ofAnnotation, builder.WithPredicates(copyChanges())).
		WatchesMetadata(configMap, ofAnnotation, builder.WithPredicates(copyChanges())).
		WatchesMetadata(secret, handler.EnqueueRequestsFromMapFunc(r.documents.ReadersOf("Secret")), changed).
		WatchesMetadata(secret, handler.EnqueueRequestsFromMapFunc(r.ofOrigin(origin.Secret)), changed).
		WatchesMetadata(configMap, handler.EnqueueRequestsFromMapFunc(r.documents.ReadersOf("ConfigMap")), changed).
		WatchesRawSource(r.Rejudged).
		WithOptions(enqueue.Options(r.Config.Concurrency)).
		WithLogConstructor(logkey.Of(mgr, "delivery", logkey.Cluster)).
		Build(r)
	if err != nil {
		return err
	}
	r.Origins.OnInstalled(func(kind origin.Kind, example client.Object) error {
		return c.Watch(source.Kind(mgr.GetCache(), example, handler.EnqueueRequestsFromMapFunc(r.ofOrigin(kind)),
			predicate.ResourceVersionChangedPredicate{}))
	})
	r.Origins.OnChange(r.servedOrNot)
	return nil
}

// servedOrNot requeues the clusters of a kind of origin that can be read again, or cannot be read any more. No event of an origin says so.
func (r *Reconciler) servedOrNot(ctx context.Context, kind origin.Kind) {
	list := &hubv1.ClusterRegistrationList{}
	if err := r.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list the registrations")
	}
	for i := range list.Items {
		reg := &list.Items[i]
		if ref := reg.Spec.OriginRef; ref != nil && ref.APIGroup == kind.Group && ref.Kind == kind.Kind {
			r.Rejudged.Enqueue(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(reg)})
		}
	}
}

// registrationChanges lets through what decides whether and how objects are written, and what expressions see, but
// not the counts that change all the time.
func registrationChanges() predicate.Predicate {
	inStatus := predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		a, b := e.ObjectOld.(*hubv1.ClusterRegistration), e.ObjectNew.(*hubv1.ClusterRegistration)
		return a.DeletionTimestamp.IsZero() != b.DeletionTimestamp.IsZero() ||
			status.Online(a) != status.Online(b) ||
			a.Status.ClusterID() != b.Status.ClusterID() ||
			credentialOf(a) != credentialOf(b) ||
			status.IsTrue(a, hubv1.KubeConfigValidCondition) != status.IsTrue(b, hubv1.KubeConfigValidCondition) ||
			a.Status.UsesWorkloadIdentity() != b.Status.UsesWorkloadIdentity() ||
			status.Reason(a, hubv1.SuspendedCondition) != status.Reason(b, hubv1.SuspendedCondition) ||
			a.Status.Provider != b.Status.Provider || a.Status.KubernetesVersion != b.Status.KubernetesVersion ||
			a.Status.Endpoint != b.Status.Endpoint ||
			!equality.Semantic.DeepEqual(a.Status.Nodes, b.Status.Nodes) ||
			!equality.Semantic.DeepEqual(a.Status.DuplicateOf, b.Status.DuplicateOf) ||
			status.Goes(a) != status.Goes(b) ||
			status.Reason(a, hubv1.UnregisteringCondition) != status.Reason(b, hubv1.UnregisteringCondition)
	}}
	return predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{},
		inStatus)
}

func credentialOf(reg *hubv1.ClusterRegistration) string {
	if reg.Status.Credential == nil {
		return ""
	}
	return reg.Status.Credential.Fingerprint
}

// setChanges lets through what a delivery reads of its set, except for the revision. A delivery that a user has deleted stays while its
// set is Stalled, and goes when the set is mended, to be made again.
func setChanges() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		a, b := e.ObjectOld.(*hubv1.AddonSet), e.ObjectNew.(*hubv1.AddonSet)
		return a.Spec.SelectAll != b.Spec.SelectAll || !equality.Semantic.DeepEqual(a.Spec.ClusterSelector, b.Spec.ClusterSelector) ||
			status.IsTrue(a, hubv1.StalledCondition) && !status.IsTrue(b, hubv1.StalledCondition) ||
			!equality.Semantic.DeepEqual(compile.MetadataOf(&a.Spec), compile.MetadataOf(&b.Spec)) ||
			a.Spec.Priority != b.Spec.Priority || a.Spec.DeletionPolicy != b.Spec.DeletionPolicy ||
			!equality.Semantic.DeepEqual(a.Spec.RemovalGuard, b.Spec.RemovalGuard) ||
			(a.Status.HeldRemovals == nil) != (b.Status.HeldRemovals == nil) ||
			b.Status.HeldRemovals != nil && a.DeletionTimestamp.IsZero() != b.DeletionTimestamp.IsZero()
	}}
}

// deletionsAndEdits lets through that an object goes, or that its spec changes.
func deletionsAndEdits() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool { return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() },
	}
}

// foreignChanges lets through that a HelmRelease comes or goes, or is edited: it may be of another release or cluster then, or become the
// hub's. What Flux reports on it is left out.
func foreignChanges() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return (e.ObjectOld.GetLabels()[hubv1.ClusterKeyLabel] == "") != (e.ObjectNew.GetLabels()[hubv1.ClusterKeyLabel] == "")
	}})
}

// clusterOfForeign returns the cluster of a HelmRelease that a user wrote: an add-on may collide with it,
// or be free again.
func (r *Reconciler) clusterOfForeign(ctx context.Context, obj client.Object) []reconcile.Request {
	if obj.GetLabels()[hubv1.ClusterKeyLabel] != "" {
		return nil
	}
	ref := assembly.LoginOf(obj)
	if ref == nil {
		return nil
	}
	return enqueue.Registrations(ctx, r.Client, client.InNamespace(obj.GetNamespace()),
		client.MatchingFields{index.RegistrationSecret: ref.Name})
}

// userOf returns a function that finds one cluster that uses a shared object. One is enough to make the object again,
// if it can. If it cannot, Flux reports that on its objects, which wakes the clusters that can.
func (r *Reconciler) userOf(kind string) handler.MapFunc {
	return func(ctx context.Context, obj client.Object) []reconcile.Request {
		r.Shared.Gone(kind, client.ObjectKeyFromObject(obj)) // or edited: nothing is known of it
		uses := client.MatchingFields{index.Uses: index.Source(kind, obj.GetNamespace(), obj.GetName())}
		releases := &helmv2.HelmReleaseList{}
		kustomizations := &kustomizev1.KustomizationList{}
		charts := &sourcev1.HelmChartList{}
		err := errors.Join(
			r.Client.List(ctx, releases, uses, client.UnsafeDisableDeepCopy, client.Limit(1)),
			r.Client.List(ctx, kustomizations, uses, client.UnsafeDisableDeepCopy, client.Limit(1)),
			r.Client.List(ctx, charts, uses, client.UnsafeDisableDeepCopy, client.Limit(1)),
		)
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "list the users of a shared object", logkey.Object, kind+" "+client.ObjectKeyFromObject(obj).String())
		}
		var out []reconcile.Request
		for i := range releases.Items {
			out = append(out, r.rendersAgain(ctx, &releases.Items[i])...)
		}
		for i := range kustomizations.Items {
			out = append(out, r.rendersAgain(ctx, &kustomizations.Items[i])...)
		}
		for i := range charts.Items {
			out = append(out, r.userOf(sourcev1.HelmChartKind)(ctx, &charts.Items[i])...)
		}
		return out
	}
}

// rendersAgain returns the cluster of a Flux object, for which what the object's namespace delivers is rendered again. What others
// deliver there is not: the object may be of any user, and name any cluster.
func (r *Reconciler) rendersAgain(ctx context.Context, obj client.Object) []reconcile.Request {
	out := enqueue.RegistrationOfObject(ctx, obj)
	for _, req := range out {
		r.memory.ForgetFrom(obj.GetNamespace(), req.NamespacedName)
	}
	return out
}

func (r *Reconciler) ofOrigin(kind origin.Kind) handler.MapFunc {
	return func(ctx context.Context, obj client.Object) []reconcile.Request {
		return enqueue.Registrations(ctx, r.Client, client.InNamespace(obj.GetNamespace()),
			client.MatchingFields{index.RegistrationOrigin: index.Origin(kind.Reference(obj.GetName()))})
	}
}

// comesOrChangesHands lets through that a revision was created, or belongs to another set than before.
func comesOrChangesHands() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			return !equality.Semantic.DeepEqual(e.ObjectOld.GetOwnerReferences(), e.ObjectNew.GetOwnerReferences())
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// copyChanges leaves out all Secrets and ConfigMaps on the hub except the hub's copies. A kubeconfig copy that a user deletes
// is released at once if no Flux object needs it, and no other event says so.
func copyChanges() predicate.Predicate {
	copied := predicate.NewPredicateFuncs(func(obj client.Object) bool { _, ok := obj.GetLabels()[hubv1.CopyLabel]; return ok })
	return predicate.And(copied, predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return !equality.Semantic.DeepEqual(e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations()) ||
			e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero()
	}})
}

// ofSet enqueues all clusters that a set delivers to, after what concerns one of them.
func (r *Reconciler) ofSet() handler.EventHandler {
	return enqueue.LaterForAll(0, r.clustersOfSet)
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
		ctrl.LoggerFrom(ctx).Error(err, "list deliveries", logkey.Set, namespace+"/"+set)
	}
	var out []reconcile.Request
	for i := range list.Items {
		if revision == "" || list.Items[i].Spec.RevisionName == revision {
			out = append(out, enqueue.RegistrationOfDelivery(ctx, &list.Items[i])...)
		}
	}
	return out
}
