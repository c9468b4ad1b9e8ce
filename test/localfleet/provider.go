// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

const (
	providerFinalizer = "chandler.dev/localfleet"
	pausedAnnotation  = "cluster.x-k8s.io/paused"
	clusterNameLabel  = "cluster.x-k8s.io/cluster-name"
)

// provider keeps the contract of Cluster API (v1beta2) for its kinds: it waits until an object has its Cluster as an
// owner, does nothing while one of the two is paused, has a finalizer, and reports what the contract asks for. It
// provides an API server that runs already, so it is faster than a real provider.
type provider struct {
	c client.Client
	// live reads past the cache: what it makes once, it must not make twice.
	live client.Reader

	mu      sync.Mutex
	served  map[client.ObjectKey]*Cluster // by the Cluster of Cluster API
	account map[client.ObjectKey]string   // whose credentials are in its kubeconfig
	changed chan event.GenericEvent
}

// startProvider runs the provider until the cluster stops.
func (c *Cluster) startProvider() (*provider, error) {
	mgr, err := ctrl.NewManager(c.Config, ctrl.Options{
		Scheme: c.Client.Scheme(), Metrics: server.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)}, // each management cluster has its own
		Client:     client.Options{Cache: &client.CacheOptions{Unstructured: true}},
	})
	if err != nil {
		return nil, err
	}
	p := &provider{
		c: mgr.GetClient(), live: mgr.GetAPIReader(),
		served: map[client.ObjectKey]*Cluster{}, account: map[client.ObjectKey]string{}, changed: make(chan event.GenericEvent, 100),
	}
	// There is one queue for all kinds, by Cluster: each reconcile handles everything that belongs to one.
	b := ctrl.NewControllerManagedBy(mgr).Named("provider").For(kindOf(clusterKind)).WithOptions(
		controller.Options{MaxConcurrentReconciles: 4}).
		WatchesRawSource(source.Channel(p.changed, &handler.EnqueueRequestForObject{}))
	ofCluster := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		name := o.GetLabels()[clusterNameLabel]
		if name == "" {
			return nil
		}
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: o.GetNamespace(), Name: name}}}
	})
	for _, kind := range []schema.GroupVersionKind{infrastructureKind, controlPlaneKind, kamajiControlPlaneKind} {
		b = b.Watches(kindOf(kind), ofCluster)
	}
	if err := b.Watches(&corev1.Secret{}, ofCluster).Complete(p); err != nil {
		return nil, err
	}
	c.loop(mgr.Start)
	return p, nil
}

// clusterKind is what the provider reads of Cluster API.
var clusterKind = schema.GroupVersionKind{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "Cluster"}

func kindOf(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	return u
}

func (p *provider) serve(key client.ObjectKey, workload *Cluster) {
	p.mu.Lock()
	p.served[key] = workload
	p.mu.Unlock()
	cluster := kindOf(clusterKind)
	cluster.SetNamespace(key.Namespace)
	cluster.SetName(key.Name)
	p.changed <- event.GenericEvent{Object: cluster}
}

func (p *provider) workload(key client.ObjectKey) *Cluster {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.served[key]
}

// Reconcile looks at what belongs to a Cluster.
func (p *provider) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	cluster := kindOf(clusterKind)
	if err := p.c.Get(ctx, req.NamespacedName, cluster); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	var errs []error
	for _, part := range []struct {
		ref     string
		kinds   []schema.GroupVersionKind
		provide func(ctx context.Context, cluster, obj *unstructured.Unstructured, workload *Cluster) error
	}{
		{"infrastructureRef", []schema.GroupVersionKind{infrastructureKind}, p.infrastructure},
		{"controlPlaneRef", []schema.GroupVersionKind{controlPlaneKind, kamajiControlPlaneKind}, p.controlPlane},
	} {
		for _, kind := range part.kinds {
			if named, _, _ := unstructured.NestedString(cluster.Object, "spec", part.ref, "kind"); named != kind.Kind {
				continue
			}
			obj := kindOf(kind)
			name, _, _ := unstructured.NestedString(cluster.Object, "spec", part.ref, "name")
			err := p.c.Get(ctx, client.ObjectKey{Namespace: req.Namespace, Name: name}, obj)
			if err == nil {
				err = p.provide(ctx, cluster, obj, part.provide)
			}
			if client.IgnoreNotFound(err) != nil {
				errs = append(errs, fmt.Errorf("%s %s: %w", kind.Kind, name, err))
			}
		}
	}
	return ctrl.Result{}, errors.Join(errs...)
}

