// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// Somebody has a HelmRelease of his own with the release of an add-on. When he gives it another release or cluster, the add-on comes, and
// an event says so.
func TestAReleaseOfSomebodyElseIsFree(t *testing.T) {
	theirs := func() *helmv2.HelmRelease {
		hr := &helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{Namespace: testCluster.Namespace, Name: "theirs", Generation: 1}}
		hr.Spec.ChartRef = &helmv2.CrossNamespaceSourceReference{Kind: "OCIRepository", Name: "chart"}
		hr.Spec.ReleaseName, hr.Spec.TargetNamespace, hr.Spec.StorageNamespace = "app", "app", "app"
		hr.Spec.KubeConfig = &fluxmeta.KubeConfigReference{SecretRef: &fluxmeta.SecretKeyReference{Name: testCluster.Name}}
		return hr
	}
	for name, tc := range map[string]struct {
		edit func(*helmv2.HelmRelease)
		free bool
	}{
		"OtherRelease":   {func(hr *helmv2.HelmRelease) { hr.Spec.ReleaseName = "other" }, true},
		"OtherNamespace": {func(hr *helmv2.HelmRelease) { hr.Spec.StorageNamespace = "other" }, true},
		"OtherCluster":   {func(hr *helmv2.HelmRelease) { hr.Spec.KubeConfig.SecretRef.Name = "two" }, true},
		"SameCluster":    {func(hr *helmv2.HelmRelease) { hr.Spec.KubeConfig = nil }, true},
		"FluxIsAtWork":   {func(hr *helmv2.HelmRelease) { hr.Status.ObservedGeneration = 1 }, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := newServedFixture(t, append(addonsOf(testSet, "1", releaseAddon("app")), theirs())...)
			m.settle()
			if a := m.delivery(testCluster, testSet).Status.Addons; len(a) != 1 || a[0].State != hubv1.AddonNotOwned {
				t.Fatalf("it is theirs: %+v", a)
			}
			before, after := theirs(), &helmv2.HelmRelease{}
			edit(m, before.Namespace, before.Name, after, func(hr *helmv2.HelmRelease) {
				if tc.edit(hr); tc.free {
					hr.Generation = 2
				}
			})
			e := event.UpdateEvent{ObjectOld: before, ObjectNew: after}
			if wakes := foreignChanges().Update(e); wakes != tc.free {
				t.Errorf("it wakes the cluster: %t, want %t", wakes, tc.free)
			}
			if m.settle(); (m.object(testCluster, "app") != nil) != tc.free {
				t.Errorf("it is there: %t, want %t", !tc.free, tc.free)
			}
		})
	}
}
