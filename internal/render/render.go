// SPDX-License-Identifier: Apache-2.0

// Package render makes the Flux objects of one set for one cluster. It is pure: the same program and target give the
// same bytes, on every replica and after every restart, and the command line calls the very same function.
package render

import (
	"encoding/json"
	"fmt"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/identity"
)

// Epoch is raised whenever this package makes other objects from the same input. It is part of every revision's name:
// a hub with a new epoch leaves what older revisions made as it is, until the set is rolled.
const Epoch = 1

// Target is what a program is rendered for.
type Target struct {
	// HubID tells this hub's objects from another's on the same cluster.
	HubID string
	// Namespace is the set's: everything generated lives there.
	Namespace string
	// Set and Delivery are the names of the AddonSet and the AddonDelivery.
	Set, Delivery string
	// Registration is the cluster.
	Registration types.NamespacedName
}

// Result is what a set makes for a cluster.
type Result struct {
	// Objects in the order of the set's add-ons.
	Objects []Object
}

// Object is the Flux object of one add-on.
type Object struct {
	Addon     string
	Kind      string
	DependsOn []string
	// Release is set for a HelmRelease.
	Release compile.Release
	// Object is to be applied just as it is: it holds only the fields that the hub owns.
	Object *unstructured.Unstructured
	// Hash covers all of Object.
	Hash string
	// Chart is the HelmChart that the object refers to, if the hub keeps it.
	Chart *Chart
}

// Chart is a HelmChart that all clusters share whose add-on has the same template.
type Chart struct {
	Object *unstructured.Unstructured
	Hash   string
}

// GroupVersionKind returns the full kind of a Flux object.
func GroupVersionKind(kind string) schema.GroupVersionKind {
	if kind == fluxspec.HelmReleaseKind {
		return helmv2.GroupVersion.WithKind(kind)
	}
	return kustomizev1.GroupVersion.WithKind(kind)
}

// Render returns the objects of a program for a target.
func Render(p *compile.Program, t Target) (*Result, error) {
	out := &Result{Objects: make([]Object, 0, len(p.Addons))}
	for i := range p.Addons {
		o, err := renderAddon(&p.Addons[i], t)
		if err != nil {
			return nil, fmt.Errorf("add-on %q: %w", p.Addons[i].Name, err)
		}
		out.Objects = append(out.Objects, *o)
	}
	return out, nil
}

