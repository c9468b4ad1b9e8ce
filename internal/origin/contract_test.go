// SPDX-License-Identifier: Apache-2.0

package origin_test

import (
	"testing"

	kamajiv1alpha1 "github.com/clastix/kamaji/api/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/chandler-hub/chandler/internal/origin"
)

// TestPathsAreTheirs holds the paths that this package reads against the Go types of Kamaji and Cluster API: the package
// itself reads maps, so that no field or state that it does not know can break it.
func TestPathsAreTheirs(t *testing.T) {
	tcp := &kamajiv1alpha1.TenantControlPlane{}
	tcp.Name = "tenant1"
	tcp.Status.KubeConfig.Admin.SecretName = "from-status"
	if got, err := origin.Kamaji.KubeConfig(fromType(t, tcp)); err != nil || got.Secret != "from-status" {
		t.Errorf("TenantControlPlane: %+v, %v", got, err)
	}
	cluster := &clusterv1.Cluster{}
	cluster.Name = "c1"
	cluster.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	if got, err := origin.ClusterAPI.KubeConfig(fromType(t, cluster)); err != nil || got.Secret != "c1-kubeconfig" {
		t.Errorf("Cluster: %+v, %v", got, err)
	}
	if got := kamajiv1alpha1.GroupVersion.Group; got != origin.Kamaji.Group {
		t.Errorf("Kamaji's group is %q", got)
	}
	if got := clusterv1.GroupVersion.Group; got != origin.ClusterAPI.Group {
		t.Errorf("Cluster API's group is %q", got)
	}
}

func fromType(t *testing.T, obj any) *unstructured.Unstructured {
	t.Helper()
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: m}
}
