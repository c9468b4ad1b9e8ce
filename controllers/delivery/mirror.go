// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/credential"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/internal/apply"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/internal/workloadidentity"
)

// The kinds of mirrors: a Secret with the kubeconfig, or a ConfigMap that says how Flux logs in by workload identity.
const (
	secretKind    = "Secret"
	configMapKind = "ConfigMap"
)

// mirrors copies what the registration controller has published beside each set that delivers here. It writes a mirror only
// if the bytes change, because Flux reconciles every object that refers to it after each write. While nothing is
// published, the mirrors stay as they are.
func (r *Reconciler) mirrors(ctx context.Context, c *cluster) error {
	var errs []error
	for _, ns := range c.namespaces() {
		err := r.mirror(ctx, c, ns)
		if errors.Is(err, apply.ErrNotOwned) {
			ctrl.LoggerFrom(ctx).Info("the mirror is not written", "why", err.Error())
			c.taken(ns, err)
			err = nil
		}
		errs = append(errs, err, r.dropFormer(ctx, c, ns))
	}
	return errors.Join(errs...)
}

// taken notes that an object which is not the hub's has the mirror's name in a namespace. It holds up what is delivered from there, whose
// status says so, and nothing else of the cluster: a tenant who may write there may have made it. No event tells that it is gone.
func (c *cluster) taken(namespace string, by error) {
	if c.unmirrored == nil {
		c.unmirrored = map[string]error{}
	}
	c.unmirrored[namespace] = by
	c.lookAgain(retryFailed)
}

// mirrorKind is the kind of mirror that the cluster's objects in a namespace refer to.
func (c *cluster) mirrorKind(namespace string) string {
	if c.unprobed() && !c.reach[namespace].ByTeam() {
		return configMapKind
	}
	return secretKind
}

// mirrorThere returns the metadata of a mirror, and nil if it does not exist. It returns an error if an object of
// that name is not the hub's.
func (r *Reconciler) mirrorThere(ctx context.Context, reader client.Reader, c *cluster, kind,
	namespace string) (*metav1.PartialObjectMetadata, error) {
	there := &metav1.PartialObjectMetadata{}
	there.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	name := types.NamespacedName{Namespace: namespace, Name: identity.Mirror(r.Config.HubID, c.key)}
	err := reader.Get(ctx, name, there)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the mirror: %w", err)
	case there.Labels[hubv1.ClusterKeyLabel] != identity.ClusterKey(r.Config.HubID, c.key):
		return nil, fmt.Errorf("%s %s: %w", kind, name, apply.ErrNotOwned)
	}
	return there, nil
}

// namespaces returns those of the deliveries.
func (c *cluster) namespaces() []string {
	var out []string
	seen := map[string]bool{}
	for _, d := range c.deliveries {
		if !seen[d.Namespace] {
			seen[d.Namespace] = true
			out = append(out, d.Namespace)
		}
	}
	return out
}

func (r *Reconciler) mirror(ctx context.Context, c *cluster, namespace string) error {
	there, err := r.mirrorThere(ctx, r.Client, c, c.mirrorKind(namespace), namespace)
	if err != nil {
		return err
	}
	if gone, err := r.letMirrorGo(ctx, c, there, namespace); err != nil || gone {
		return err
	}
	if c.reach[namespace].ByTeam() { // the tokens controller writes it
		c.mirrored[namespace] = c.hasToken(there, namespace)
		return nil
	}
	c.mirrored[namespace] = there != nil
	if !c.answered() || !c.reaches(namespace) {
		return nil
	}
	if needed, err := r.needsMirror(ctx, c, there, namespace); err != nil || !needed {
		return err
	}
	for k, o := range c.objects {
		if there != nil && k.Namespace == namespace && o.Replaced != "" {
			c.mirrored[namespace] = false
			return nil // Flux must not meet the new cluster with what it remembers of the old one
		}
	}
	credential := c.registration.Status.Credential
	if there != nil && there.Annotations[hubv1.FingerprintAnnotation] == credential.Fingerprint {
		return nil
	}
	content, err := r.mirrorContent(ctx, c, namespace)
	if err != nil || content == nil {
		c.mirrored[namespace] = false // it is that of before, and may lead to another cluster
		return err
	}
	u := r.mirrorObject(c, namespace, content)
	if there != nil && there.DeletionTimestamp != nil {
		served(u, there)
	}
	if _, err := apply.Update(ctx, r.Client, u, hubv1.FieldManager); err != nil {
		return err
	}
	c.mirrored[namespace] = true
	return nil
}

