// SPDX-License-Identifier: Apache-2.0

package fluxspec

import (
	"path"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-hub/chandler/internal/crdschema"
)

// Default fills in the fields that an add-on's body leaves out, in place. The body must have passed Check. team is what
// the set's Team allows; nil for none.
//
// The defaults differ from Flux's own, because a fleet differs from one cluster. Each line says why. The body
// overrides all of them.
func Default(kind string, body map[string]any, addon string, team *TeamRules) {
	d := defaulter{body}
	d.set("10m", "interval")
	switch kind {
	case KustomizationKind:
		defaultKustomization(d)
		return
	case ManifestsKind:
		if team == nil {
			// This is kubectl's default for objects without a namespace.
			d.set("default", "targetNamespace")
		}
	}
	if team != nil {
		defaultForTeam(d, team)
	}
	defaultHelmRelease(d, addon)
}

// defaultForTeam fills in what differs for a team. Its ServiceAccount has rights in the team's namespaces only, which the
// hub makes. A Kustomization has no such default: its targetNamespace would move every object of the folder.
func defaultForTeam(d defaulter, team *TeamRules) {
	d.set(team.Home(), "targetNamespace")
	d.set(false, "install", "createNamespace")
	d.set(string(helmv2.Skip), "install", "crds")
	d.set(string(helmv2.Skip), "upgrade", "crds")
}

func defaultKustomization(d defaulter) {
	d.set(true, "prune")
	// Flux's own default is the interval: after a restart of its API server, a cluster would wait ten minutes.
	d.set("2m", "retryInterval")
	// With MirrorPrune the finalizer would go before the objects have gone, and the kubeconfig copy with it. The
	// author of prune: false wants the objects to stay, which WaitForTermination would not respect.
	if prune, _, _ := unstructured.NestedBool(d.body, "prune"); prune {
		d.set("WaitForTermination", "deletionPolicy")
	}
}

func defaultHelmRelease(d defaulter, addon string) {
	// Flux would derive the name from the object's name, which differs from cluster to cluster.
	d.set(addon, "releaseName")
	d.set(addon, "targetNamespace")
	target, _, _ := unstructured.NestedString(d.body, "targetNamespace")
	// Flux's default is the HelmRelease's namespace on the management cluster, which does not exist on the workload
	// cluster.
	d.set(target, "storageNamespace")
	d.set(true, "install", "createNamespace")
	// By default Flux gives up for good after one failure, and a person would have to reset each cluster.
	for _, action := range []string{"install", "upgrade"} {
		if _, ok, _ := unstructured.NestedFieldNoCopy(d.body, action, "remediation"); !ok {
			d.set("RetryOnFailure", action, "strategy", "name")
		}
	}
	d.set("enabled", "driftDetection", "mode")
	// If the name of the chart changes, Flux uninstalls the release and installs another. If the hub does not know
	// the name, the removal guard cannot hold that.
	if ChartName(d.body) == "" {
		d.set(string(helmv2.ChartNameChangeStrategyInPlaceUpdate), "upgrade", "chartNameChangeStrategy")
	}
}

// ChartName returns the name of the chart in the body of a HelmRelease. It returns "" if the body does not tell it: a
// chartRef, or a folder in Git or in a bucket, may lead to a chart of any name.
func ChartName(body map[string]any) string {
	spec, _, _ := unstructured.NestedMap(body, "chart", "spec")
	kind, _, _ := unstructured.NestedString(spec, "sourceRef", "kind")
	chart, _ := spec["chart"].(string)
	if kind != sourcev1.HelmRepositoryKind || chart == "" {
		return ""
	}
	return path.Base(chart)
}

// ReinstallsFor returns the name of the chart, if Flux would reinstall a release that runs another chart. It returns
// "" if Flux would upgrade the release in place, or the name is not known.
func ReinstallsFor(body map[string]any) string {
	strategy, _, _ := unstructured.NestedString(body, "upgrade", "chartNameChangeStrategy")
	if strategy == string(helmv2.ChartNameChangeStrategyInPlaceUpdate) {
		return ""
	}
	return ChartName(body)
}

type defaulter struct{ body map[string]any }

// set sets a field that is absent. A field that is present, even as null, is the author's decision.
func (d defaulter) set(v any, path ...string) {
	if _, found, err := unstructured.NestedFieldNoCopy(d.body, path...); found || err != nil {
		return
	}
	// Check has rejected a parent that is not a map. A null parent means that the author wants nothing there.
	_ = unstructured.SetNestedField(d.body, v, path...)
}

// LeaveOutUnknown takes out of the body of a HelmRelease, in place, what the hub has written and the installed CRD does not know: the API
// server would refuse the whole object. A Flux before 2.9 does not know chartNameChangeStrategy, and always reinstalls.
func LeaveOutUnknown(body map[string]any, schemas *crdschema.Library) {
	path := []string{"upgrade", "chartNameChangeStrategy"}
	if Lacks(HelmReleaseKind, path, Author{Schemas: schemas}) == "" {
		return
	}
	unstructured.RemoveNestedField(body, path...)
	if upgrade, _, _ := unstructured.NestedMap(body, "upgrade"); len(upgrade) == 0 {
		delete(body, "upgrade")
	}
}
