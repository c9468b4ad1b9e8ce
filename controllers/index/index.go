// SPDX-License-Identifier: Apache-2.0

// Package index holds the field indexes and the cache settings that the controllers share. Every lookup goes through an
// index, so that the work for one event does not grow with the fleet. The caches keep only the fields that a controller
// reads.
package index

import (
	"context"
	"fmt"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/fluxstate"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/origin"
	"github.com/chandler-hub/chandler/internal/team"
)

// The fields to list by.
const (
	// DeliveryRegistration of an AddonDelivery: namespace/name of its registration.
	DeliveryRegistration = "registration"
	// DeliverySet of an AddonDelivery: the name of its set, in its own namespace.
	DeliverySet = "addonset"
	// Governs of a Team: the hub namespaces that it claims.
	Governs = "governs"
	// RegistrationOrigin of a ClusterRegistration: kind.group/name of its origin, in its own namespace.
	RegistrationOrigin = "origin"
	// RegistrationSecret of a ClusterRegistration: the Secret that its kubeconfig came from, in its own namespace.
	RegistrationSecret = "secret"
	// ClusterID of a ClusterRegistration: the UID of its cluster; "" if that is not known.
	ClusterID = "clusterID"
	// ClusterKey of a Flux object, and of a copy's metadata: the cluster-key label.
	ClusterKey = "clusterKey"
	// Uses of a HelmRelease, Kustomization or HelmChart: the sources and charts that it refers to, as Source writes them. Of an
	// AddonSet: those that it follows.
	Uses = "uses"
	// KubeConfigSecret of a HelmRelease that is not the hub's: namespace/name of the Secret with its kubeconfig.
	KubeConfigSecret = "kubeConfigSecret"
	// FluxWaits of a Flux object: Waits if Flux waits for its cluster's first answer. As many do at most as Flux has workers.
	FluxWaits = "fluxWaits"
)

// Waits is a value of FluxWaits.
const Waits = "true"

// ServiceAccount is a kind that Flux objects use beside sources.
const ServiceAccount = "ServiceAccount"

// Source returns a value of Uses.
func Source(kind, namespace, name string) string { return kind + "/" + namespace + "/" + name }

// UsesOf returns the sources and charts that an object refers to.
func UsesOf(obj client.Object) []string {
	one := func(kind, namespace, name string) []string {
		if namespace == "" {
			namespace = obj.GetNamespace()
		}
		return []string{Source(kind, namespace, name)}
	}
	switch o := obj.(type) {
	case *helmv2.HelmRelease:
		var out []string
		if ref := o.Spec.ChartRef; ref != nil {
			out = one(ref.Kind, ref.Namespace, ref.Name)
		}
		return append(out, account(o.Namespace, o.Spec.ServiceAccountName)...)
	case *kustomizev1.Kustomization:
		return append(one(o.Spec.SourceRef.Kind, o.Spec.SourceRef.Namespace, o.Spec.SourceRef.Name),
			account(o.Namespace, o.Spec.ServiceAccountName)...)
	case *sourcev1.HelmChart:
		return one(o.Spec.SourceRef.Kind, "", o.Spec.SourceRef.Name)
	case *hubv1.AddonSet:
		var out []string
		for i := range o.Status.Sources {
			out = append(out, one(o.Status.Sources[i].Kind, o.Status.Sources[i].Namespace, o.Status.Sources[i].Name)...)
		}
		return out
	}
	return nil
}

// Read is a ConfigMap or Secret of its namespace that a Flux object reads. Key is empty for all keys.
type Read struct {
	Kind, Name, Key string
	Optional        bool
}

