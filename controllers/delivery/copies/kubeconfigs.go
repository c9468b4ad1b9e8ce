// SPDX-License-Identifier: Apache-2.0

package copies

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/credential"
	"github.com/chandler-hub/chandler/controllers/delivery/observed"
	"github.com/chandler-hub/chandler/controllers/delivery/planned"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/internal/apply"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/render/flux"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/internal/workloadidentity"
)

// Kubeconfigs copies what the registration controller has published beside each set that delivers here. It writes a kubeconfig copy only
// if the bytes change, because Flux reconciles every object that refers to it after each write. While nothing is
// published, the copies stay as they are.
func (r *Keeper) Kubeconfigs(ctx context.Context, c *Cluster) error {
	var errs []error
	for _, ns := range c.Namespaces() {
		err := r.kubeconfig(ctx, c, ns)
		if errors.Is(err, apply.ErrNotOwned) {
			ctrl.LoggerFrom(ctx).Info("the kubeconfig copy is not written", "why", err.Error())
			c.taken(ns, err)
			err = nil
		}
		errs = append(errs, err, r.dropFormer(ctx, c, ns))
	}
	return errors.Join(errs...)
}

// taken notes that an object which is not the hub's has the name of the kubeconfig copy in a namespace. It holds up what is delivered
// from there, whose status says so, and nothing else of the cluster: a tenant who may write there may have made it. No event tells that
// it is gone.
func (c *Cluster) taken(namespace string, by error) {
	if c.foreign == nil {
		c.foreign = map[string]error{}
	}
	c.foreign[namespace] = by
	c.LookAgain(observed.RetryFailed)
}

func (r *Keeper) kubeconfig(ctx context.Context, c *Cluster, namespace string) error {
	there, err := r.Reader.CopyThere(ctx, r.Client, c.Observed(), c.CopyKind(namespace), namespace)
	if err != nil {
		return err
	}
	if gone, err := r.letKubeconfigGo(ctx, c, there, namespace); err != nil || gone {
		return err
	}
	if c.Reach[namespace].ByTeam() { // the tokens controller writes it
		c.inPlace[namespace] = c.HasToken(there, namespace)
		return nil
	}
	c.inPlace[namespace] = there != nil
	if !c.Answered() || !c.Reaches(namespace) {
		return nil
	}
	if needed, err := r.needsKubeconfig(ctx, c, there, namespace); err != nil || !needed {
		return err
	}
	for k, o := range c.Objects {
		if there != nil && k.Namespace == namespace && o.Replaced != "" {
			c.inPlace[namespace] = false
			return nil // Flux must not meet the new cluster with what it remembers of the old one
		}
	}
	credential := c.Registration.Status.Credential
	if there != nil && there.Annotations[hubv1.FingerprintAnnotation] == credential.Fingerprint {
		return nil
	}
	c.inPlace[namespace] = false // what is there is of before, and may lead to another cluster
	content, err := r.kubeconfigContent(ctx, c, namespace)
	if err != nil || content == nil {
		return err
	}
	u := r.kubeconfigObject(c, namespace, content)
	if there != nil && there.DeletionTimestamp != nil {
		served(u, there)
	}
	if _, err := apply.Update(ctx, r.Client, u, hubv1.FieldManager); err != nil {
		return err
	}
	c.inPlace[namespace] = true
	return nil
}

// served makes a write apply only to the kubeconfig copy that was read, if a user has deleted it. The hub's
// finalizer keeps it, and the hub keeps it current, for as long as Flux needs it. If the hub released it and made
// another, there would be a moment without a copy, in which a HelmRelease that is being deleted forgets its
// release. A copy that has lost the hub's finalizer cannot get it back, and is made again when it is gone.
func served(u *unstructured.Unstructured, there *metav1.PartialObjectMetadata) {
	u.SetUID(there.UID) // and not one that took its name meanwhile
	if !slices.Contains(there.Finalizers, hubv1.Finalizer) {
		u.SetFinalizers(nil)
	}
}

