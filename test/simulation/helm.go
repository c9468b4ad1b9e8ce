// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"cmp"
	"errors"
	"slices"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/manifestchart"
	"github.com/chandler-hub/chandler/test/simulation/apiserver"
)

// helm is helm-controller's Reconcile.
func (f *flux) helm(w *World, k apiserver.Key, hr *helmv2.HelmRelease) (failed bool) {
	if hr.DeletionTimestamp != nil {
		return f.uninstall(w, k, hr)
	}
	if !slices.Contains(hr.Finalizers, fluxFinalizer) {
		w.addFinalizer(k)
	}
	if hr.Spec.Suspend {
		return false
	}
	chart, version, ok := w.chartOf(k, hr)
	if !ok {
		w.report(k, hr, metav1.ConditionFalse, "HelmChartNotReady", "chart is not ready")
		return true
	}
	c, err := w.target(k, hr.Spec.KubeConfig, hr.GetStorageNamespace(), hr.GetReleaseNamespace())
	if errors.Is(err, errHolds) {
		f.hangs(w, k, "Fulfilling prerequisites")
		return false
	}
	if err != nil {
		reason := "StateError"
		if errors.Is(err, errNoSecret) {
			reason = "RESTClientError"
		}
		w.report(k, hr, metav1.ConditionFalse, reason, err.Error())
		return true
	}
	name := releaseName(hr.GetStorageNamespace(), hr.GetReleaseName())
	if last := hr.Status.History.Latest(); last != nil {
		was := releaseName(hr.Status.StorageNamespace, last.Name)
		if was != name || last.Namespace != hr.GetReleaseNamespace() || last.ChartName != chart {
			w.take(c, was, k, reinstalls+was+" of chart "+last.ChartName+" becomes "+name+" of chart "+chart)
			hr.Status.History = nil
		}
	}
	if w.broken[hr.Labels[hubv1.AddonLabel]] {
		w.report(k, hr, metav1.ConditionFalse, "InstallFailed", "timeout waiting for: [Deployment/x]")
		return true
	}
	if failed, bad := f.misbehaves(w, k, hr, c, hr.Labels[hubv1.AddonLabel], version); bad {
		return failed
	}
	w.give(c, name, k, string(hr.UID), setOf(hr), hr.Labels[hubv1.AddonLabel], chart)
	hr.Status.StorageNamespace = hr.GetStorageNamespace()
	hr.Status.History = helmv2.Snapshots{{
		Name: hr.GetReleaseName(), Namespace: hr.GetReleaseNamespace(), ChartName: chart, ChartVersion: version, Version: 1,
		Status: "deployed", Digest: "sha256:0", ConfigDigest: "sha256:0",
	}}
	w.report(k, hr, metav1.ConditionTrue, "InstallSucceeded", "Helm install succeeded")
	return false
}

// chartOf returns name and version of the chart, if it has been fetched. It has as soon as it and its repository
// exist.
func (w *World) chartOf(k apiserver.Key, hr *helmv2.HelmRelease) (name, version string, ok bool) {
	ref := hr.Spec.ChartRef
	if ref == nil {
		return "", "", false
	}
	chart := w.server.Get(apiserver.Key{Group: sourceGroup, Kind: ref.Kind, Namespace: cmp.Or(ref.Namespace, k.Namespace), Name: ref.Name})
	if chart == nil {
		return "", "", false
	}
	if ref.Kind == "OCIRepository" { // of the hub's own chart, which a digest identifies
		version, _ = nested(chart, "spec", "ref", "digest").(string)
		return manifestchart.Name, version, true
	}
	name, _ = nested(chart, "spec", "chart").(string)
	version, _ = nested(chart, "spec", "version").(string)
	source, _ := nested(chart, "spec", "sourceRef", "name").(string)
	kind, _ := nested(chart, "spec", "sourceRef", "kind").(string)
	return name, version,
		w.server.Get(apiserver.Key{Group: sourceGroup, Kind: kind, Namespace: cmp.Or(ref.Namespace, k.Namespace), Name: source}) != nil
}

// uninstall is helm-controller's reconcileDelete.
func (f *flux) uninstall(w *World, k apiserver.Key, hr *helmv2.HelmRelease) (failed bool) {
	last := hr.Status.History.Latest() // whether its own finalizer is there, or only somebody else's
	if released := meta.FindStatusCondition(hr.Status.Conditions, helmv2.ReleasedCondition); released != nil &&
		released.Reason == helmv2.UninstallSucceededReason {
		w.uninstalled(k, nil)
		last = nil
	}
	if !hr.Spec.Suspend && last != nil {
		c, err := w.target(k, hr.Spec.KubeConfig)
		switch {
		case errors.Is(err, errNoSecret): // skipped, and the release forgotten (helmrelease_controller.go:507)
		case errors.Is(err, errHolds):
			return true
		case err != nil:
			w.report(k, hr, metav1.ConditionFalse, "UninstallFailed", err.Error())
			return true
		default:
			w.take(c, releaseName(hr.Status.StorageNamespace, last.Name), k, "its Flux object is deleted")
			w.uninstalled(k, hr.Status.History)
		}
	}
	w.leave(k, string(hr.UID))
	w.dropFinalizer(k, fluxFinalizer)
	return false
}

// uninstalled says in a HelmRelease's status that it was uninstalled. helm-controller writes the condition before it
// takes its finalizer off, and clears the history after that (fluxcd/pkg, runtime/patch, Helper.Patch): an object
// that another finalizer keeps is seen with its history.
func (w *World) uninstalled(k apiserver.Key, history helmv2.Snapshots) {
	next := apiserver.Clone(w.server.Get(k))
	status := apiserver.Object{"conditions": []any{map[string]any{
		"type": helmv2.ReleasedCondition, "status": "False", "reason": helmv2.UninstallSucceededReason, "message": "Helm uninstall succeeded",
		"lastTransitionTime": w.clock.Now().UTC().Format(time.RFC3339),
	}}}
	if len(history) > 0 {
		status["history"], _, _ = unstructured.NestedFieldCopy(next, "status", "history")
	}
	next["status"] = status
	_, err := w.server.Update("flux", "status", k, next, true)
	must(err)
}
