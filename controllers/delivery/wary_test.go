// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// A ServiceAccount that somebody else made, and takes away along with the set, is made again for Flux, which without one removes nothing.
func TestServiceAccountThatGoesWithItsSet(t *testing.T) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "deployer"}}
	there := func(m *fixture) bool {
		err := m.api.Get(t.Context(), client.ObjectKeyFromObject(account), &corev1.ServiceAccount{})
		m.must(client.IgnoreNotFound(err))
		return err == nil
	}
	for name, late := range map[string]bool{"Before": false, "InTheMiddle": true} {
		t.Run(name, func(t *testing.T) {
			m := newFixture(t, append(addonsOf(testSet, "1", kustomizationAddon("git", map[string]any{"serviceAccountName": "deployer"})),
				registered(testCluster, "c1"), kubeconfigSecret(testCluster, "t0"), deliveredTo(testCluster, testSet, "1"), account.DeepCopy())...)
			m.settle()
			m.withdraw(testCluster, testSet)
			if late {
				m.must(m.reconcile(testCluster)) // Flux has been told to uninstall, and has not begun
				if o := m.object(testCluster, "git"); o == nil || o.GetDeletionTimestamp() == nil {
					t.Fatalf("it is not being uninstalled: %v", o)
				}
			}
			m.quietly(func() { m.must(m.api.Delete(t.Context(), account.DeepCopy())) })
			m.must(m.reconcile(testCluster))
			if !there(m) {
				t.Error("Flux would orphan what it is to remove: its ServiceAccount is not on the hub")
			}
			m.settle()
			if len(m.uninstalled) != 1 || m.delivery(testCluster, testSet) != nil {
				t.Errorf("uninstalled: %v", m.uninstalled)
			}
		})
	}
}

// half has Flux fail in the middle of applying a Kustomization for the first time.
func (m *fixture) half(addon string, change func(*kustomizev1.Kustomization)) {
	o := m.object(testCluster, addon)
	edit(m, o.GetNamespace(), o.GetName(), &kustomizev1.Kustomization{}, func(k *kustomizev1.Kustomization) {
		k.Generation = 1
		k.Finalizers = []string{fluxFinalizer}
		k.Status = kustomizev1.KustomizationStatus{LastAttemptedRevision: "main@sha1:1"}
		apimeta.SetStatusCondition(&k.Status.Conditions, metav1.Condition{
			Type: hubv1.ReadyCondition, Status: metav1.ConditionFalse, Reason: "ReconciliationFailed", ObservedGeneration: 1,
			Message: "Deployment/apps/web dry-run failed (Invalid)\nNamespace/apps created\n",
		})
		k.Status.History = fluxmeta.History{{Digest: "d", TotalReconciliations: 1, LastReconciledStatus: "ReconciliationFailed"}}
		change(k)
	})
}

// Flux notes what it has applied when it has applied all of it. What it has applied in part, it leaves without a word: the hub says so.
func TestAppliedInPart(t *testing.T) {
	same := func(*kustomizev1.Kustomization) {}
	for name, tc := range map[string]struct {
		change func(*kustomizev1.Kustomization)
		orphan string // what its message holds; empty for none
	}{
		"Failed":     {same, "Namespace/apps"},
		"TriesAgain": {func(k *kustomizev1.Kustomization) { k.Status.Conditions[0].Status = metav1.ConditionUnknown }, "in part"},
		"NoWay": {func(k *kustomizev1.Kustomization) {
			k.Status.Conditions[0].Message = `dry-run failed: Get "https://192.0.2.7:6443/api": dial tcp: i/o timeout`
		}, ""},
		"NeverBuilt": {func(k *kustomizev1.Kustomization) {
			k.Status.Conditions[0].Reason, k.Status.History = "BuildFailed", nil
		}, ""},
		"AppliedOnce": {func(k *kustomizev1.Kustomization) {
			k.Status.LastAppliedRevision = "main@sha1:0"
			k.Status.Inventory = &kustomizev1.ResourceInventory{Entries: []kustomizev1.ResourceRef{{ID: "_apps__Namespace"}}}
		}, ""},
		"NotHealthy": {func(k *kustomizev1.Kustomization) {
			k.Status.Inventory = &kustomizev1.ResourceInventory{Entries: []kustomizev1.ResourceRef{{ID: "_apps__Namespace"}}}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := newServedFixture(t, addonsOf(testSet, "1", kustomizationAddon("git"))...)
			m.must(m.reconcile(testCluster))
			m.half("git", tc.change)
			m.settle()
			if tc.orphan != "" && name == "TriesAgain" {
				m.half("git", tc.change) // the Flux of this test has made it Ready
			}
			m.withdraw(testCluster, testSet)
			m.settle()
			got := m.orphans(testCluster)
			if m.delivery(testCluster, testSet) != nil || len(m.objects()) > 0 {
				t.Fatalf("left: %v", m.objects())
			}
			switch {
			case tc.orphan == "" && (len(got) > 0 || len(m.uninstalled) != 1):
				t.Errorf("orphans %+v; uninstalled %v", got, m.uninstalled)
			case tc.orphan != "" && (len(got) != 1 || !strings.Contains(got[0].Message, tc.orphan) || len(m.told) != 1 || len(m.uninstalled) > 0):
				t.Errorf("orphans %+v; events %q; uninstalled %v", got, m.told, m.uninstalled)
			}
		})
	}
}

// In the middle of its first try nobody knows what that will come to: deleted then, Flux would remove what it has applied if all goes well, and
// leave it if not. So the hub waits for its end.
func TestWaitsForTheFirstTry(t *testing.T) {
	m := newServedFixture(t, addonsOf(testSet, "1", kustomizationAddon("git"))...)
	m.must(m.reconcile(testCluster))
	m.half("git", func(k *kustomizev1.Kustomization) {
		k.Status.Conditions[0].Status, k.Status.History = metav1.ConditionUnknown, nil
	})
	m.withdraw(testCluster, testSet)
	m.clock.SetTime(m.clock.Now().Add(time.Minute))
	for range 3 {
		m.must(m.reconcile(testCluster))
	}
	if o := m.object(testCluster, "git"); o == nil || o.GetDeletionTimestamp() != nil {
		t.Fatal("it is deleted in the middle of Flux's first try")
	}
	m.half("git", func(*kustomizev1.Kustomization) {})
	m.settle()
	if got := m.orphans(testCluster); len(got) != 1 || m.delivery(testCluster, testSet) != nil {
		t.Errorf("orphans: %+v", got)
	}
}