// letKubeconfigGo releases a kubeconfig copy that a user has deleted and that no Flux object needs any more. If a delivery needs
// one later, another one is made. It returns whether there is no copy for now.
func (r *Keeper) letKubeconfigGo(ctx context.Context, c *Cluster, there *metav1.PartialObjectMetadata,
	namespace string) (gone bool, err error) {
	if there == nil || there.DeletionTimestamp == nil || !slices.Contains(there.Finalizers, hubv1.Finalizer) || c.HasObjects(namespace) {
		return false, nil
	}
	if left, err := r.Reader.ObjectsLeft(ctx, c.Observed(), namespace); err != nil || len(left) > 0 {
		return false, err
	}
	c.LookAgain(observed.Soon) // another finalizer may hold it, and then no event tells that ours does not
	if err := apply.RemoveFinalizer(ctx, r.Client, there, hubv1.Finalizer); err != nil {
		return false, fmt.Errorf("let the kubeconfig copy go: %w", err)
	}
	return true, nil
}

// dropFormer deletes the kubeconfig copy of the other kind, after the registration has changed its kind and the last object
// that was made for the other one has gone.
func (r *Keeper) dropFormer(ctx context.Context, c *Cluster, namespace string) error {
	former := observed.ConfigMapKind
	if c.CopyKind(namespace) == former {
		former = observed.SecretKind
	}
	there, err := r.Reader.CopyThere(ctx, r.Client, c.Observed(), former, namespace)
	if err != nil || there == nil || !c.Answered() {
		return observed.IgnoreNotOwned(err)
	}
	left, err := r.Reader.ObjectsLeft(ctx, c.Observed(), namespace)
	if err != nil || slices.ContainsFunc(left, func(o metav1.PartialObjectMetadata) bool {
		return c.Replaced(o.Annotations[hubv1.ClusterUIDAnnotation]) != ""
	}) {
		return err
	}
	return r.dropKubeconfig(ctx, c, former, namespace)
}

// needsKubeconfig returns false if all objects of a namespace's deliveries are leaving, and nothing has to be removed for
// them. Before a copy is made for objects that are leaving, it reads live whether they are there: the copy is deleted with the last of
// them, and the cache may show that first.
func (r *Keeper) needsKubeconfig(ctx context.Context, c *Cluster, there *metav1.PartialObjectMetadata, namespace string) (bool, error) {
	if slices.ContainsFunc(c.Deliveries, func(d *planned.Delivery) bool { return d.Namespace == namespace && d.Serves() }) {
		return true, nil
	}
	if has := c.HasObjects(namespace); !has || there != nil {
		return has, nil
	}
	left, err := r.Reader.ObjectsLeft(ctx, c.Observed(), namespace)
	return len(left) > 0, err
}

// kubeconfigContent returns the content of a kubeconfig copy, by field; nil if what was published does not exist any more, or may
// not be used in the namespace.
func (r *Keeper) kubeconfigContent(ctx context.Context, c *Cluster, namespace string) (map[string]any, error) {
	if c.Unprobed() {
		return r.accessContent(c, namespace), nil
	}
	config, err := credential.Read(ctx, r.Live, r.Config, c.Registration)
	if err == nil && config == nil && status.IsTrue(c.Registration, hubv1.KubeConfigValidCondition) {
		c.LookAgain(credential.LostTime)
	}
	if err != nil || config == nil {
		return nil, err
	}
	return map[string]any{
		"type": string(corev1.SecretTypeOpaque),
		"data": map[string]any{flux.KubeconfigKey: base64.StdEncoding.EncodeToString(config.Minimal())},
	}, nil
}

// accessContent returns the content of a ConfigMap for workload identity. Not each user who may register a cluster
// may use the namespace's ServiceAccounts.
func (r *Keeper) accessContent(c *Cluster, namespace string) map[string]any {
	kc := c.Registration.Spec.KubeConfig
	if kc == nil || kc.WorkloadIdentity == nil || workloadidentity.Refusal(c.Key.Namespace, namespace, r.Config.IsPlatform) != "" {
		return nil
	}
	access, err := workloadidentity.Check(kc.WorkloadIdentity, r.Config.Rules)
	if err != nil || access.Fingerprint() != c.Registration.Status.Credential.Fingerprint {
		return nil // the registration controller looks at it first, and wakes us
	}
	data := make(map[string]any, len(access.Data))
	for k, v := range access.Data {
		data[k] = v
	}
	return map[string]any{"data": data}
}

