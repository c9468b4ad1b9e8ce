// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/enqueue"
	"github.com/chandler-hub/chandler/controllers/logkey"
	"github.com/chandler-hub/chandler/controllers/originreader"
	"github.com/chandler-hub/chandler/internal/origin"
)

// SetupWithManager starts discovery: Secrets at once, the other kinds when their CRDs exist.
func (r *Reconciler) SetupWithManager(mgr manager.Manager) error {
	options := enqueue.OptionsOf[Request](r.Config.Concurrency)
	options.Reconciler = r
	options.LogConstructor = logkey.OfAny(mgr, "discovery", logkey.Origin, func(req Request) string {
		return req.Kind.Kind + " " + req.NamespacedName.String()
	})
	c, err := controller.NewTyped("discovery", mgr, options)
	if err != nil {
		return err
	}
	watch := func(kind origin.Kind, example client.Object) error {
		if kind == origin.ClusterAPI {
			if err := c.Watch(source.TypedKind(mgr.GetCache(), example, r.enqueueBelonging(), comesOrGoes())); err != nil {
				return err
			}
		}
		return c.Watch(source.TypedKind(mgr.GetCache(), example, enqueueOrigin(kind), r.interesting(kind)))
	}
	if err := watch(origin.Secret, originreader.Example(origin.Secret, corev1.SchemeGroupVersion.WithKind("Secret"))); err != nil {
		return err
	}
	if err := c.Watch(source.TypedKind(mgr.GetCache(), client.Object(originreader.Namespace()), r.enqueuePointers(),
		originreader.AllowsSecrets())); err != nil {
		return err
	}
	r.Origins.OnInstalled(watch)
	again := &enqueue.BellOf[Request]{}
	if err := c.Watch(again); err != nil {
		return err
	}
	r.Origins.OnChange(func(ctx context.Context, kind origin.Kind) { r.lookAgain(ctx, kind, again) })
	// A registration may keep another origin that wants its name from being registered. When it goes, or changes, that is checked again.
	if err := c.Watch(source.TypedKind(mgr.GetCache(), client.Object(&hubv1.ClusterRegistration{}), r.enqueueNamesakes(),
		predicate.TypedGenerationChangedPredicate[client.Object]{})); err != nil {
		return err
	}
	// A registration that is gone, or whose labels somebody changed, is restored from its origin.
	return c.Watch(source.TypedKind(mgr.GetCache(), client.Object(&hubv1.ClusterRegistration{}), enqueueOriginOf()))
}

// lookAgain enqueues what asks to be registered of a kind that may be served again. A watch goes on with what it had, and does not tell of
// it anew. A registration may have gone meanwhile.
func (r *Reconciler) lookAgain(ctx context.Context, kind origin.Kind, again *enqueue.BellOf[Request]) {
	found, err := r.Origins.Concerned(ctx, kind, corev1.NamespaceAll)
	if err != nil {
		log.FromContext(ctx).Error(err, "list what may register clusters", "kind", kind.Kind)
	}
	for _, name := range found {
		again.Enqueue(Request{Kind: kind, NamespacedName: name})
	}
}

// interesting leaves out the thousands of Secrets on a hub that have nothing to do with clusters. One that had the label, or that a rule
// matched, is interesting when that changes.
func (r *Reconciler) interesting(kind origin.Kind) predicate.Predicate {
	is := func(obj client.Object) bool { return kind != origin.Secret || r.Config.Origins.Concerns(kind, obj) }
	p := predicate.NewPredicateFuncs(is)
	p.UpdateFunc = func(e event.UpdateEvent) bool { return is(e.ObjectOld) || is(e.ObjectNew) }
	return p
}

func enqueueOrigin(kind origin.Kind) handler.TypedEventHandler[client.Object, Request] {
	return handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []Request {
		return []Request{{Kind: kind, NamespacedName: client.ObjectKeyFromObject(obj)}}
	})
}

// enqueuePointers enqueues what asks to be registered in a namespace and only says how to reach a cluster: its labels decide about that.
func (r *Reconciler) enqueuePointers() handler.TypedEventHandler[client.Object, Request] {
	return handler.TypedEnqueueRequestsFromMapFunc(func(ctx context.Context, namespace client.Object) []Request {
		var out []Request
		for _, kind := range origin.Kinds {
			if kind.IsCluster() {
				continue
			}
			found, err := r.Origins.Concerned(ctx, kind, namespace.GetName())
			if err != nil {
				log.FromContext(ctx).Error(err, "list what may register clusters in a namespace", "kind", kind.Kind, "namespace", namespace.GetName())
			}
			for _, name := range found {
				out = append(out, Request{Kind: kind, NamespacedName: name})
			}
		}
		return out
	})
}

// comesOrGoes leaves out what was there when the hub started, whose kind is read before any other origin is looked at.
func comesOrGoes() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return !e.IsInInitialList },
		UpdateFunc: func(event.UpdateEvent) bool { return false },
	}
}

// enqueueBelonging enqueues what asks to be registered and belongs to a Cluster of Cluster API: it is refused while that exists.
func (r *Reconciler) enqueueBelonging() handler.TypedEventHandler[client.Object, Request] {
	return handler.TypedEnqueueRequestsFromMapFunc(r.belonging)
}

func (r *Reconciler) belonging(ctx context.Context, cluster client.Object) []Request {
	var out []Request
	for _, kind := range []origin.Kind{origin.Kamaji, origin.Secret} {
		found, err := r.Origins.Concerned(ctx, kind, cluster.GetNamespace(), client.MatchingLabels{origin.ClusterNameLabel: cluster.GetName()})
		if err != nil {
			log.FromContext(ctx).Error(err, "list what belongs to a Cluster", "kind", kind.Kind, "name", cluster.GetName())
		}
		for _, name := range found {
			out = append(out, Request{Kind: kind, NamespacedName: name})
		}
	}
	return out
}

// enqueueNamesakes enqueues the origins that ask to be registered and may want the name of a registration.
func (r *Reconciler) enqueueNamesakes() handler.TypedEventHandler[client.Object, Request] {
	return handler.TypedEnqueueRequestsFromMapFunc(r.namesakes)
}

// namesakes returns the origins that ask to be registered and may want the name of a registration, as their own or as their second one.
// While somebody else has both, they wait.
func (r *Reconciler) namesakes(ctx context.Context, obj client.Object) []Request {
	out := []Request{}
	for _, name := range firstNames(obj.GetName()) {
		key := types.NamespacedName{Namespace: obj.GetNamespace(), Name: name}
		asking, err := r.Origins.Asking(ctx, key)
		if err != nil {
			log.FromContext(ctx).Error(err, "look for an origin of a registration's name", "name", key.String())
		}
		for _, one := range asking {
			if name == obj.GetName() || secondName(one.Kind, name) == obj.GetName() {
				out = append(out, Request(one))
			}
		}
	}
	return out
}

func enqueueOriginOf() handler.TypedEventHandler[client.Object, Request] {
	return handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []Request {
		ref := obj.(*hubv1.ClusterRegistration).Spec.OriginRef
		if ref == nil {
			return nil
		}
		kind, err := origin.KindOf(*ref)
		if err != nil {
			return nil
		}
		return []Request{{Kind: kind, NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(), Name: ref.Name}}}
	})
}
