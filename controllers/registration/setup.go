// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"slices"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	"github.com/chandler-hub/chandler/controllers/enqueue"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/controllers/logkey"
	"github.com/chandler-hub/chandler/controllers/originreader"
	"github.com/chandler-hub/chandler/internal/drain"
	"github.com/chandler-hub/chandler/internal/origin"
	"github.com/chandler-hub/chandler/internal/rollout"
	"github.com/chandler-hub/chandler/internal/status"
)

// countDelay collects the changes of a cluster's deliveries: while ten add-ons become Ready, the counts are written a
// few times, and not ten times.
const countDelay = 500 * time.Millisecond

// SetupWithManager starts the controller.
func (r *Reconciler) SetupWithManager(mgr manager.Manager) error {
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	news := enqueue.NewBell(enqueue.Itself)
	c, err := ctrl.NewControllerManagedBy(mgr).Named("registration").
		For(&hubv1.ClusterRegistration{}, builder.WithPredicates(specOrLabels())).
		Watches(&hubv1.ClusterRegistration{}, handler.EnqueueRequestsFromMapFunc(enqueue.SameCluster(r.Client)),
			builder.WithPredicates(predicate.Or(enqueue.ComesOrGoes(), answers()))).
		WatchesMetadata(secret, handler.EnqueueRequestsFromMapFunc(r.usersOfSecret),
			builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		WatchesMetadata(originreader.Namespace(), handler.EnqueueRequestsFromMapFunc(r.inNamespace),
			builder.WithPredicates(originreader.AllowsSecrets())).
		Watches(&helmv2.HelmRelease{}, enqueue.Later(countDelay, enqueue.RegistrationOfObject), builder.WithPredicates(evidenceChanges())).
		Watches(&kustomizev1.Kustomization{}, enqueue.Later(countDelay, enqueue.RegistrationOfObject), builder.WithPredicates(evidenceChanges())).
		Watches(&hubv1.AddonDelivery{}, enqueue.Later(countDelay, r.countedBy), builder.WithPredicates(deliveryCounts())).
		Watches(&hubv1.Team{}, enqueue.LaterForAll(countDelay, enqueue.Everywhere(r.Client)),
			builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&hubv1.AddonSet{}, enqueue.LaterForAll(countDelay, enqueue.InReach(r.Client, r.Config)), builder.WithPredicates(setChanges())).
		WatchesRawSource(news).
		WithOptions(enqueue.Options(r.Config.Concurrency)).
		WithLogConstructor(logkey.Of(mgr, "registration", logkey.Cluster)).
		Build(reconcile.Func(r.reconcileNamed))
	if err != nil {
		return err
	}
	r.Origins.OnInstalled(func(kind origin.Kind, example client.Object) error {
		return c.Watch(source.Kind(mgr.GetCache(), example, handler.EnqueueRequestsFromMapFunc(r.ofOrigin(kind))))
	})
	r.Origins.OnChange(func(ctx context.Context, kind origin.Kind) { r.wake(ctx, kind, news) })
	if err := mgr.Add(r.Pool); err != nil {
		return err
	}
	if err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error { return r.watchFlux(ctx, news) })); err != nil {
		return err
	}
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case key, ok := <-r.Pool.Events():
				if !ok {
					return nil
				}
				reg := &hubv1.ClusterRegistration{}
				name := registrationOf(key)
				reg.Namespace, reg.Name = name.Namespace, name.Name
				news.Ring(ctx, reg)
			}
		}
	}))
}

// reconcileNamed reconciles a registration, and forgets one that is gone. It is not always this controller that has let it go: a user may
// have taken its finalizer off. The hub would go on to log in to its cluster.
func (r *Reconciler) reconcileNamed(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	reg := &hubv1.ClusterRegistration{}
	if err := r.Client.Get(ctx, req.NamespacedName, reg); apierrors.IsNotFound(err) {
		r.forget(req.NamespacedName)
		return reconcile.Result{}, nil
	} else if err != nil {
		return reconcile.Result{}, err
	}
	return r.Reconcile(ctx, reg)
}

// wake requeues the registrations of a kind of origin: what they say about it has changed.
func (r *Reconciler) wake(ctx context.Context, kind origin.Kind, news *enqueue.Bell) {
	regs := &hubv1.ClusterRegistrationList{}
	if err := r.Client.List(ctx, regs, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list the registrations")
	}
	for i := range regs.Items {
		reg := &regs.Items[i]
		if reg.Spec.OriginRef == nil || reg.Spec.OriginRef.APIGroup != kind.Group || reg.Spec.OriginRef.Kind != kind.Kind {
			continue
		}
		news.Ring(ctx, reg)
	}
}

