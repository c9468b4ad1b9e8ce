// SPDX-License-Identifier: Apache-2.0

// Package profiles shows registrations to other tools as ClusterProfiles of SIG Multicluster's cluster inventory, if the operator wants
// that. A profile goes with its registration. It holds no credential: it says in which Secret the cluster's kubeconfig is.
package profiles

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"k8s.io/client-go/tools/events"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/credential"
	"github.com/chandler-hub/chandler/controllers/originreader"
	"github.com/chandler-hub/chandler/internal/apply"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/inventory"
	"github.com/chandler-hub/chandler/internal/memory"
	"github.com/chandler-hub/chandler/internal/origin"
	"github.com/chandler-hub/chandler/internal/status"
)

// +kubebuilder:rbac:groups=multicluster.x-k8s.io,resources=clusterprofiles,verbs=create;delete
// +kubebuilder:rbac:groups=multicluster.x-k8s.io,resources=clusterprofiles/status,verbs=patch

// Reconciler works on one registration at a time.
type Reconciler struct {
	Client   client.Client
	Live     client.Reader
	Origins  Origins
	Config   *hubconfig.Config
	Recorder events.EventRecorder

	shown memory.Map[types.NamespacedName, shown]
}

// Origins is an originreader.Reader.
type Origins interface {
	Installed(kind origin.Kind) bool
	Get(ctx context.Context, kind origin.Kind, key types.NamespacedName) (*unstructured.Unstructured, origin.Verdict, error)
	OnInstalled(s originreader.Starter)
	OnChange(tell func(context.Context, origin.Kind))
}

// Reconcile brings the profile of a registration up to date.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	reg := &hubv1.ClusterRegistration{}
	if err := r.Client.Get(ctx, req.NamespacedName, reg); apierrors.IsNotFound(err) {
		r.shown.Delete(req.NamespacedName)
		return ctrl.Result{}, r.removeLeft(ctx, req.NamespacedName)
	} else if err != nil {
		return ctrl.Result{}, err
	}
	if !r.Origins.Installed(origin.ClusterProfile) {
		return ctrl.Result{}, nil
	}
	has, err := r.profile(ctx, req.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	if ref := reg.Spec.OriginRef; ref != nil && *ref == origin.ClusterProfile.Reference(reg.Name) {
		// What it came from shows the cluster. If that is gone, one of the hub's in its place would be the origin, and the
		// registration would never be found to have none.
		return ctrl.Result{}, r.removeMade(ctx, has)
	}
	if has != nil && !inventory.Owned(has, r.Config.HubID) {
		r.Recorder.Eventf(reg, has, corev1.EventTypeWarning, hubv1.NoProfileEvent, "Show",
			"not shown as a ClusterProfile: there is one of that name already, which the hub did not make. Rename one of them")
		return ctrl.Result{}, nil
	}
	if status.Goes(reg) {
		return ctrl.Result{}, r.remove(ctx, has)
	}
	want := inventory.Spec(reg, r.Config.HubID)
	if has, err = r.apply(ctx, has, want); err != nil {
		if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			return ctrl.Result{}, nil // the registration goes too
		}
		return ctrl.Result{}, err
	}
	access, err := r.access(ctx, reg, has)
	if err != nil {
		return ctrl.Result{}, err
	}
	return apply.Retried(ctrl.Result{RequeueAfter: lookAgain(reg, access)}, r.writeStatus(ctx, has, inventory.Status(reg, access)))
}

// lookAgain returns after how long to look again for the way to a cluster; 0 if only when something happens.
func lookAgain(reg *hubv1.ClusterRegistration, access *clientcmdv1.Cluster) time.Duration {
	c := reg.Status.Credential
	if access != nil || c == nil || c.SecretName == "" || !status.IsTrue(reg, hubv1.KubeConfigValidCondition) {
		return 0
	}
	return credential.LostTime
}

// profile returns the profile of a name from the cache; nil if there is none.
func (r *Reconciler) profile(ctx context.Context, key types.NamespacedName) (*inventoryv1alpha1.ClusterProfile, error) {
	u, _, err := r.Origins.Get(ctx, origin.ClusterProfile, key)
	if err != nil || u == nil {
		return nil, err
	}
	p := &inventoryv1alpha1.ClusterProfile{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, p); err != nil {
		return nil, fmt.Errorf("read ClusterProfile %s: %w", key, err)
	}
	return p, nil
}

// removeLeft removes the hub's profile of a registration that has gone. The registration is its owner, so the garbage collector would
// remove it too. But this controller may have missed that the registration goes: it took a moment only, or the cache did not hold the
// profile then, right after its CRD came.
func (r *Reconciler) removeLeft(ctx context.Context, key types.NamespacedName) error {
	has, err := r.profile(ctx, key)
	if err != nil || has == nil {
		return err
	}
	// The cache of registrations may be behind the one of profiles.
	if err := r.Live.Get(ctx, key, &hubv1.ClusterRegistration{}); !apierrors.IsNotFound(err) {
		return err
	}
	return r.removeMade(ctx, has)
}

// removeMade removes a profile that this hub has made, for which its owner speaks too. One that was carried here from another management
// cluster may name a cluster manager of the same name.
func (r *Reconciler) removeMade(ctx context.Context, has *inventoryv1alpha1.ClusterProfile) error {
	if has == nil || !inventory.Owned(has, r.Config.HubID) || !origin.OfRegistration(has.OwnerReferences) {
		return nil
	}
	return r.remove(ctx, has)
}