func renderAddon(a *compile.Addon, t Target) (*Object, error) {
	spec := runtime.DeepCopyJSON(a.Body)
	fluxspec.Default(a.Kind, spec, a.Name)
	out := &Object{Addon: a.Name, Kind: a.Kind, DependsOn: a.DependsOn}
	if a.Kind == fluxspec.HelmReleaseKind {
		out.Release = compile.ReleaseOf(*a)
		if err := shareChart(out, spec, t); err != nil {
			return nil, err
		}
	}
	spec["kubeConfig"] = map[string]any{"secretRef": map[string]any{"name": identity.Mirror(t.HubID, t.Registration), "key": MirrorKey}}
	if len(a.DependsOn) > 0 {
		spec["dependsOn"] = dependsOn(a.DependsOn, t)
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(GroupVersionKind(a.Kind))
	u.SetNamespace(t.Namespace)
	u.SetName(identity.FluxObject(t.HubID, t.Registration, a.Name))
	u.SetLabels(labels(t, a.Name))
	u.SetAnnotations(annotations(t, a))
	hash, err := stamp(u)
	if err != nil {
		return nil, err
	}
	out.Object, out.Hash = u, hash
	return out, nil
}

// MirrorKey is the key of a kubeconfig mirror: the one that Flux looks for first (fluxcd/pkg/runtime/client).
const MirrorKey = "value"

// dependsOn names the objects of the add-ons that this one waits for, on the same cluster.
func dependsOn(addons []string, t Target) []any {
	refs := make([]any, len(addons))
	for i, name := range addons {
		refs[i] = map[string]any{"name": identity.FluxObject(t.HubID, t.Registration, name)}
	}
	return refs
}

func labels(t Target, addon string) map[string]string {
	return map[string]string{
		"app.kubernetes.io/managed-by": "chandler",
		hubv1.ClusterKeyLabel:          identity.ClusterKey(t.HubID, t.Registration),
		hubv1.ClusterLabel:             identity.LabelValue(t.Registration.Name),
		hubv1.AddonSetLabel:            identity.LabelValue(t.Set),
		hubv1.AddonLabel:               addon,
	}
}

func annotations(t Target, a *compile.Addon) map[string]string {
	out := map[string]string{
		hubv1.RegistrationAnnotation: t.Registration.String(),
		hubv1.DeliveryAnnotation:     t.Delivery,
	}
	if len(a.DependsOn) > 0 {
		out[hubv1.DependsOnAnnotation] = strings.Join(a.DependsOn, ",")
	}
	if a.Orphan {
		out[hubv1.DeletionPolicyAnnotation] = string(hubv1.DeletionPolicyOrphan)
	}
	return out
}

// stamp writes the hash of u into its annotations and returns it.
func stamp(u *unstructured.Unstructured) (string, error) {
	raw, err := json.Marshal(u.Object)
	if err != nil {
		return "", fmt.Errorf("hash the object: %w", err)
	}
	hash := identity.Hash(16, string(raw))
	a := u.GetAnnotations()
	if a == nil {
		a = map[string]string{}
	}
	a[hubv1.HashAnnotation] = hash
	u.SetAnnotations(a)
	return hash, nil
}

// shareChart replaces the chart template of a HelmRelease by a reference to a HelmChart that all clusters with the same
// template share: 5,000 clusters then cost the source-controller what one costs.
func shareChart(out *Object, spec map[string]any, t Target) error {
	template, ok := spec["chart"].(map[string]any)
	if !ok {
		return nil
	}
	delete(spec, "chart")
	chartSpec, _ := runtime.DeepCopyJSONValue(template["spec"]).(map[string]any)
	// What Flux would fill in is filled in here, so that two spellings of one template share one chart.
	for field, v := range map[string]any{"interval": spec["interval"], "version": "*", "reconcileStrategy": sourcev1.ReconcileStrategyChartVersion} {
		if _, ok := chartSpec[field]; !ok {
			chartSpec[field] = v
		}
	}
	ref, _ := chartSpec["sourceRef"].(map[string]any)
	namespace := t.Namespace
	if ns, _ := ref["namespace"].(string); ns != "" {
		namespace = ns
	}
	delete(ref, "namespace")
	u := &unstructured.Unstructured{Object: map[string]any{"spec": chartSpec}}
	u.SetGroupVersionKind(sourcev1.GroupVersion.WithKind(sourcev1.HelmChartKind))
	u.SetNamespace(namespace)
	meta, _ := template["metadata"].(map[string]any)
	chartLabels, _, _ := unstructured.NestedStringMap(meta, "labels")
	chartAnnotations, _, _ := unstructured.NestedStringMap(meta, "annotations")
	if chartLabels == nil {
		chartLabels = map[string]string{}
	}
	chartLabels["app.kubernetes.io/managed-by"] = "chandler"
	chartLabels[hubv1.ChartLabel] = t.HubID
	u.SetLabels(chartLabels)
	u.SetAnnotations(chartAnnotations)
	hash, err := stamp(u)
	if err != nil {
		return err
	}
	chart, _ := chartSpec["chart"].(string)
	u.SetName(identity.Chart(chart, hash[:10]))
	out.Chart = &Chart{Object: u, Hash: hash}
	spec["chartRef"] = map[string]any{"kind": sourcev1.HelmChartKind, "name": u.GetName(), "namespace": namespace}
	return nil
}