// hasToken returns whether a mirror has the token with which Flux delivers a Team's sets to this very cluster now.
func (c *cluster) hasToken(there *metav1.PartialObjectMetadata, namespace string) bool {
	from, rights := c.reach[namespace], c.rights(namespace)
	if there == nil || there.Labels[hubv1.MirrorLabel] != identity.TeamMirror || rights == nil || c.registration == nil ||
		there.Annotations[hubv1.FingerprintAnnotation] != credential.TeamFingerprint(c.registration, from, rights.AddonDelivery) {
		return false
	}
	for k, o := range c.objects {
		if k.Namespace == namespace && o.Replaced != "" {
			return false
		}
	}
	return true
}

// served makes a write apply only to the mirror that was read, if a user has deleted that mirror. The hub's
// finalizer keeps it, and the hub keeps it current, for as long as Flux needs it. If the hub released it and made
// another, there would be a moment without a mirror, in which a HelmRelease that is being deleted forgets its
// release. A mirror that has lost the hub's finalizer cannot get it back, and is made again when it is gone.
func served(u *unstructured.Unstructured, there *metav1.PartialObjectMetadata) {
	u.SetUID(there.UID) // and not one that took its name meanwhile
	if !slices.Contains(there.Finalizers, hubv1.MirrorFinalizer) {
		u.SetFinalizers(nil)
	}
}

// letMirrorGo releases a mirror that a user has deleted and that no Flux object needs any more. If a delivery needs
// one later, another one is made. It returns whether there is no mirror for now.
func (r *Reconciler) letMirrorGo(ctx context.Context, c *cluster, there *metav1.PartialObjectMetadata,
	namespace string) (gone bool, err error) {
	if there == nil || there.DeletionTimestamp == nil || !slices.Contains(there.Finalizers, hubv1.MirrorFinalizer) || c.hasObjects(namespace) {
		return false, nil
	}
	if left, err := r.objectsLeft(ctx, c, namespace); err != nil || len(left) > 0 {
		return false, err
	}
	c.lookAgain(soon) // another finalizer may hold it, and then no event tells that ours does not
	if err := apply.RemoveFinalizer(ctx, r.Client, there, hubv1.MirrorFinalizer); err != nil {
		return false, fmt.Errorf("let the mirror go: %w", err)
	}
	return true, nil
}

// hasObjects returns whether a namespace has Flux objects of the cluster.
func (c *cluster) hasObjects(namespace string) bool {
	for k := range c.objects {
		if k.Namespace == namespace {
			return true
		}
	}
	return false
}

// dropFormer deletes the mirror of the other kind, after the registration has changed its kind and the last object
// that was made for the other one has gone.
func (r *Reconciler) dropFormer(ctx context.Context, c *cluster, namespace string) error {
	former := configMapKind
	if c.mirrorKind(namespace) == former {
		former = secretKind
	}
	there, err := r.mirrorThere(ctx, r.Client, c, former, namespace)
	if err != nil || there == nil || !c.answered() {
		return ignoreNotOwned(err)
	}
	left, err := r.objectsLeft(ctx, c, namespace)
	if err != nil || slices.ContainsFunc(left, func(o metav1.PartialObjectMetadata) bool {
		return c.replaced(o.Annotations[hubv1.ClusterUIDAnnotation]) != ""
	}) {
		return err
	}
	return r.dropMirror(ctx, c, former, namespace)
}

// needsMirror returns false if all objects of a namespace's deliveries are leaving, and nothing has to be removed for
// them. Before a mirror is made for objects that are leaving, it reads live whether they are there: the mirror is deleted with the last of
// them, and the cache may show that first.
func (r *Reconciler) needsMirror(ctx context.Context, c *cluster, there *metav1.PartialObjectMetadata, namespace string) (bool, error) {
	if slices.ContainsFunc(c.deliveries, func(d *delivery) bool { return d.Namespace == namespace && d.serves() }) {
		return true, nil
	}
	if has := c.hasObjects(namespace); !has || there != nil {
		return has, nil
	}
	left, err := r.objectsLeft(ctx, c, namespace)
	return len(left) > 0, err
}

// mirrorContent returns the content of a mirror, by field; nil if what was published does not exist any more, or may
// not be used in the namespace.
func (r *Reconciler) mirrorContent(ctx context.Context, c *cluster, namespace string) (map[string]any, error) {
	if c.unprobed() {
		return r.accessContent(c, namespace), nil
	}
	config, err := credential.Read(ctx, r.Live, r.Config, c.registration)
	if err == nil && config == nil && status.IsTrue(c.registration, hubv1.KubeConfigValidCondition) {
		c.lookAgain(credential.LostTime)
	}
	if err != nil || config == nil {
		return nil, err
	}
	return map[string]any{
		"type": string(corev1.SecretTypeOpaque),
		"data": map[string]any{render.MirrorKey: base64.StdEncoding.EncodeToString(config.Minimal())},
	}, nil
}