// answers lets through a registration whose cluster begins or stops to answer: other registrations of the cluster
// report it.
func answers() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return status.Online(e.ObjectOld.(*hubv1.ClusterRegistration)) != status.Online(e.ObjectNew.(*hubv1.ClusterRegistration))
		},
	}
}

// specOrLabels leaves out the hub's own status writes.
func specOrLabels() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}, predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			return forced(e.ObjectOld) != forced(e.ObjectNew) ||
				e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero() ||
				len(e.ObjectOld.GetFinalizers()) != len(e.ObjectNew.GetFinalizers())
		},
	})
}

// deliveryCounts lets through what a registration's status says of its deliveries.
func deliveryCounts() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		a, b := e.ObjectOld.(*hubv1.AddonDelivery), e.ObjectNew.(*hubv1.AddonDelivery)
		return a.DeletionTimestamp.IsZero() != b.DeletionTimestamp.IsZero() ||
			!equality.Semantic.DeepEqual(a.Status.AddonCounts, b.Status.AddonCounts) ||
			readiness(a) != readiness(b) || !slices.Equal(orphaned(a), orphaned(b)) || refusedIn(a) != refusedIn(b) || heldIn(a) != heldIn(b)
	}}
}

// readiness returns what a delivery says of itself.
func readiness(d *hubv1.AddonDelivery) [3]string {
	c := status.Find(d, hubv1.ReadyCondition)
	if c == nil {
		return [3]string{}
	}
	return [3]string{string(c.Status), c.Reason, c.Message}
}

// heldIn returns what a delivery says that the removal guard of its set holds here.
func heldIn(d *hubv1.AddonDelivery) string {
	if c := status.Find(d, hubv1.RemovalsHeldCondition); c != nil {
		return c.Message
	}
	return ""
}

// refusedIn returns what a delivery says that the hub ignores of what the cluster's owner wrote.
func refusedIn(d *hubv1.AddonDelivery) string {
	if c := status.Find(d, hubv1.OverridesRefusedCondition); c != nil {
		return c.Reason + c.Message
	}
	return ""
}

func orphaned(d *hubv1.AddonDelivery) []string {
	var names []string
	for _, a := range d.Status.Addons {
		if a.State == hubv1.AddonOrphaned {
			names = append(names, a.Name)
		}
	}
	return names
}

// setChanges lets through changes of what a set selects, and of whether it compiles, which also a Team, another set or a CRD decides, and
// which is known after an edit only. Clusters that the set does not serve report those as well.
func setChanges() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		a, b := e.ObjectOld.(*hubv1.AddonSet), e.ObjectNew.(*hubv1.AddonSet)
		return status.IsTrue(a, hubv1.StalledCondition) != status.IsTrue(b, hubv1.StalledCondition) || rollout.Waits(a) != rollout.Waits(b)
	}})
}

func (r *Reconciler) usersOfSecret(ctx context.Context, obj client.Object) []reconcile.Request {
	out := enqueue.UsersOfSecret(r.Client)(ctx, obj)
	profiles, err := r.Origins.NamingSecret(ctx, client.ObjectKeyFromObject(obj))
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "look for who names a Secret", "secret", client.ObjectKeyFromObject(obj).String())
	}
	for _, p := range profiles {
		out = append(out, enqueue.Registrations(ctx, r.Client, client.InNamespace(p.Namespace),
			client.MatchingFields{index.RegistrationOrigin: index.Origin(origin.ClusterProfile.Reference(p.Name))})...)
	}
	return out
}

// countedBy returns the registration that a delivery is for, and those of the same cluster that are being drained: a drain is over when
// nothing is left on the cluster, through whichever of them it came.
func (r *Reconciler) countedBy(ctx context.Context, obj client.Object) []reconcile.Request {
	out := enqueue.RegistrationOfDelivery(ctx, obj)
	reg := &hubv1.ClusterRegistration{}
	if err := r.Client.Get(ctx, out[0].NamespacedName, reg, client.UnsafeDisableDeepCopy); err != nil {
		return out // it wakes the others when it goes
	}
	all, err := r.ofCluster(ctx, reg.Status.ClusterID())
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "look for who waits for a delivery")
	}
	for i := range all {
		if o := &all[i]; o.UID != reg.UID && drain.Requested(o) {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)})
		}
	}
	return out
}

func (r *Reconciler) inNamespace(ctx context.Context, namespace client.Object) []reconcile.Request {
	return enqueue.Registrations(ctx, r.Client, client.InNamespace(namespace.GetName()))
}

func (r *Reconciler) ofOrigin(kind origin.Kind) handler.MapFunc {
	return func(ctx context.Context, obj client.Object) []reconcile.Request {
		return enqueue.Registrations(ctx, r.Client, client.InNamespace(obj.GetNamespace()),
			client.MatchingFields{index.RegistrationOrigin: index.Origin(kind.Reference(obj.GetName()))})
	}
}