// ReadsOf returns what a Flux object of the hub reads of copies of what lies beside its cluster.
func ReadsOf(obj client.Object) []Read {
	if obj.GetLabels()[hubv1.ClusterKeyLabel] == "" {
		return nil
	}
	var out []Read
	switch o := obj.(type) {
	case *helmv2.HelmRelease:
		for _, ref := range o.Spec.ValuesFrom {
			if identity.IsCopy(ref.Name) {
				out = append(out, Read{ref.Kind, ref.Name, ref.GetValuesKey(), ref.Optional})
			}
		}
	case *kustomizev1.Kustomization:
		if o.Spec.PostBuild == nil {
			return nil
		}
		for _, ref := range o.Spec.PostBuild.SubstituteFrom {
			if identity.IsCopy(ref.Name) {
				out = append(out, Read{ref.Kind, ref.Name, "", ref.Optional})
			}
		}
	}
	return out
}

func account(namespace, name string) []string {
	if name == "" {
		return nil
	}
	return []string{Source(ServiceAccount, namespace, name)}
}

// Origin returns the value of RegistrationOrigin for a reference.
func Origin(ref hubv1.OriginReference) string { return ref.Kind + "." + ref.APIGroup + "/" + ref.Name }

// DeliveriesOf selects the AddonDeliveries of a registration.
func DeliveriesOf(registration types.NamespacedName) client.MatchingFields {
	return client.MatchingFields{DeliveryRegistration: registration.String()}
}

// Registration returns the key that an annotation or reference "namespace/name" names; false if it names none.
func Registration(s string) (types.NamespacedName, bool) {
	ns, name, ok := strings.Cut(s, "/")
	return types.NamespacedName{Namespace: ns, Name: name}, ok && ns != "" && name != ""
}

// Add adds the indexes to a manager's cache.
func Add(ctx context.Context, indexer client.FieldIndexer) error {
	for _, i := range []struct {
		obj   client.Object
		field string
		value func(client.Object) []string
	}{
		{&hubv1.AddonDelivery{}, DeliveryRegistration, func(o client.Object) []string {
			ref := o.(*hubv1.AddonDelivery).Spec.RegistrationRef
			return []string{types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}.String()}
		}},
		{&hubv1.AddonDelivery{}, DeliverySet, func(o client.Object) []string { return []string{o.(*hubv1.AddonDelivery).Spec.AddonSetRef.Name} }},
		{&hubv1.Team{}, Governs, func(o client.Object) []string { return team.Claims(o.(*hubv1.Team)) }},
		{&hubv1.ClusterRegistration{}, RegistrationOrigin, func(o client.Object) []string {
			if ref := o.(*hubv1.ClusterRegistration).Spec.OriginRef; ref != nil {
				return []string{Origin(*ref)}
			}
			return nil
		}},
		{&hubv1.ClusterRegistration{}, RegistrationSecret, registrationSecrets},
		{&hubv1.ClusterRegistration{}, ClusterID, func(o client.Object) []string {
			return []string{o.(*hubv1.ClusterRegistration).Status.ClusterID()}
		}},
		{&helmv2.HelmRelease{}, ClusterKey, clusterKey},
		{&kustomizev1.Kustomization{}, ClusterKey, clusterKey},
		{metadata("Secret"), ClusterKey, copyKey},
		{metadata("ConfigMap"), ClusterKey, copyKey},
		{&helmv2.HelmRelease{}, Uses, UsesOf},
		{&kustomizev1.Kustomization{}, Uses, UsesOf},
		{&sourcev1.HelmChart{}, Uses, UsesOf},
		{&hubv1.AddonSet{}, Uses, UsesOf},
		{&helmv2.HelmRelease{}, KubeConfigSecret, foreignSecret},
		{&helmv2.HelmRelease{}, FluxWaits, fluxWaits},
		{&kustomizev1.Kustomization{}, FluxWaits, fluxWaits},
	} {
		if err := indexer.IndexField(ctx, i.obj, i.field, i.value); err != nil {
			return fmt.Errorf("index %T by %s: %w", i.obj, i.field, err)
		}
	}
	return nil
}

func fluxWaits(o client.Object) []string {
	if fluxstate.Waiting(o, true).IsZero() {
		return nil
	}
	return []string{Waits}
}