// accessContent returns the content of a ConfigMap for workload identity. Not each user who may register a cluster
// may use the namespace's ServiceAccounts.
func (r *Reconciler) accessContent(c *cluster, namespace string) map[string]any {
	kc := c.registration.Spec.KubeConfig
	if kc == nil || kc.WorkloadIdentity == nil || workloadidentity.Refusal(c.key.Namespace, namespace, r.Config.IsPlatform) != "" {
		return nil
	}
	access, err := workloadidentity.Check(kc.WorkloadIdentity, r.Config.Rules)
	if err != nil || access.Fingerprint() != c.registration.Status.Credential.Fingerprint {
		return nil // the registration controller looks at it first, and wakes us
	}
	data := make(map[string]any, len(access.Data))
	for k, v := range access.Data {
		data[k] = v
	}
	return map[string]any{"data": data}
}

func (r *Reconciler) mirrorObject(c *cluster, namespace string, content map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(c.mirrorKind(namespace)))
	u.SetNamespace(namespace)
	u.SetName(identity.Mirror(r.Config.HubID, c.key))
	u.SetFinalizers([]string{hubv1.MirrorFinalizer})
	u.SetLabels(map[string]string{
		"app.kubernetes.io/managed-by": "chandler",
		hubv1.MirrorLabel:              "true",
		hubv1.ClusterKeyLabel:          identity.ClusterKey(r.Config.HubID, c.key),
		hubv1.ClusterLabel:             identity.LabelValue(c.key.Name),
		fluxmeta.LabelKeyWatch:         fluxmeta.LabelValueWatchEnabled,
	})
	u.SetAnnotations(map[string]string{
		hubv1.RegistrationAnnotation: c.key.String(),
		hubv1.FingerprintAnnotation:  c.registration.Status.Credential.Fingerprint,
	})
	return u
}

// keptBeside returns the metadata of the mirrors and copies that the hub keeps for a cluster, as it was when this pass asked first.
func (r *Reconciler) keptBeside(ctx context.Context, c *cluster, kind string) ([]metav1.PartialObjectMetadata, error) {
	if kept, asked := c.kept[kind]; asked {
		return kept, nil
	}
	kept, err := index.Mirrors(ctx, r.Client, kind, identity.ClusterKey(r.Config.HubID, c.key))
	if err != nil {
		return nil, err
	}
	if c.kept == nil {
		c.kept = map[string][]metav1.PartialObjectMetadata{}
	}
	c.kept[kind] = kept
	return kept, nil
}

// dropForsaken lets the mirrors go of a cluster that has no delivery in their namespace any more, as when a user has deleted the
// deliveries and their Flux objects. No reconcile comes after, and Flux has nothing there to use them for.
func (r *Reconciler) dropForsaken(ctx context.Context, c *cluster) error {
	var errs []error
	for _, kind := range []string{secretKind, configMapKind} {
		mirrors, err := r.keptBeside(ctx, c, kind)
		if err != nil {
			return err
		}
		for i := range mirrors {
			m := &mirrors[i]
			teams := m.Labels[hubv1.MirrorLabel] == identity.TeamMirror
			served := func(d *delivery) bool { return d.Namespace == m.Namespace }
			// Beside other deliveries, the tokens controller knows whether a Team needs its copy: it goes by all that are there, also by forged
			// ones.
			if slices.ContainsFunc(c.deliveries, served) || teams && len(c.deliveries) > 0 {
				continue
			}
			if _, err := r.reachOf(ctx, c, m.Namespace); err != nil {
				return err
			}
			// A Team reaches a cluster by the labels of its registration, which may have gone.
			if m.Name != identity.Mirror(r.Config.HubID, c.key) || !c.reaches(m.Namespace) && !teams {
				continue
			}
			if left, err := r.objectsLeft(ctx, c, m.Namespace); err != nil || len(left) > 0 {
				errs = append(errs, err)
				continue
			}
			errs = append(errs, r.dropMirror(ctx, c, kind, m.Namespace))
		}
	}
	return errors.Join(errs...)
}

// dropMirror removes the mirror of a kind. The last Flux object that used it must be gone.
func (r *Reconciler) dropMirror(ctx context.Context, c *cluster, kind, namespace string) error {
	there, err := r.mirrorThere(ctx, r.Live, c, kind, namespace)
	if err != nil || there == nil {
		return ignoreNotOwned(err)
	}
	if err := apply.RemoveFinalizer(ctx, r.Client, there, hubv1.MirrorFinalizer); err != nil {
		return fmt.Errorf("let the mirror go: %w", err)
	}
	return apply.Delete(ctx, r.Client, there)
}

// ignoreNotOwned ignores that an object which is not the hub's has a mirror's name: that does not matter to a caller that
// deletes.
func ignoreNotOwned(err error) error {
	if errors.Is(err, apply.ErrNotOwned) {
		return nil
	}
	return err
}
