// SPDX-License-Identifier: Apache-2.0

// Package originreader reads origins, and watches each kind of origin from the moment its CRD is installed. It skips
// a kind that is not installed, and picks it up later without a restart. If a CRD is uninstalled, nothing is removed.
// If an upgrade changes the version that a CRD serves, the reader uses the new version.
package originreader

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
	"github.com/chandler-hub/chandler/internal/origin"
	"github.com/chandler-hub/chandler/internal/teardown"
)

// Starter starts a controller's watch of a kind: of an example in the version that the API server prefers. It is called
// again when the API server prefers another one.
type Starter func(kind origin.Kind, example client.Object) error

// Reader knows which kinds are installed, and reads origins from the cache.
type Reader struct {
	cache  client.Reader
	live   client.Reader
	policy origin.Policy
	mgr    manager.Manager // nil before SetupWithManager

	mu       sync.RWMutex
	versions map[schema.GroupKind]schema.GroupVersionKind // the kinds that are watched
	gone     map[schema.GroupKind]bool                    // watched, but the CRD does not exist now
	retired  map[schema.GroupVersionKind]time.Time        // watched, and not read any more since then
	starters []Starter
	tell     []func(context.Context, origin.Kind)
}

// New returns a Reader that watches only Secrets yet.
func New(cache, live client.Reader, policy origin.Policy) *Reader {
	return &Reader{
		cache: cache, live: live, policy: policy,
		versions: map[schema.GroupKind]schema.GroupVersionKind{origin.Secret.GroupKind: corev1.SchemeGroupVersion.WithKind("Secret")},
		gone:     map[schema.GroupKind]bool{}, retired: map[schema.GroupVersionKind]time.Time{},
	}
}

// OnInstalled registers a controller that wants to watch origins. It must be called before the manager starts.
func (o *Reader) OnInstalled(s Starter) { o.starters = append(o.starters, s) }

// OnChange registers a controller that wants to know when a watched kind is uninstalled or installed again. It must be
// called before the manager starts.
func (o *Reader) OnChange(tell func(context.Context, origin.Kind)) { o.tell = append(o.tell, tell) }

// Installed returns whether a kind is watched, and its CRD is there.
func (o *Reader) Installed(kind origin.Kind) bool {
	_, ok := o.version(kind)
	return ok
}

// Get reads an origin from the cache, and says what it asks for. The object is nil if it does not exist. A Secret
// that is being deleted still exists, and its kubeconfig is used.
func (o *Reader) Get(ctx context.Context, kind origin.Kind, key types.NamespacedName) (*unstructured.Unstructured, origin.Verdict, error) {
	gvk, ok := o.version(kind)
	if !ok {
		return nil, origin.Verdict{Origin: teardown.OriginUnknown}, nil
	}
	obj, err := o.read(ctx, kind, gvk, key)
	switch {
	case apierrors.IsNotFound(err):
		// When a CRD is deleted, its objects go first. So check that the kind still exists before reporting that an origin
		// is gone.
		if kind.CRD != "" {
			version, err := o.served(ctx, kind)
			if err != nil {
				return nil, origin.Verdict{}, err // asked again: nothing else wakes a controller for an origin that is gone
			}
			if version == "" {
				return nil, origin.Verdict{Origin: teardown.OriginUnknown}, nil
			}
		}
		return nil, origin.Verdict{Origin: teardown.OriginGone}, nil
	case err != nil:
		return nil, origin.Verdict{}, fmt.Errorf("read %s %s: %w", kind.Kind, key, err)
	}
	verdict, err := o.judge(ctx, kind, obj)
	if err != nil {
		return nil, origin.Verdict{}, err
	}
	return obj, verdict, nil
}

// judge says what an origin asks for, from its labels and its surroundings.
func (o *Reader) judge(ctx context.Context, kind origin.Kind, obj *unstructured.Unstructured) (origin.Verdict, error) {
	around := origin.Around{ClusterExists: func(name string) bool {
		gvk, ok := o.version(origin.ClusterAPI)
		if !ok {
			return false
		}
		_, err := o.read(ctx, origin.ClusterAPI, gvk, types.NamespacedName{Namespace: obj.GetNamespace(), Name: name})
		return err == nil
	}}
	if !kind.IsCluster() {
		// A Namespace that is not in the cache yet allows nothing. The controllers look again when it is.
		namespace := Namespace()
		if err := o.cache.Get(ctx, types.NamespacedName{Name: obj.GetNamespace()}, namespace); client.IgnoreNotFound(err) != nil {
			return origin.Verdict{}, fmt.Errorf("read Namespace %s: %w", obj.GetNamespace(), err)
		}
		around.NamespaceLabels = namespace.Labels
	}
	return o.policy.Judge(kind, obj, around), nil
}