func (r *Reconciler) remove(ctx context.Context, has *inventoryv1alpha1.ClusterProfile) error {
	if has == nil || has.DeletionTimestamp != nil {
		return nil
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(inventoryv1alpha1.GroupVersion.WithKind(origin.ClusterProfile.Kind))
	u.SetNamespace(has.Namespace)
	u.SetName(has.Name)
	u.SetUID(has.UID)
	if err := apply.Delete(ctx, r.Client, u); err != nil {
		return fmt.Errorf("delete ClusterProfile %s/%s: %w", has.Namespace, has.Name, err)
	}
	return nil
}

// apply writes all but the status, if it differs, and returns the profile as it is then. An annotation says which labels are the
// registration's, so that one that it loses is taken off.
func (r *Reconciler) apply(ctx context.Context, has, want *inventoryv1alpha1.ClusterProfile) (*inventoryv1alpha1.ClusterProfile, error) {
	labels := strings.Join(slices.Sorted(maps.Keys(want.Labels)), ",")
	want.Annotations = map[string]string{hubv1.CopiedAnnotation: labels}
	if has != nil && has.Annotations[hubv1.CopiedAnnotation] == labels && has.Spec == want.Spec && holds(has.Labels, want.Labels) &&
		equality.Semantic.DeepEqual(has.OwnerReferences, want.OwnerReferences) {
		return has, nil
	}
	u, err := toUnstructured(want)
	if err != nil {
		return nil, err
	}
	delete(u.Object, "status")
	err = r.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(hubv1.FieldManager),
		client.ForceOwnership)
	if err != nil {
		return nil, fmt.Errorf("apply ClusterProfile %s/%s: %w", want.Namespace, want.Name, err)
	}
	made := &inventoryv1alpha1.ClusterProfile{}
	return made, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, made) // which has become what the API server answered
}

// holds returns whether labels have all that are wanted.
func holds(labels, want map[string]string) bool {
	for k, v := range want {
		if has, ok := labels[k]; !ok || has != v {
			return false
		}
	}
	return true
}

// access returns how the cluster is reached, without a credential; nil if no Secret says so. It reads the Secret only when the hub uses
// another kubeconfig than it has shown, or when a user has edited what it showed: a user who edits the address has others' credentials
// sent there.
func (r *Reconciler) access(ctx context.Context, reg *hubv1.ClusterRegistration,
	has *inventoryv1alpha1.ClusterProfile) (*clientcmdv1.Cluster, error) {
	c := reg.Status.Credential
	if c == nil || c.SecretName == "" {
		return nil, nil
	}
	key := client.ObjectKeyFromObject(reg)
	if cluster := accessOf(has); cluster != nil {
		if is, _ := r.shown.Get(key); is == (shown{c.Fingerprint, digest(cluster)}) {
			return cluster, nil
		}
	}
	config, err := credential.Read(ctx, r.Live, r.Config, reg)
	if err != nil || config == nil {
		return nil, err // the registration controller looks at it first, and its status wakes this controller, if it has seen that
	}
	cluster := config.Cluster()
	r.shown.Put(key, shown{c.Fingerprint, digest(&cluster)})
	return &cluster, nil
}

// accessOf returns what a profile says about how its cluster is reached.
func accessOf(p *inventoryv1alpha1.ClusterProfile) *clientcmdv1.Cluster {
	for _, a := range p.Status.AccessProviders {
		if a.Name == origin.SecretReader {
			cluster := a.Cluster.DeepCopy()
			cluster.Extensions = nil
			return cluster
		}
	}
	return nil
}

// writeStatus replaces the whole status, if it differs. What others write into it goes: a consumer would send its own credentials to a
// server that a user adds, or the hub's through the user's proxy.
func (r *Reconciler) writeStatus(ctx context.Context, has *inventoryv1alpha1.ClusterProfile,
	want inventoryv1alpha1.ClusterProfileStatus) error {
	if equality.Semantic.DeepEqual(has.Status, want) {
		return nil
	}
	u, err := toUnstructured(&inventoryv1alpha1.ClusterProfile{Status: want})
	if err != nil {
		return err
	}
	patch, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/resourceVersion", "value": has.ResourceVersion},
		{"op": "add", "path": "/status", "value": u.Object["status"]},
	})
	if err != nil {
		return err
	}
	u.SetNamespace(has.Namespace)
	u.SetName(has.Name)
	if err := r.Client.Status().Patch(ctx, u, client.RawPatch(types.JSONPatchType, patch)); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("write the status of ClusterProfile %s/%s: %w", has.Namespace, has.Name, err))
	}
	return nil
}

// toUnstructured converts a profile, without the nulls that its Go type writes for times that are not set.
func toUnstructured(p *inventoryv1alpha1.ClusterProfile) (*unstructured.Unstructured, error) {
	raw, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(raw, &u.Object); err != nil {
		return nil, err
	}
	u.SetGroupVersionKind(inventoryv1alpha1.GroupVersion.WithKind(origin.ClusterProfile.Kind))
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	properties, _, _ := unstructured.NestedSlice(u.Object, "status", "properties")
	for _, p := range properties {
		delete(p.(map[string]any), "lastObservedTime")
	}
	if len(properties) > 0 {
		err = unstructured.SetNestedSlice(u.Object, properties, "status", "properties")
	}
	return u, err
}

// shown is, as digests, which way to a cluster its profile shows, and of which kubeconfig that is.
type shown struct{ kubeconfig, cluster string }

func digest(cluster *clientcmdv1.Cluster) string {
	raw, _ := json.Marshal(cluster) // plain fields
	return identity.Hash(32, string(raw))
}