// provide does what is the same for infrastructure and control planes.
func (p *provider) provide(ctx context.Context, cluster, obj *unstructured.Unstructured,
	f func(ctx context.Context, cluster, obj *unstructured.Unstructured, workload *Cluster) error) error {
	owned := false
	for _, o := range obj.GetOwnerReferences() {
		owned = owned || o.UID == cluster.GetUID()
	}
	_, annotated := obj.GetAnnotations()[pausedAnnotation]
	paused, _, _ := unstructured.NestedBool(cluster.Object, "spec", "paused")
	if !owned || annotated || paused {
		return nil
	}
	before := obj.DeepCopy()
	if obj.GetDeletionTimestamp() != nil {
		// The API server goes on running, because this test watches only what happens to the objects.
		if !controllerutil.RemoveFinalizer(obj, providerFinalizer) {
			return nil
		}
		return p.c.Patch(ctx, obj, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	}
	if controllerutil.AddFinalizer(obj, providerFinalizer) {
		if err := p.c.Patch(ctx, obj, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return err
		}
	}
	workload := p.workload(client.ObjectKeyFromObject(cluster))
	if workload == nil {
		return nil
	}
	return f(ctx, cluster, obj, workload)
}

// infrastructure is a load balancer that leads to the API server.
func (p *provider) infrastructure(ctx context.Context, _, obj *unstructured.Unstructured, workload *Cluster) error {
	server, err := url.Parse(workload.Server())
	if err != nil {
		return err
	}
	host, text, err := net.SplitHostPort(server.Host)
	if err != nil {
		return err
	}
	port, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return err
	}
	before := obj.DeepCopy()
	if err := unstructured.SetNestedMap(obj.Object, map[string]any{"host": host, "port": port}, "spec", "controlPlaneEndpoint"); err != nil {
		return err
	}
	if err := p.c.Patch(ctx, obj, client.MergeFrom(before)); err != nil {
		return err
	}
	return p.status(ctx, obj, map[string]any{"initialization": map[string]any{"provisioned": true}})
}

// controlPlane is an API server that somebody else runs, with the kubeconfig that every control plane has to write.
func (p *provider) controlPlane(ctx context.Context, cluster, obj *unstructured.Unstructured, workload *Cluster) error {
	if provisioned, _, _ := unstructured.NestedBool(cluster.Object, "status", "initialization", "infrastructureProvisioned"); !provisioned {
		return nil
	}
	kubeconfig, err := p.kubeconfig(ctx, cluster, obj, workload)
	if err != nil {
		return err
	}
	if obj.GetKind() == kamajiControlPlaneKind.Kind {
		if err := p.tenant(ctx, obj, kubeconfig); err != nil {
			return err
		}
	}
	status := map[string]any{
		"initialization":              map[string]any{"controlPlaneInitialized": true},
		"externalManagedControlPlane": true,
		"conditions": []any{map[string]any{"type": "Available", "status": "True", "reason": "Available", "message": "",
			"lastTransitionTime": obj.GetCreationTimestamp().UTC().Format("2006-01-02T15:04:05Z")}},
	}
	if version, _, _ := unstructured.NestedString(obj.Object, "spec", "version"); version != "" {
		status["version"] = version
	}
	replicas, found, _ := unstructured.NestedInt64(obj.Object, "spec", "replicas")
	if !found {
		replicas = 1
	}
	for _, field := range []string{"replicas", "readyReplicas", "availableReplicas", "upToDateReplicas"} {
		status[field] = replicas
	}
	return p.status(ctx, obj, status)
}

// kubeconfig returns what is in the kubeconfig Secret of a Cluster, and writes one that is not there.
func (p *provider) kubeconfig(ctx context.Context, cluster, obj *unstructured.Unstructured, workload *Cluster) ([]byte, error) {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: cluster.GetNamespace(), Name: cluster.GetName() + "-kubeconfig"}
	err := p.live.Get(ctx, key, secret)
	if !apierrors.IsNotFound(err) {
		return secret.Data["value"], err
	}
	kubeconfig, err := p.credentials(ctx, client.ObjectKeyFromObject(cluster), workload)
	if err != nil {
		return nil, err
	}
	secret.Namespace, secret.Name, secret.Type = key.Namespace, key.Name, "cluster.x-k8s.io/secret"
	secret.Labels = map[string]string{clusterNameLabel: cluster.GetName()}
	secret.Data = map[string][]byte{"value": kubeconfig}
	if err := controllerutil.SetControllerReference(obj, secret, p.c.Scheme()); err != nil {
		return nil, err
	}
	return kubeconfig, p.c.Create(ctx, secret)
}

// credentials makes new ones for the administrator of a Cluster.
func (p *provider) credentials(ctx context.Context, cluster client.ObjectKey, workload *Cluster) ([]byte, error) {
	account := fmt.Sprintf("%s-%s", cluster.Name, rand.String(5))
	kubeconfig, err := workload.TokenKubeconfig(ctx, account)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.account[cluster] = account
	return kubeconfig, nil
}

func (p *provider) rotate(ctx context.Context, cluster client.ObjectKey) error {
	workload := p.workload(cluster)
	p.mu.Lock()
	old := p.account[cluster]
	p.mu.Unlock()
	kubeconfig, err := p.credentials(ctx, cluster, workload)
	if err != nil {
		return err
	}
	secret := &corev1.Secret{}
	if err := p.c.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: cluster.Name + "-kubeconfig"}, secret); err != nil {
		return err
	}
	secret.Data["value"] = kubeconfig
	if err := p.c.Update(ctx, secret); err != nil {
		return err
	}
	return workload.Revoke(ctx, old)
}

// tenant makes the TenantControlPlane of a KamajiControlPlane, as Kamaji's provider and then Kamaji itself do.
func (p *provider) tenant(ctx context.Context, controlPlane *unstructured.Unstructured, kubeconfig []byte) error {
	tcp := kindOf(tenantKind)
	err := p.live.Get(ctx, client.ObjectKeyFromObject(controlPlane), tcp)
	if !apierrors.IsNotFound(err) {
		return err
	}
	return tenant(ctx, p.c, controlPlane.GetNamespace(), controlPlane.GetName(), controlPlane.GetLabels(), kubeconfig, controlPlane)
}

func (p *provider) status(ctx context.Context, obj *unstructured.Unstructured, status map[string]any) error {
	before := obj.DeepCopy()
	obj.Object["status"] = status
	return p.c.Status().Patch(ctx, obj, client.MergeFrom(before))
}
