// SPDX-License-Identifier: Apache-2.0

package fluxstate_test

import (
	"fmt"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/internal/fluxstate"
)

func TestLeft(t *testing.T) {
	release := func(installed bool, ids ...string) client.Object {
		o := &helmv2.HelmRelease{Spec: helmv2.HelmReleaseSpec{ReleaseName: "r", TargetNamespace: "n", Install: &helmv2.Install{CreateNamespace: true}}}
		if installed {
			o.Status.History = helmv2.Snapshots{{Name: "r"}}
		}
		if ids != nil {
			o.Status.Inventory = &helmv2.ResourceInventory{}
		}
		for _, id := range ids {
			o.Status.Inventory.Entries = append(o.Status.Inventory.Entries, helmv2.ResourceRef{ID: id})
		}
		return o
	}
	kustomization := func(ids ...string) client.Object {
		o := &kustomizev1.Kustomization{}
		if ids != nil {
			o.Status.Inventory = &kustomizev1.ResourceInventory{}
		}
		for _, id := range ids {
			o.Status.Inventory.Entries = append(o.Status.Inventory.Entries, kustomizev1.ResourceRef{ID: id})
		}
		return o
	}
	tried := func(message string, more ...func(*kustomizev1.Kustomization)) client.Object {
		o := &kustomizev1.Kustomization{}
		o.Status.LastAttemptedRevision = "main@sha1:1"
		o.Status.History = fluxmeta.History{{Digest: "d", TotalReconciliations: 1, LastReconciledStatus: "ReconciliationFailed"}}
		o.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, Reason: "ReconciliationFailed", Message: message}}
		for _, f := range more {
			f(o)
		}
		return o
	}
	again := func(o *kustomizev1.Kustomization) { o.Status.Conditions[0].Status = metav1.ConditionUnknown }
	twice := func(o *kustomizev1.Kustomization) { o.Status.History[0].TotalReconciliations = 2 }
	many := []string{}
	for i := range 7 {
		many = append(many, fmt.Sprintf("ns%d_a__ConfigMap", i))
	}
	for name, tc := range map[string]struct {
		obj  client.Object
		want string
	}{
		"Release":          {release(true, "n_a__ConfigMap", "n_b__Secret"), `Helm release n/r (2 objects in namespaces n), namespace "n" and the CRDs of its chart, if it has any`},
		"WithoutInventory": {release(true), `Helm release n/r, namespace "n" and the CRDs of its chart, if it has any`},
		"NeverInstalled":   {release(false), "Helm release n/r, if it got that far: Flux has noted none"},
		"Kustomization":    {kustomization("default_a__ConfigMap", "_x__Namespace", "_w.example.org_apiextensions.k8s.io_CustomResourceDefinition"), "what it applied (3 objects in namespaces default, with namespaces x, with CRDs w.example.org)"},
		"NeverApplied":     {kustomization(), "what was applied of it, if anything was: Flux has noted nothing"},
		"AppliedInPart": {tried("Deployment/apps/web dry-run failed (Invalid): spec.replicas: Invalid value\nNamespace/apps created\nCustomResourceDefinition/ws.example.org created\n"),
			"what was applied of it, in part: Flux has noted nothing of it, and names Namespace/apps, CustomResourceDefinition/ws.example.org as applied by its last try; " +
				`its last message: ReconciliationFailed: Flux says, perhaps in the cluster's words: "Deployment/apps/web dry-run failed (Invalid): spec.replicas: Invalid value"`},
		"TriesAgain": {tried("x", again), "what was applied of it, in part: Flux has noted nothing of it; it is trying again"},
		"NoWayThere": {tried(`dry-run failed: failed to get server groups: Get "https://192.0.2.7:6443/api": dial tcp: i/o timeout`), "what was applied of it, if anything was: Flux has noted nothing"},
		"NoWayThereAnyMore": {tried(`dry-run failed: failed to get server groups: Get "https://192.0.2.7:6443/api": dial tcp: i/o timeout`, twice),
			"what was applied of it, if anything was, before the cluster fell silent: Flux has noted nothing of it"},
		"FellSilentAsItApplied": {tried(`ConfigMap/apps/web apply failed: Patch "https://192.0.2.7:6443/api/v1/namespaces/apps/configmaps/web": EOF`),
			"what was applied of it, if anything was, before the cluster fell silent: Flux has noted nothing of it"},
		"FellSilentAfterItsNamespaces": {tried("ConfigMap/apps/web dry-run failed: Patch \"https://192.0.2.7:6443/api\": connect: connection refused\nNamespace/apps created\n"),
			"what was applied of it, in part: Flux has noted nothing of it, and names Namespace/apps as applied by its last try; " +
				`its last message: ReconciliationFailed: Flux says, perhaps in the cluster's words: "ConfigMap/apps/web dry-run failed: Patch 'https://192.0.2.7:6443/api': connect: connection refused"`},
		"Many": {kustomization(many...), "what it applied (7 objects in namespaces ns0, ns1, ns2, ns3, ns4 and 2 more)"},
		"One":  {kustomization("default_a__ConfigMap"), "what it applied (1 object in namespaces default)"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := fluxstate.Left(tc.obj); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}
