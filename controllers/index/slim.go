// SPDX-License-Identifier: Apache-2.0

package index

import (
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/fluxstate"
	"github.com/chandler-hub/chandler/internal/memory"
)

// CacheOptions returns what the informers keep: of Flux objects and revisions only those that the hub made, and of
// each object only the fields that are read.
func CacheOptions() cache.Options {
	ours := labels.NewSelector()
	for _, r := range must(labels.ParseToRequirements(hubv1.ClusterKeyLabel)) {
		ours = ours.Add(r)
	}
	revisions := labels.NewSelector().Add(must(labels.ParseToRequirements(hubv1.AddonSetLabel))...)
	charts := cache.ByObject{Label: labels.NewSelector().Add(must(labels.ParseToRequirements(hubv1.ChartLabel))...)}
	sources := cache.ByObject{Label: labels.NewSelector().Add(must(labels.ParseToRequirements(hubv1.SourceLabel))...)}
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			// All of them, because one that a user wrote by hand may have the release that an add-on is about to get.
			&helmv2.HelmRelease{}:        {Transform: slimHelmRelease},
			&kustomizev1.Kustomization{}: {Label: ours, Transform: slimKustomization},
			&hubv1.AddonDelivery{}:       {Transform: slimDelivery},
			&appsv1.ControllerRevision{}: {Label: revisions},
			&sourcev1.HelmChart{}:        charts,
			&sourcev1.HelmRepository{}:   sources,
			&sourcev1.GitRepository{}:    sources,
			&sourcev1.OCIRepository{}:    sources,
			&sourcev1.Bucket{}:           sources,
			&corev1.ServiceAccount{}:     sources,
			partial("v1", "Secret"):      {Transform: slimSecret},
			partial("v1", "ConfigMap"):   {Transform: slimSecret},
			partial("v1", "Namespace"):   {Transform: slimSecret},
			partial("apiextensions.k8s.io/v1", "CustomResourceDefinition"): {Transform: slimMeta},
		},
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err) // a constant selector that does not parse
	}
	return v
}

func partial(apiVersion, kind string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}}
}

// slimHelmRelease keeps what plans and predicates read, and drops the values, which would be most of the hub's memory
// for 50,000 HelmReleases.
func slimHelmRelease(in any) (any, error) {
	o, ok := in.(*helmv2.HelmRelease)
	if !ok {
		return in, nil
	}
	slimMetadata(&o.ObjectMeta)
	spec := helmv2.HelmReleaseSpec{
		Suspend: o.Spec.Suspend, ChartRef: o.Spec.ChartRef, ServiceAccountName: o.Spec.ServiceAccountName,
		ReleaseName: o.Spec.ReleaseName, TargetNamespace: o.Spec.TargetNamespace, StorageNamespace: o.Spec.StorageNamespace,
	}
	common.each(&spec.ServiceAccountName, &spec.ReleaseName, &spec.TargetNamespace, &spec.StorageNamespace)
	if ref := spec.ChartRef; ref != nil {
		common.each(&ref.APIVersion, &ref.Kind, &ref.Namespace, &ref.Name)
	}
	// On the hub's own objects, the cluster-key label says which cluster they are for.
	if ByWorkloadIdentity(o) || o.Labels[hubv1.ClusterKeyLabel] == "" {
		spec.KubeConfig = o.Spec.KubeConfig
	}
	for _, r := range ReadsOf(o) { // of other references there may be thousands
		spec.ValuesFrom = append(spec.ValuesFrom, meta.ValuesReference{Kind: common.one(r.Kind), Name: r.Name, ValuesKey: common.one(r.Key),
			Optional: r.Optional})
	}
	status := helmv2.HelmReleaseStatus{Conditions: slimConditions(o.Status.Conditions), ObservedGeneration: o.Status.ObservedGeneration,
		LastAttemptedGeneration: o.Status.LastAttemptedGeneration, Failures: min(o.Status.Failures, 1)}
	if latest := o.Status.History.Latest(); latest != nil {
		as := InstalledAs(o) // next to always none
		status.StorageNamespace = as.StorageNamespace
		status.History = helmv2.Snapshots{{ChartName: common.one(latest.ChartName), ChartVersion: common.one(latest.ChartVersion),
			Name: as.Name, Namespace: as.Namespace}}
		if o.Status.Failures > 0 { // fluxstate.State.Begun; few have it
			status.History[0].ConfigDigest = latest.ConfigDigest
			status.LastAttemptedRevision, status.LastAttemptedConfigDigest = o.Status.LastAttemptedRevision, o.Status.LastAttemptedConfigDigest
		}
	}
	o.Spec, o.Status = spec, status
	return o, nil
}

// longestRelease is how long Helm lets a release's name be. helm-controller shortens a longer name in its own way.
const longestRelease = 53

// InstalledAs returns the Helm release that Flux has installed for a HelmRelease, if it now asks for another one;
// zero if it does not, or that is not known.
func InstalledAs(obj client.Object) hubv1.HelmReleaseIdentity {
	o, ok := obj.(*helmv2.HelmRelease)
	if !ok || o.Status.History.Latest() == nil || o.Status.History.Latest().Name == "" || o.Status.StorageNamespace == "" ||
		len(o.GetReleaseName()) > longestRelease {
		return hubv1.HelmReleaseIdentity{}
	}
	latest := o.Status.History.Latest()
	as := hubv1.HelmReleaseIdentity{Name: latest.Name, Namespace: latest.Namespace, StorageNamespace: o.Status.StorageNamespace}
	if as == (hubv1.HelmReleaseIdentity{Name: o.GetReleaseName(), Namespace: o.GetReleaseNamespace(),
		StorageNamespace: o.GetStorageNamespace()}) {
		return hubv1.HelmReleaseIdentity{}
	}
	return as
}

