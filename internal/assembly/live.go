// SPDX-License-Identifier: Apache-2.0

package assembly

import (
	"fmt"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	"sigs.k8s.io/controller-runtime/pkg/client" //nolint:depguard // the Object interface

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/render/flux"
)

// LiveOf returns what a HelmRelease or Kustomization of the hub says of itself. Whether it is Ready is for the caller to say, and
// whether it was made for another cluster.
func LiveOf(obj client.Object) Live {
	l, a := obj.GetLabels(), obj.GetAnnotations()
	out := Live{
		Key: KeyOf(obj), Addon: l[hubv1.AddonLabel], Set: l[hubv1.AddonSetLabel], Delivery: a[hubv1.DeliveryAnnotation],
		Release: ReleaseOf(obj), Content: ContentOf(obj), Hash: a[hubv1.HashAnnotation], Going: obj.GetDeletionTimestamp() != nil,
	}
	out.Kept, _ = flux.ParseRelease(a[hubv1.ReleaseAnnotation])
	return out
}

// KeyOf names a HelmRelease or Kustomization.
func KeyOf(obj client.Object) plan.Key {
	kind := fluxspec.KustomizationKind
	if _, ok := obj.(*helmv2.HelmRelease); ok {
		kind = fluxspec.HelmReleaseKind
	}
	return plan.Key{Kind: kind, Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// ReleaseOf returns the Helm release of a HelmRelease, as helm-controller names it; zero for a Kustomization.
func ReleaseOf(obj client.Object) hubv1.HelmReleaseIdentity {
	hr, ok := obj.(*helmv2.HelmRelease)
	if !ok {
		return hubv1.HelmReleaseIdentity{}
	}
	return hubv1.HelmReleaseIdentity{Name: hr.GetReleaseName(), Namespace: hr.GetReleaseNamespace(),
		StorageNamespace: hr.GetStorageNamespace()}
}

// ContentOf returns what a Kustomization applies, and where; zero for a HelmRelease.
func ContentOf(obj client.Object) plan.Content {
	k, ok := obj.(*kustomizev1.Kustomization)
	if !ok {
		return plan.Content{}
	}
	return plan.Content{Namespace: k.Spec.TargetNamespace, Names: plan.Names(k.Spec.NamePrefix, k.Spec.NameSuffix),
		Folder: plan.FolderOf(k.Spec.Path)}
}

// LoginOf returns the Secret by which Flux logs in to the cluster of an object; nil if it is none.
func LoginOf(obj client.Object) *fluxmeta.SecretKeyReference {
	var kc *fluxmeta.KubeConfigReference
	switch o := obj.(type) {
	case *helmv2.HelmRelease:
		kc = o.Spec.KubeConfig
	case *kustomizev1.Kustomization:
		kc = o.Spec.KubeConfig
	}
	if kc == nil {
		return nil
	}
	return kc.SecretRef
}

// Adopts returns whether an object is to take over another one by adopt, and not itself.
func Adopts(o *flux.Object) bool {
	return o.Adopt != nil && !(o.Adopt.Namespace == o.Namespace && o.Adopt.Name == o.Name)
}

// RefuseAdoption is the error of an object that may not take over a hand-written one, as far as that one says it. unprobed is true if the
// hub has no kubeconfig of the cluster. Whether both are for one cluster is for the caller to say.
func RefuseAdoption(o *flux.Object, there client.Object, unprobed bool) error {
	switch {
	case there.GetLabels()[hubv1.ClusterKeyLabel] != "":
		return NotAdopted(o, "is a hub's own: write movedFrom for what a set delivers")
	case unprobed:
		return NotAdopted(o, "cannot be told to be for this cluster: that is registered with a workload identity, and has no kubeconfig "+
			"to compare")
	case LoginOf(there) == nil:
		return NotAdopted(o, "has no spec.kubeConfig.secretRef, so it is for no other cluster than the hub's")
	}
	return nil
}

// NotAdopted is the error of an object that may not take over a hand-written one.
func NotAdopted(o *flux.Object, format string, args ...any) compile.Error {
	return compile.Error{Addon: o.Addon, Path: "adopt", Message: fmt.Sprintf("%s %s/%s ", o.Kind, o.Adopt.Namespace, o.Adopt.Name) +
		fmt.Sprintf(format, args...) + "; it is left alone"}
}

// Adopted returns the Helm release with which an object goes on that takes over a hand-written one; false if it is none.
func Adopted(o *flux.Object, there client.Object) (render.Kept, bool) {
	if o.Kind != fluxspec.HelmReleaseKind {
		return render.Kept{}, false
	}
	return render.Kept{HelmReleaseIdentity: ReleaseOf(there), From: "HelmRelease " + there.GetNamespace() + "/" + there.GetName()}, true
}
