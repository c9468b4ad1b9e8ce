// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// What is orphaned is suspended first, and then deleted. If somebody resumes it between the two, Flux would uninstall it: it is suspended again.
func TestResumedRightBeforeItIsDeleted(t *testing.T) {
	for name, start := range map[string]func(t *testing.T) (m *fixture, object client.Object){
		"ItsAddonsStay": func(t *testing.T) (*fixture, client.Object) {
			m := newServedFixture(t, addonsOf(testSet, "1", releaseAddon("app"))...)
			m.settle()
			edit(m, "flux-system", testSet, &hubv1.AddonSet{}, func(s *hubv1.AddonSet) { s.Spec.DeletionPolicy = hubv1.DeletionPolicyOrphan })
			m.withdraw(testCluster, testSet)
			return m, m.object(testCluster, "app")
		},
		"ItIsHandedOver": func(t *testing.T) (*fixture, client.Object) {
			old := byHand(func(hr *helmv2.HelmRelease) { hr.Namespace = testCluster.Namespace })
			return adoptFixture(t, old, adoptingAddonIn(testCluster.Namespace, "app")), old
		},
		"AHubThatDiedHasSuspendedIt": func(t *testing.T) (*fixture, client.Object) {
			old := byHand(func(hr *helmv2.HelmRelease) {
				hr.Namespace = testCluster.Namespace
				hr.Spec.Suspend, hr.Annotations = true, map[string]string{hubv1.SuspendedAnnotation: hubv1.TakenOverSuspension}
			})
			return adoptFixture(t, old, adoptingAddonIn(testCluster.Namespace, "app")), old
		},
	} {
		t.Run(name, func(t *testing.T) {
			m, object := start(t)
			resumed := false
			m.failing = func(what string) (error, bool) {
				if what == "delete *v2.HelmRelease" && !resumed {
					resumed = true
					edit(m, object.GetNamespace(), object.GetName(), &helmv2.HelmRelease{}, func(hr *helmv2.HelmRelease) { hr.Spec.Suspend = false })
				}
				return nil, true
			}
			m.settle()
			m.settle()
			if !resumed || len(m.uninstalled) > 0 || len(m.released) != 1 {
				t.Errorf("resumed %t, uninstalled %v, orphaned %v", resumed, m.uninstalled, m.released)
			}
		})
	}
}