func (r *Keeper) kubeconfigObject(c *Cluster, namespace string, content map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(c.CopyKind(namespace)))
	u.SetNamespace(namespace)
	u.SetName(identity.KubeconfigCopy(r.Config.HubID, c.Key))
	u.SetFinalizers([]string{hubv1.Finalizer})
	u.SetLabels(map[string]string{
		"app.kubernetes.io/managed-by": "chandler",
		hubv1.CopyLabel:                "true",
		hubv1.ClusterKeyLabel:          identity.ClusterKey(r.Config.HubID, c.Key),
		hubv1.ClusterLabel:             identity.LabelValue(c.Key.Name),
		fluxmeta.LabelKeyWatch:         fluxmeta.LabelValueWatchEnabled,
	})
	u.SetAnnotations(map[string]string{
		hubv1.RegistrationAnnotation: c.Key.String(),
		hubv1.FingerprintAnnotation:  c.Registration.Status.Credential.Fingerprint,
	})
	return u
}

// keptBeside returns the metadata of the copies that the hub keeps for a cluster, as it was when this pass asked first.
func (r *Keeper) keptBeside(ctx context.Context, c *Cluster, kind string) ([]metav1.PartialObjectMetadata, error) {
	if kept, asked := c.kept[kind]; asked {
		return kept, nil
	}
	kept, err := index.Copies(ctx, r.Client, kind, identity.ClusterKey(r.Config.HubID, c.Key))
	if err != nil {
		return nil, err
	}
	if c.kept == nil {
		c.kept = map[string][]metav1.PartialObjectMetadata{}
	}
	c.kept[kind] = kept
	return kept, nil
}

// DropForsaken lets the kubeconfig copies go of a cluster that has no delivery in their namespace any more, as when a user has deleted the
// deliveries and their Flux objects. No reconcile comes after, and Flux has nothing there to use them for.
func (r *Keeper) DropForsaken(ctx context.Context, c *Cluster) error {
	var errs []error
	for _, kind := range []string{observed.SecretKind, observed.ConfigMapKind} {
		kept, err := r.keptBeside(ctx, c, kind)
		if err != nil {
			return err
		}
		for i := range kept {
			m := &kept[i]
			teams := m.Labels[hubv1.CopyLabel] == identity.TeamCopy
			served := func(d *planned.Delivery) bool { return d.Namespace == m.Namespace }
			// Beside other deliveries, the tokens controller knows whether a Team needs its copy: it goes by all that are there, also by forged
			// ones.
			if slices.ContainsFunc(c.Deliveries, served) || teams && len(c.Deliveries) > 0 {
				continue
			}
			if _, err := r.Reader.ReachOf(ctx, c.Observed(), m.Namespace); err != nil {
				return err
			}
			// A Team reaches a cluster by the labels of its registration, which may have gone.
			if m.Name != identity.KubeconfigCopy(r.Config.HubID, c.Key) || !c.Reaches(m.Namespace) && !teams {
				continue
			}
			if left, err := r.Reader.ObjectsLeft(ctx, c.Observed(), m.Namespace); err != nil || len(left) > 0 {
				errs = append(errs, err)
				continue
			}
			errs = append(errs, r.dropKubeconfig(ctx, c, kind, m.Namespace))
		}
	}
	return errors.Join(errs...)
}

// DropKubeconfigs removes the kubeconfig copies of a namespace. The last Flux object that used one must be gone.
func (r *Keeper) DropKubeconfigs(ctx context.Context, c *Cluster, namespace string) error {
	return errors.Join(r.dropKubeconfig(ctx, c, observed.SecretKind, namespace), r.dropKubeconfig(ctx, c, observed.ConfigMapKind, namespace))
}

// dropKubeconfig removes the kubeconfig copy of a kind. The last Flux object that used it must be gone.
func (r *Keeper) dropKubeconfig(ctx context.Context, c *Cluster, kind, namespace string) error {
	there, err := r.Reader.CopyThere(ctx, r.Live, c.Observed(), kind, namespace)
	if err != nil || there == nil {
		return observed.IgnoreNotOwned(err)
	}
	if err := apply.RemoveFinalizer(ctx, r.Client, there, hubv1.Finalizer); err != nil {
		return fmt.Errorf("let the kubeconfig copy go: %w", err)
	}
	return apply.Delete(ctx, r.Client, there)
}