// Namespace returns an empty Namespace to watch or read; only its metadata is cached.
func Namespace() *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return m
}

// AllowsSecrets lets through events about namespaces whose Secrets may register clusters, or no longer may.
func AllowsSecrets() predicate.Predicate {
	label := func(obj client.Object) string { return obj.GetLabels()[hubv1.RegisterSecretsLabel] }
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return label(e.Object) != "" },
		UpdateFunc:  func(e event.UpdateEvent) bool { return label(e.ObjectOld) != label(e.ObjectNew) },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// Deleted returns whether an origin that Get found to be gone was deleted: it does not exist, read live, and the CRD
// is still the one that the registration's origin was of. What only says how to reach a cluster counts as gone while it is being deleted.
func (o *Reader) Deleted(ctx context.Context, kind origin.Kind, reg *hubv1.ClusterRegistration, name string) (bool, error) {
	gvk, ok := o.version(kind)
	if !ok {
		return false, nil
	}
	if kind.CRD != "" {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := o.live.Get(ctx, types.NamespacedName{Name: kind.CRD}, crd); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		facts := teardown.OriginFacts{Seen: reg.SawOrigin(), Kind: crd.CreationTimestamp.Time, Registration: reg.CreationTimestamp.Time}
		if crd.DeletionTimestamp != nil || !teardown.Deleted(facts) {
			return false, nil
		}
	}
	there, err := o.there(ctx, gvk, reg.Namespace, name)
	goes := there != nil && there.DeletionTimestamp != nil && !kind.IsCluster()
	return err == nil && reg.SawOrigin() && (there == nil || goes), err
}

// Behind returns whether the cache does not show yet what became of an origin: read live, it is there or not, is being deleted or not, has
// a label, or is matched by a rule, other than the cache says. obj is what the cache has of it; nil for nothing.
func (o *Reader) Behind(ctx context.Context, kind origin.Kind, key types.NamespacedName, obj *unstructured.Unstructured) (bool, error) {
	gvk, ok := o.version(kind)
	if !ok {
		return false, nil
	}
	there, err := o.there(ctx, gvk, key.Namespace, key.Name)
	if err != nil {
		return false, fmt.Errorf("look what became of %s %s: %w", kind.Kind, key, err)
	}
	if there == nil || obj == nil {
		return (there == nil) != (obj == nil), nil
	}
	return there.UID != obj.GetUID() || (there.DeletionTimestamp == nil) != (obj.GetDeletionTimestamp() == nil) ||
		there.Labels[hubv1.RegisterLabel] != obj.GetLabels()[hubv1.RegisterLabel] || o.policy.Asks(kind, there) != o.policy.Asks(kind, obj), nil
}

// Labels returns the labels that a registration has as soon as discovery has copied those of its origin, read live; nil if the
// origin does not exist, or does not want the registration. A Secret that is being deleted is asked as long as it exists.
func (o *Reader) Labels(ctx context.Context, reg *hubv1.ClusterRegistration) (map[string]string, error) {
	if reg.Spec.OriginRef == nil {
		return nil, nil
	}
	kind, err := KindOf(reg)
	if err != nil {
		return nil, nil //nolint:nilerr // of a kind that the hub does not know it copies nothing
	}
	gvk, ok := o.version(kind)
	if !ok {
		return nil, nil
	}
	there, err := o.there(ctx, gvk, reg.Namespace, reg.Spec.OriginRef.Name)
	if err != nil {
		return nil, fmt.Errorf("read the labels of %s %s/%s: %w", kind.Kind, reg.Namespace, reg.Spec.OriginRef.Name, err)
	}
	if there == nil || there.DeletionTimestamp != nil && kind.IsCluster() || !o.policy.Asks(kind, there) {
		return nil, nil
	}
	return origin.Labels(reg.Labels, reg.Annotations[hubv1.CopiedAnnotation], o.policy.Ruling(kind, there).Over(there.Labels)), nil
}

