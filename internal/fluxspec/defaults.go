// SPDX-License-Identifier: Apache-2.0

package fluxspec

import (
	"path"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Default fills in what an add-on's body leaves out, in place. The body must have passed Check.
//
// The defaults are not Flux's own, because a fleet differs from one cluster; each line says why. All of them give way
// to what the body says.
func Default(kind string, body map[string]any, addon string) {
	d := defaulter{body}
	d.set("10m", "interval")
	switch kind {
	case KustomizationKind:
		defaultKustomization(d)
		return
	case ManifestsKind:
		// kubectl's default for objects that name no namespace.
		d.set("default", "targetNamespace")
	}
	defaultHelmRelease(d, addon)
}

func defaultKustomization(d defaulter) {
	d.set(true, "prune")
	// Flux's own default is the interval: a cluster whose API server was restarting would wait ten minutes.
	d.set("2m", "retryInterval")
	// With MirrorPrune the finalizer goes before the objects have, and the kubeconfig mirror with it. Who says
	// prune: false wants the objects to stay, which WaitForTermination would not respect.
	if prune, _, _ := unstructured.NestedBool(d.body, "prune"); prune {
		d.set("WaitForTermination", "deletionPolicy")
	}
}

func defaultHelmRelease(d defaulter, addon string) {
	// Flux would derive the name from the object's, which is another one for each cluster.
	d.set(addon, "releaseName")
	d.set(addon, "targetNamespace")
	target, _, _ := unstructured.NestedString(d.body, "targetNamespace")
	// Flux's default is the HelmRelease's namespace on the hub, which does not exist on the cluster.
	d.set(target, "storageNamespace")
	d.set(true, "install", "createNamespace")
	// Flux's default gives up for good after one failure, and somebody would have to reset each cluster by hand.
	for _, action := range []string{"install", "upgrade"} {
		if _, ok, _ := unstructured.NestedFieldNoCopy(d.body, action, "remediation"); !ok {
			d.set("RetryOnFailure", action, "strategy", "name")
		}
	}
	d.set("enabled", "driftDetection", "mode")
	// Flux uninstalls a release and installs another when the chart's name changes. Where the name cannot be told from here, the removal
	// guard could not hold that.
	if ChartName(d.body) == "" {
		d.set(string(helmv2.ChartNameChangeStrategyInPlaceUpdate), "upgrade", "chartNameChangeStrategy")
	}
}

// ChartName returns the name of the chart that the body of a HelmRelease asks for; "" if that cannot be told: what a chartRef leads to, and
// a folder in Git or in a bucket, may have any name.
func ChartName(body map[string]any) string {
	spec, _, _ := unstructured.NestedMap(body, "chart", "spec")
	kind, _, _ := unstructured.NestedString(spec, "sourceRef", "kind")
	chart, _ := spec["chart"].(string)
	if kind != sourcev1.HelmRepositoryKind || chart == "" {
		return ""
	}
	return path.Base(chart)
}

// ReinstallsFor returns the name of the chart for which Flux would reinstall a release that runs another one; "" if it would upgrade it in
// place, or the name cannot be told.
func ReinstallsFor(body map[string]any) string {
	strategy, _, _ := unstructured.NestedString(body, "upgrade", "chartNameChangeStrategy")
	if strategy == string(helmv2.ChartNameChangeStrategyInPlaceUpdate) {
		return ""
	}
	return ChartName(body)
}

type defaulter struct{ body map[string]any }

// set sets a field that is absent. A field that is there, be it null, is the author's.
func (d defaulter) set(v any, path ...string) {
	if _, found, err := unstructured.NestedFieldNoCopy(d.body, path...); found || err != nil {
		return
	}
	// A parent that is not a map was refused by Check; a null parent is a wish to have nothing there.
	_ = unstructured.SetNestedField(d.body, v, path...)
}
