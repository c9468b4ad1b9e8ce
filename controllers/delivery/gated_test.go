// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// follow has the hub look at the cluster for as long as it asks for that itself, and no event comes.
func (m *fixture) follow() {
	m.t.Helper()
	for range 100 {
		res, err := m.r.Reconcile(m.t.Context(), reconcile.Request{NamespacedName: testCluster})
		m.must(err)
		if res.RequeueAfter == 0 || res.RequeueAfter > time.Minute {
			return
		}
		m.clock.SetTime(m.clock.Now().Add(res.RequeueAfter))
	}
}

func readyAt(generation int64) metav1.Condition {
	return metav1.Condition{Type: hubv1.ReadyCondition, Status: metav1.ConditionTrue, Reason: "Succeeded", ObservedGeneration: generation}
}

// TestGateOpensAfterARestart: the hub died after it had written a change of hello, and before it said so. hello was Ready before, and is Ready
// with the change. What depends on it, and waits for that, is looked at again though the status said Ready all the time.
func TestGateOpensAfterARestart(t *testing.T) {
	for name, fails := range map[string]bool{"Alone": false, "BesideOneThatFails": true} {
		t.Run(name, func(t *testing.T) {
			after := kustomizationAddon("policies")
			after["dependsOn"] = []any{map[string]any{"name": "hello"}}
			m := newServedFixture(t, addonsOf(testSet, "1", releaseAddon("hello"), after, releaseAddon("other"))...)
			m.settle()
			next := kustomizationAddon("policies", map[string]any{"path": "./next"})
			next["dependsOn"] = after["dependsOn"]
			for _, o := range addonsOf(testSet, "2", releaseAddon("hello", map[string]any{"values": map[string]any{"a": 1}}), next, releaseAddon("other")) {
				if _, set := o.(*hubv1.AddonSet); !set {
					m.quietly(func() { m.must(m.api.Create(t.Context(), o)) })
				}
			}
			d := m.delivery(testCluster, testSet)
			edit(m, d.Namespace, d.Name, d, func(d *hubv1.AddonDelivery) { d.Spec.RevisionName = revisionOf(testSet, "2") })
			m.must(m.reconcile(testCluster)) // it writes hello, and its status waits for more progress
			m.restart()
			hello := m.object(testCluster, "hello")
			edit(m, hello.GetNamespace(), hello.GetName(), &helmv2.HelmRelease{}, func(o *helmv2.HelmRelease) {
				o.Generation, o.Status.ObservedGeneration = 2, 2
				apimeta.SetStatusCondition(&o.Status.Conditions, readyAt(2))
			})
			if fails {
				other := m.object(testCluster, "other")
				edit(m, other.GetNamespace(), other.GetName(), &helmv2.HelmRelease{}, func(o *helmv2.HelmRelease) {
					apimeta.SetStatusCondition(&o.Status.Conditions, metav1.Condition{Type: hubv1.ReadyCondition, Status: metav1.ConditionFalse,
						Reason: "UpgradeFailed", Message: "no", ObservedGeneration: 1})
				})
			}
			m.follow()
			for _, a := range m.delivery(testCluster, testSet).Status.Addons {
				t.Logf("%s %s %d %s", a.Name, a.State, a.AppliedGeneration, a.Message)
			}
			got := &kustomizev1.Kustomization{}
			m.must(m.api.Get(t.Context(), client.ObjectKeyFromObject(m.object(testCluster, "policies")), got))
			if got.Spec.Path != "./next" {
				t.Errorf("it has path %s: it waits for ever", got.Spec.Path)
			}
		})
	}
}