// there reads the metadata of an origin live; nil if it does not exist.
func (o *Reader) there(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (*metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	err := o.live.List(ctx, list, client.InNamespace(namespace), client.MatchingFields{metav1.ObjectNameField: name})
	if err != nil || len(list.Items) == 0 {
		return nil, err
	}
	return &list.Items[0], nil
}

func (o *Reader) version(kind origin.Kind) (schema.GroupVersionKind, bool) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	gvk, ok := o.versions[kind.GroupKind]
	return gvk, ok && !o.gone[kind.GroupKind]
}

func (o *Reader) read(ctx context.Context, kind origin.Kind, gvk schema.GroupVersionKind,
	key types.NamespacedName) (*unstructured.Unstructured, error) {
	obj := Example(kind, gvk)
	if err := o.cache.Get(ctx, key, obj); err != nil {
		return nil, err
	}
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return u, nil
	}
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, err
	}
	return &unstructured.Unstructured{Object: m}, nil
}

// Example returns an empty object to watch or read a kind with. Of Secrets only the metadata is ever cached.
func Example(kind origin.Kind, gvk schema.GroupVersionKind) client.Object {
	if kind.GroupKind == origin.Secret.GroupKind {
		m := &metav1.PartialObjectMetadata{}
		m.SetGroupVersionKind(gvk)
		return m
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	return u
}

// SetupWithManager watches CRDs, and starts the watch of each kind when its CRD is established. Kinds that are
// installed already are watched before any controller starts. So after a restart no origin is taken for unknown, and no
// tenant of a Cluster is seen before its Cluster.
func (o *Reader) SetupWithManager(mgr manager.Manager) error {
	o.mgr = mgr
	byCRD := map[string]origin.Kind{}
	for _, k := range origin.Kinds {
		if k.CRD == "" {
			continue
		}
		byCRD[k.CRD] = k
		if _, err := o.reconcile(context.Background(), k); err != nil {
			return err
		}
	}
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	ours := predicate.NewPredicateFuncs(func(obj client.Object) bool { _, ok := byCRD[obj.GetName()]; return ok })
	return ctrl.NewControllerManagedBy(mgr).Named("origins").
		WatchesMetadata(crd, &handler.EnqueueRequestForObject{}, builder.WithPredicates(ours)).
		Complete(reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
			return o.reconcile(ctx, byCRD[req.Name])
		}))
}

func (o *Reader) reconcile(ctx context.Context, kind origin.Kind) (reconcile.Result, error) {
	served, err := o.served(ctx, kind)
	if err != nil {
		return reconcile.Result{}, err // a kind that cannot be asked for is not gone
	}
	there := served != ""
	o.mu.Lock()
	old, watched := o.versions[kind.GroupKind]
	changed := watched && o.gone[kind.GroupKind] == there
	o.gone[kind.GroupKind] = !there
	o.mu.Unlock()
	if changed {
		for _, tell := range o.tell {
			tell(ctx, kind)
		}
	}
	if !there || old.Version == served {
		return o.retire(ctx, kind)
	}
	gvk := kind.WithVersion(served)
	if _, err := o.mgr.GetRESTMapper().RESTMapping(kind.GroupKind, served); meta.IsNoMatchError(err) {
		return reconcile.Result{RequeueAfter: time.Second}, nil // discovery does not know of it yet
	} else if err != nil {
		return reconcile.Result{}, fmt.Errorf("find version %s of %s: %w", served, kind.GroupKind, err)
	}
	if watched {
		if err := o.try(ctx, gvk); err != nil {
			return reconcile.Result{}, fmt.Errorf("%s is read in %s on: %w", kind.Kind, old.Version, err)
		}
	}
	if err := o.watch(ctx, kind, gvk); err != nil || !watched {
		return reconcile.Result{}, err
	}
	for _, tell := range o.tell { // of what was deleted while neither version was watched, no event comes
		tell(ctx, kind)
	}
	return reconcile.Result{RequeueAfter: retireAfter}, nil
}

// KindOf returns the kind of a registration's origin.
func KindOf(reg *hubv1.ClusterRegistration) (origin.Kind, error) {
	return origin.KindOf(*reg.Spec.OriginRef)
}