// registrationSecrets are the Secrets whose change concerns a registration: the one named in its spec, the one in use, and
// the one that its kind of origin will have.
func registrationSecrets(o client.Object) []string {
	reg := o.(*hubv1.ClusterRegistration)
	var names []string
	add := func(name string) {
		for _, n := range names {
			if n == name {
				return
			}
		}
		if name != "" {
			names = append(names, name)
		}
	}
	if kc := reg.Spec.KubeConfig; kc != nil && kc.SecretRef != nil {
		add(kc.SecretRef.Name)
	}
	if ref := reg.Spec.OriginRef; ref != nil {
		if kind, err := origin.KindOf(*ref); err == nil {
			add(kind.UsualSecret(ref.Name))
		}
	}
	if reg.Status.Credential != nil {
		add(reg.Status.Credential.SecretName)
	}
	return names
}

func clusterKey(o client.Object) []string {
	if v := o.GetLabels()[hubv1.ClusterKeyLabel]; v != "" {
		return []string{v}
	}
	return nil
}

func copyKey(o client.Object) []string {
	if _, ok := o.GetLabels()[hubv1.CopyLabel]; !ok {
		return nil
	}
	return clusterKey(o)
}

func metadata(kind string) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	return m
}

// Copies returns the metadata of what looks like the copies that a hub keeps for a cluster, by its key. kind is Secret or ConfigMap. Who
// made them, and of which namespace they are, is for the caller to look at. They are the cache's own, so no caller may write to them.
func Copies(ctx context.Context, c client.Reader, kind, clusterKey string) ([]metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind + "List"))
	if err := c.List(ctx, list, client.MatchingFields{ClusterKey: clusterKey}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the copies of a cluster: %w", err)
	}
	return list.Items, nil
}

// FluxObjects returns the HelmReleases and then the Kustomizations that name a cluster, by its key. They are the
// cache's own, so no caller may write to them.
func FluxObjects(ctx context.Context, c client.Reader, clusterKey string, opts ...client.ListOption) ([]client.Object, error) {
	opts = append(opts, client.MatchingFields{ClusterKey: clusterKey}, client.UnsafeDisableDeepCopy)
	releases, kustomizations := &helmv2.HelmReleaseList{}, &kustomizev1.KustomizationList{}
	if err := c.List(ctx, releases, opts...); err != nil {
		return nil, fmt.Errorf("list the HelmReleases of a cluster: %w", err)
	}
	if err := c.List(ctx, kustomizations, opts...); err != nil {
		return nil, fmt.Errorf("list the Kustomizations of a cluster: %w", err)
	}
	out := make([]client.Object, 0, len(releases.Items)+len(kustomizations.Items))
	for i := range releases.Items {
		out = append(out, &releases.Items[i])
	}
	for i := range kustomizations.Items {
		out = append(out, &kustomizations.Items[i])
	}
	return out, nil
}

// foreignSecret returns the Secret with the kubeconfig of a HelmRelease that is not the hub's.
func foreignSecret(o client.Object) []string {
	hr := o.(*helmv2.HelmRelease)
	if kc := hr.Spec.KubeConfig; kc != nil && kc.SecretRef != nil && hr.Labels[hubv1.ClusterKeyLabel] == "" {
		return []string{hr.Namespace + "/" + kc.SecretRef.Name}
	}
	return nil
}

// ByWorkloadIdentity returns whether Flux logs in to the target of a HelmRelease or Kustomization by workload
// identity.
func ByWorkloadIdentity(obj client.Object) bool {
	kc := KubeConfig(obj)
	return kc != nil && kc.ConfigMapRef != nil
}

// KubeConfig returns spec.kubeConfig of a HelmRelease or Kustomization; nil if it has none.
func KubeConfig(obj client.Object) *fluxmeta.KubeConfigReference {
	switch o := obj.(type) {
	case *helmv2.HelmRelease:
		return o.Spec.KubeConfig
	case *kustomizev1.Kustomization:
		return o.Spec.KubeConfig
	}
	return nil
}
