// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/inflate"
)

// PartOf returns how Flux applies what a Flux object makes: as which field manager, and with which marks. release is that of a HelmRelease.
// The objects are those that come out of it now, and before; nil where there is none.
func PartOf(flux *unstructured.Unstructured, release hubv1.HelmReleaseIdentity, wanted, old *inflate.Result) Part {
	spec, _ := flux.Object["spec"].(map[string]any)
	at := func(fields ...string) any {
		v, _, _ := unstructured.NestedFieldNoCopy(spec, fields...)
		return v
	}
	group := flux.GroupVersionKind().Group
	p := Part{labels: map[string]string{group + "/name": flux.GetName(), group + "/namespace": flux.GetNamespace()}}
	helm := flux.GetKind() == fluxspec.HelmReleaseKind
	switch {
	case helm:
		p.Manager, p.Namespace = HelmManager, release.Namespace
		p.helm = map[string]string{"meta.helm.sh/release-name": release.Name, "meta.helm.sh/release-namespace": release.Namespace}
		if target, _ := at("targetNamespace").(string); target != "" && at("install", "createNamespace") == true {
			p.Makes = target
		}
	default:
		p.Manager = KustomizeManager
		p.Recreate = at("force") == true
	}
	if old != nil && (helm || at("prune") == true) {
		p.Old = old.Objects // what is in the folder crds/ of a chart is never deleted
	}
	if wanted == nil {
		return p
	}
	p.Wanted = wanted.Objects
	switch inflate.CRDPolicy(flux, old != nil) {
	case inflate.CRDReplace:
		p.crds = wanted.CRDs
	case inflate.CRDCreate:
		p.once = wanted.CRDs
	}
	return p
}

// owned gives an object the marks of the controller that applies it.
func (p *Part) owned(u *unstructured.Unstructured, crd bool) {
	u.SetLabels(with(u.GetLabels(), p.labels))
	if p.helm != nil && !crd {
		u.SetLabels(with(u.GetLabels(), map[string]string{"app.kubernetes.io/managed-by": "Helm"}))
		u.SetAnnotations(with(u.GetAnnotations(), p.helm))
	}
}

func with(there, more map[string]string) map[string]string {
	if len(more) == 0 {
		return there
	}
	out := map[string]string{}
	maps.Copy(out, there)
	maps.Copy(out, more)
	return out
}

var crdKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