func slimKustomization(in any) (any, error) {
	o, ok := in.(*kustomizev1.Kustomization)
	if !ok {
		return in, nil
	}
	slimMetadata(&o.ObjectMeta)
	spec := kustomizev1.KustomizationSpec{
		Suspend: o.Spec.Suspend, SourceRef: o.Spec.SourceRef, ServiceAccountName: o.Spec.ServiceAccountName,
		TargetNamespace: o.Spec.TargetNamespace,
		NamePrefix:      o.Spec.NamePrefix, NameSuffix: o.Spec.NameSuffix, Path: o.Spec.Path,
	}
	ref := &spec.SourceRef
	common.each(&ref.APIVersion, &ref.Kind, &ref.Namespace, &ref.Name, &spec.ServiceAccountName, &spec.TargetNamespace,
		&spec.NamePrefix, &spec.NameSuffix, &spec.Path)
	if ByWorkloadIdentity(o) {
		spec.KubeConfig = o.Spec.KubeConfig
	}
	for _, r := range ReadsOf(o) {
		if spec.PostBuild == nil {
			spec.PostBuild = &kustomizev1.PostBuild{}
		}
		spec.PostBuild.SubstituteFrom = append(spec.PostBuild.SubstituteFrom,
			kustomizev1.SubstituteReference{Kind: common.one(r.Kind), Name: r.Name, Optional: r.Optional})
	}
	o.Spec, o.Status = spec, kustomizev1.KustomizationStatus{
		Conditions: slimConditions(o.Status.Conditions), LastAppliedRevision: common.one(o.Status.LastAppliedRevision),
		ObservedGeneration: o.Status.ObservedGeneration,
	}
	return o, nil
}

// slimConditions keeps Ready, that Flux waits for a first answer, and for a HelmRelease why its last attempt failed, and that it was
// released if Ready does not say it. A success has the same message on every cluster; each failure has its own.
func slimConditions(in []metav1.Condition) []metav1.Condition {
	var out []metav1.Condition
	working := apimeta.IsStatusConditionPresentAndEqual(in, hubv1.ReadyCondition, metav1.ConditionUnknown)
	for _, c := range in {
		ready, failed := c.Type == hubv1.ReadyCondition, c.Type == fluxstate.Remediated ||
			c.Type == fluxstate.Released && (working || c.Status == metav1.ConditionFalse)
		begins := fluxstate.Begins(&c)
		if !ready && !failed && !begins {
			continue
		}
		if begins {
			c.Message = common.one(fluxstate.FirstWords(&c))
		}
		c.Type, c.Status, c.Reason = common.one(c.Type), metav1.ConditionStatus(common.one(string(c.Status))), common.one(c.Reason)
		if c.Status == metav1.ConditionTrue {
			c.Message = common.one(c.Message)
		}
		out = append(out, c)
	}
	return out
}

func slimDelivery(in any) (any, error) {
	o, ok := in.(*hubv1.AddonDelivery)
	if !ok {
		return in, nil
	}
	slimMetadata(&o.ObjectMeta)
	o.Spec.RevisionName = common.one(o.Spec.RevisionName)
	for i := range o.Status.Addons {
		a := &o.Status.Addons[i]
		common.each(&a.Name, &a.Kind, &a.Version)
		a.State = hubv1.AddonState(common.one(string(a.State)))
	}
	return o, nil
}

func slimMetadata(m *metav1.ObjectMeta) {
	m.ManagedFields = nil
	m.Namespace = common.one(m.Namespace)
	common.all(m.Labels)
	common.all(m.Annotations)
	for i := range m.Finalizers {
		m.Finalizers[i] = common.one(m.Finalizers[i])
	}
}

func slimSecret(in any) (any, error) {
	if o, ok := in.(*metav1.PartialObjectMetadata); ok {
		o.ManagedFields = nil
		delete(o.Annotations, corev1.LastAppliedConfigAnnotation) // holds the Secret's data
	}
	return in, nil
}

func slimMeta(in any) (any, error) {
	if o, ok := in.(*metav1.PartialObjectMetadata); ok {
		o.ManagedFields, o.Annotations, o.Labels = nil, nil, nil
	}
	return in, nil
}

// common holds the strings that many objects share: names of labels, namespaces and clusters. A decoder makes new
// copies for each object.
var common interned

const (
	// maxInterned limits their bytes; 5,000 clusters have about four million.
	maxInterned = 32 << 20
	// perInterned is what each takes besides its text.
	perInterned = 160
)

// interned holds one copy of each string that it was given. Package unique does not: it forgets strings that no value
// has a handle for.
type interned struct {
	known memory.Recent[string, string]
}

// one returns the copy of a string.
func (n *interned) one(s string) string {
	if s == "" {
		return ""
	}
	if is, known := n.known.Get(s); known {
		return is
	}
	s = strings.Clone(s) // it may be a part of something larger
	n.known.Put(s, s, perInterned+len(s), memory.Bound{Bytes: maxInterned})
	return s
}

// each replaces strings with their copies.
func (n *interned) each(strings ...*string) {
	for _, s := range strings {
		*s = n.one(*s)
	}
}

// all replaces a map's keys and values with their copies, except values that no two objects share.
func (n *interned) all(m map[string]string) {
	for k, v := range m {
		if k != hubv1.HashAnnotation {
			v = n.one(v)
		}
		m[n.one(k)] = v // which replaces a key by an equal one
	}
}
