// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// runner runs the pods of tenants' control planes as processes of this machine, in place of a Deployment controller
// and a kubelet: it handles files from Secrets and ConfigMaps, probes, restarts, and the status of the Deployment. A
// Deployment has one pod, and the old pod ends before the new one starts, because both use the same port.
type runner struct {
	client client.Client // reads from a cache
	dir    string
	cancel context.CancelFunc
	ended  chan struct{}

	mu      sync.Mutex
	pods    map[types.NamespacedName]*pod
	stopped bool
}

// lookAgain is how soon the runner notices that a process has ended by itself.
const lookAgain = time.Second

// errOutdated ends the start of a pod that is not wanted any more.
var errOutdated = errors.New("the Deployment has changed")

func startRunner(config *rest.Config, dir string) (*runner, error) {
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Logger: logr.Discard(), Metrics: server.Options{BindAddress: "0"}, GracefulShutdownTimeout: ptr.To(-time.Second), // until all are stopped
	})
	if err != nil {
		return nil, err
	}
	r := &runner{client: mgr.GetClient(), dir: dir, ended: make(chan struct{}), pods: map[types.NamespacedName]*pod{}}
	tenant := &metav1.PartialObjectMetadata{}
	tenant.SetGroupVersionKind(tenantKind)
	owner := handler.EnqueueRequestsFromMapFunc(tenantOf)
	err = ctrl.NewControllerManagedBy(mgr).Named("runner").
		For(tenant, builder.OnlyMetadata).Watches(&appsv1.Deployment{}, owner).Watches(&corev1.Secret{}, owner).Watches(&corev1.ConfigMap{},
		owner).
		// Tenants do not wait for each other; two fleets of one process may both have a runner.
		WithOptions(controller.Options{MaxConcurrentReconciles: 16, SkipNameValidation: ptr.To(true)}).
		Complete(r)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	go func() {
		defer close(r.ended)
		_ = mgr.Start(ctx) // what it cannot do shows as a tenant that does not become Ready
	}()
	return r, nil
}

// tenantOf returns the tenant that an object belongs to.
func tenantOf(_ context.Context, obj client.Object) []ctrl.Request {
	if owner := metav1.GetControllerOf(obj); owner != nil && owner.Kind == tenantKind.Kind {
		return []ctrl.Request{{NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(), Name: owner.Name}}}
	}
	return nil
}

// stop kills every pod, and returns when none can be started any more.
func (r *runner) stop() {
	r.cancel()
	r.mu.Lock()
	r.stopped = true
	pods := make([]*pod, 0, len(r.pods))
	for _, p := range r.pods {
		pods = append(pods, p)
	}
	r.mu.Unlock()
	for _, p := range pods {
		p.kill()
	}
	<-r.ended
}

// pod returns the pod of a tenant, which may not run, and nil once the runner is stopped.
func (r *runner) pod(key types.NamespacedName) *pod {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		return nil
	}
	p := r.pods[key]
	if p == nil {
		p = newPod(filepath.Join(r.dir, key.Namespace+"-"+key.Name))
		r.pods[key] = p
	}
	return p
}

// Reconcile makes a tenant's processes what its Deployment says.
func (r *runner) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	p := r.pod(req.NamespacedName)
	if p == nil {
		return ctrl.Result{}, nil
	}
	d, err := r.wanted(ctx, req.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	if d == nil {
		return ctrl.Result{}, p.remove()
	}
	files, err := r.read(ctx, req.Namespace, d.Spec.Template.Spec.Volumes)
	if apierrors.IsNotFound(err) {
		return ctrl.Result{RequeueAfter: lookAgain}, nil // a kubelet, too, waits until Kamaji has made it again
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	if p.runs(d.Spec.Template) {
		if err := p.lay(files); err != nil {
			return ctrl.Result{}, err
		}
		return ctrl.Result{RequeueAfter: lookAgain}, r.report(ctx, d, true)
	}
	if err := r.report(ctx, d, false); err != nil {
		return ctrl.Result{}, err
	}
	p.stop()
	if err := p.lay(files); err != nil {
		return ctrl.Result{}, err
	}
	err = p.start(ctx, d.Spec.Template, func(ctx context.Context) error { return r.stillWanted(ctx, req.NamespacedName, d) })
	if ctx.Err() != nil {
		return ctrl.Result{}, ctx.Err()
	}
	if err != nil {
		return ctrl.Result{RequeueAfter: lookAgain}, p.note(err)
	}
	return ctrl.Result{RequeueAfter: lookAgain}, r.report(ctx, d, true)
}

// wanted returns the Deployment of a tenant, nil if nothing is to run. It reads the tenant first: a tenant that is
// being deleted has lost its data already, while its Deployment waits for the garbage collector.
func (r *runner) wanted(ctx context.Context, key types.NamespacedName) (*appsv1.Deployment, error) {
	tenant := &metav1.PartialObjectMetadata{}
	tenant.SetGroupVersionKind(tenantKind)
	if err := r.client.Get(ctx, key, tenant); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	d := &appsv1.Deployment{}
	if err := r.client.Get(ctx, key, d); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if tenant.DeletionTimestamp != nil || d.DeletionTimestamp != nil || ptr.Deref(d.Spec.Replicas, 1) == 0 {
		return nil, nil
	}
	return d, nil
}

func (r *runner) stillWanted(ctx context.Context, key types.NamespacedName, old *appsv1.Deployment) error {
	now, err := r.wanted(ctx, key)
	if err == nil && (now == nil || templateKey(now.Spec.Template) != templateKey(old.Spec.Template)) {
		err = errOutdated
	}
	return err
}

// read returns the files of every volume.
func (r *runner) read(ctx context.Context, namespace string, volumes []corev1.Volume) (map[string]files, error) {
	out := map[string]files{}
	for _, v := range volumes {
		content, err := readVolume(ctx, r.client, namespace, v)
		if err != nil {
			return nil, fmt.Errorf("volume %s: %w", v.Name, err)
		}
		out[v.Name] = content
	}
	return out, nil
}

// report writes what a Deployment controller would.
func (r *runner) report(ctx context.Context, d *appsv1.Deployment, available bool) error {
	before := d.DeepCopy()
	status := corev1.ConditionFalse
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1, UnavailableReplicas: 1,
		Conditions: d.Status.Conditions}
	if available {
		status = corev1.ConditionTrue
		d.Status.ReadyReplicas, d.Status.AvailableReplicas, d.Status.UnavailableReplicas = 1, 1, 0
	}
	if len(d.Status.Conditions) != 1 || d.Status.Conditions[0].Status != status {
		d.Status.Conditions = []appsv1.DeploymentCondition{{
			Type: appsv1.DeploymentAvailable, Status: status, Reason: "Runner", LastUpdateTime: metav1.Now(), LastTransitionTime: metav1.Now(),
		}}
	}
	patch := client.MergeFrom(before)
	if raw, err := patch.Data(d); err != nil || string(raw) == "{}" {
		return err
	}
	return client.IgnoreNotFound(r.client.Status().Patch(ctx, d, patch))
}
