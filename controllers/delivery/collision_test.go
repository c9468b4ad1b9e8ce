// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/identity"
)

// TestObjectOfAnotherCluster: whoever finds a namespace in which his registration's objects have the names of another's gets nothing
// of the other's, and takes nothing from him. The hub's own write would have no conflict with its earlier one.
func TestObjectOfAnotherCluster(t *testing.T) {
	other := types.NamespacedName{Namespace: "attacker", Name: testCluster.Name}
	m := newServedFixture(t, addonsOf(testSet, "1", releaseAddon("falco"))...)
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"releaseName": "theirs", "chartRef": map[string]any{"kind": "OCIRepository", "name": "chart"}}}}
	u.SetGroupVersionKind(helmv2.GroupVersion.WithKind("HelmRelease"))
	u.SetNamespace("flux-system")
	u.SetName(identity.FluxObject(m.r.Config.HubID, testCluster, "falco"))
	u.SetLabels(map[string]string{hubv1.ClusterKeyLabel: identity.ClusterKey(m.r.Config.HubID, other)})
	m.must(m.api.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(hubv1.FieldManager)))
	m.settle()
	hr := &helmv2.HelmRelease{}
	m.must(m.api.Get(t.Context(), client.ObjectKeyFromObject(u), hr))
	if hr.Labels[hubv1.ClusterKeyLabel] != identity.ClusterKey(m.r.Config.HubID, other) || hr.Spec.ReleaseName != "theirs" {
		t.Errorf("the other cluster's object was written over: %+v", hr)
	}
	d := m.delivery(testCluster, testSet)
	if a := d.Status.Addons; len(a) != 1 || a[0].State != hubv1.AddonNotOwned || !strings.Contains(a[0].Message, "another cluster's") {
		t.Errorf("the delivery says %+v", a)
	}
}
