// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/test/simulation/apiserver"
)

// kustomize is kustomize-controller's Reconcile.
func (f *flux) kustomize(w *World, k apiserver.Key, ks *kustomizev1.Kustomization) (failed bool) {
	if ks.DeletionTimestamp != nil {
		return f.prune(w, k, ks)
	}
	if !slices.Contains(ks.Finalizers, fluxFinalizer) {
		w.addFinalizer(k)
	}
	if ks.Spec.Suspend {
		w.observe(k, ks)
		return false
	}
	ref := ks.Spec.SourceRef
	if w.server.Get(apiserver.Key{Group: sourceGroup, Kind: ref.Kind, Namespace: cmp.Or(ref.Namespace, k.Namespace), Name: ref.Name}) == nil {
		w.report(k, ks, metav1.ConditionFalse, "ArtifactFailed", "source is not there")
		return true
	}
	c, err := w.target(k, ks.Spec.KubeConfig, ks.Spec.TargetNamespace)
	if errors.Is(err, errHolds) {
		f.hangs(w, k, "Fetching manifests for revision main@sha1:0 with a timeout of 9m30s")
		return false
	}
	if err != nil {
		if !errors.Is(err, errNoSecret) {
			w.tried(ks, "ReconciliationFailed") // it counts what did not reach the cluster as well (kustomization_controller.go:475)
		}
		w.report(k, ks, metav1.ConditionFalse, "ReconciliationFailed", err.Error())
		return true
	}
	addon := ks.Labels[hubv1.AddonLabel]
	names := objectsOf(ks.Spec.Path, ks.Spec.TargetNamespace)
	for i, name := range names {
		if w.broken[addon] && i > 0 {
			// What was applied stays, and no inventory is stored (kustomization_controller.go:489-507).
			w.tried(ks, "ReconciliationFailed")
			w.report(k, ks, metav1.ConditionFalse, "ReconciliationFailed", "dry-run failed: the second object is refused")
			return true
		}
		w.give(c, name, k, string(ks.UID), setOf(ks), addon, "")
		c.workloads[name].into = ks.Spec.TargetNamespace
	}
	if ks.Spec.Prune && ks.Status.Inventory != nil {
		for _, e := range ks.Status.Inventory.Entries {
			if name := inventoryName(e.ID); !slices.Contains(names, name) {
				if work := c.workloads[name]; work != nil && work.into == ks.Spec.TargetNamespace {
					work.approved = true // which folder it is, is content, as a version of a chart is: the guard does not look into add-ons
					work.unwanted = work.unwanted || w.heldThere(c, k)
				}
				w.take(c, name, k, sourceMoved)
			}
		}
	}
	ks.Status.Inventory = &kustomizev1.ResourceInventory{}
	for _, name := range names {
		ks.Status.Inventory.Entries = append(ks.Status.Inventory.Entries, kustomizev1.ResourceRef{ID: inventoryID(name), Version: "v1"})
	}
	ks.Status.LastAppliedRevision = "main@sha1:0"
	w.tried(ks, "ReconciliationSucceeded")
	w.report(k, ks, metav1.ConditionTrue, "ReconciliationSucceeded", "Applied revision: main@sha1:0")
	return false
}

// observe raises the observed generation of a suspended Kustomization that is Ready, though Flux has applied nothing of it
// (kustomize-controller, finalizeStatus).
func (w *World) observe(k apiserver.Key, ks *kustomizev1.Kustomization) {
	if !meta.IsStatusConditionTrue(ks.Status.Conditions, hubv1.ReadyCondition) || ks.Status.ObservedGeneration == ks.Generation {
		return
	}
	next := apiserver.Clone(w.server.Get(k))
	must(unstructured.SetNestedField(next, ks.Generation, "status", "observedGeneration"))
	_, err := w.server.Update("flux", "status", k, next, true)
	must(err)
}

// tried counts a try to apply, and how it ended.
func (w *World) tried(ks *kustomizev1.Kustomization, how string) {
	ks.Status.History.Upsert("sha256:0", w.clock.Now(), 0, how, nil)
}

// prune is kustomize-controller's finalize.
func (f *flux) prune(w *World, k apiserver.Key, ks *kustomizev1.Kustomization) (failed bool) {
	prunes := ks.Spec.DeletionPolicy == kustomizev1.DeletionPolicyDelete ||
		ks.Spec.DeletionPolicy == kustomizev1.DeletionPolicyWaitForTermination ||
		ks.Spec.DeletionPolicy != kustomizev1.DeletionPolicyOrphan && ks.Spec.Prune
	if prunes && !ks.Spec.Suspend && ks.Status.Inventory != nil && len(ks.Status.Inventory.Entries) > 0 {
		account := ks.Spec.ServiceAccountName
		if account == "" || w.server.Get(apiserver.Key{Kind: "ServiceAccount", Namespace: k.Namespace, Name: account}) != nil {
			c, err := w.target(k, ks.Spec.KubeConfig)
			if err != nil {
				return true // no condition is written; the finalizer hangs
			}
			for _, e := range ks.Status.Inventory.Entries {
				w.take(c, inventoryName(e.ID), k, "its Flux object is deleted")
			}
		}
	}
	w.leave(k, string(ks.UID))
	w.dropFinalizer(k, fluxFinalizer)
	return false
}

// heldThere returns whether the set of a Flux object does not select the cluster any more, and has not left it. Until then it delivers what
// it said last, whoever else wants the add-on.
func (w *World) heldThere(c *cluster, k apiserver.Key) bool {
	namespace, name, _ := strings.Cut(setNameOf(w.server.Get(k)), "/")
	s := w.sets[name]
	return s != nil && s.namespace == namespace && !w.selects(s, c) && !w.withdrawn(w.server.Get(k))
}
