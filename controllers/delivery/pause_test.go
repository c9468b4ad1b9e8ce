// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// A registration that is deleted, and stays since its pause would be lost, is paused all the same. Unregistering ends the pause.
func TestPausedRegistrationIsDeleted(t *testing.T) {
	reg := registered(testCluster, "c1")
	reg.Finalizers = []string{hubv1.RegistrationFinalizer}
	m := newFixture(t, append(addonsOf(testSet, "1", releaseAddon("app"), kustomizationAddon("git")),
		reg, kubeconfigSecret(testCluster, "t0"), deliveredTo(testCluster, testSet, "1"))...)
	m.settle()
	m.pause(true)
	m.quietly(func() { m.must(m.api.Delete(t.Context(), reg)) })
	m.withdraw(testCluster, testSet)
	m.settle()
	if len(m.objects()) != 2 || len(m.released)+len(m.uninstalled) > 0 {
		t.Fatalf("paused: orphaned %v, uninstalled %v", m.released, m.uninstalled)
	}
	edit(m, testCluster.Namespace, testCluster.Name, &hubv1.ClusterRegistration{}, func(reg *hubv1.ClusterRegistration) {
		apimeta.SetStatusCondition(&reg.Status.Conditions, metav1.Condition{Type: hubv1.UnregisteringCondition, Status: metav1.ConditionTrue, Reason: hubv1.UnregisteredReason, Message: "it is unregistered"})
	})
	m.settle()
	if len(m.objects()) > 0 || len(m.uninstalled) != 2 {
		t.Errorf("unregistered: orphaned %v, uninstalled %v", m.released, m.uninstalled)
	}
}
