// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"strings"
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// What leaves since the Secret of its cluster did not come back is orphaned, when the guard has let its delivery go, and told of.
func TestOriginLost(t *testing.T) {
	m := newServedFixture(t, addonsOf(testSet, "1", releaseAddon("app"), kustomizationAddon("git"))...)
	m.settle()
	edit(m, testCluster.Namespace, testCluster.Name, &hubv1.ClusterRegistration{}, func(reg *hubv1.ClusterRegistration) {
		apimeta.SetStatusCondition(&reg.Status.Conditions, metav1.Condition{Type: hubv1.UnregisteringCondition, Status: metav1.ConditionTrue, Reason: hubv1.OriginLostReason, Message: "the Secret is gone"})
	})
	m.settle()
	if len(m.objects()) != 2 || len(m.released)+len(m.uninstalled) > 0 {
		t.Fatalf("what the guard holds: orphaned %v, uninstalled %v", m.released, m.uninstalled)
	}
	m.withdraw(testCluster, testSet)
	m.settle()
	if got := m.orphans(testCluster); len(m.objects()) > 0 || len(m.released) != 2 || len(m.uninstalled) > 0 || len(got) != 2 || !strings.Contains(got[0].Message, "the Secret is gone") {
		t.Errorf("orphaned %v, uninstalled %v, orphans %+v", m.released, m.uninstalled, got)
	}
}
