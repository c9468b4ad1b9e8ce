// SPDX-License-Identifier: Apache-2.0

package origin_test

import (
	"testing"

	kamajiv1alpha1 "github.com/clastix/kamaji/api/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/origin"
)

// TestPathsAreTheirs holds the paths that this package reads against the Go types of Kamaji, Cluster API and SIG Multicluster: the package
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
	p := &inventoryv1alpha1.ClusterProfile{}
	p.Status.AccessProviders = []inventoryv1alpha1.AccessProvider{{Name: origin.SecretReader, Cluster: clientcmdv1.Cluster{Server: "https://192.0.2.7",
		Extensions: []clientcmdv1.NamedExtension{{Name: origin.ExecExtension, Extension: runtime.RawExtension{Raw: []byte(`{"name":"s","key":"value"}`)}}}}}}
	if got, err := origin.ClusterProfile.KubeConfig(fromType(t, p)); err != nil || got.Secret != "s" || got.Key != "value" {
		t.Errorf("ClusterProfile: %+v, %v", got, err)
	}
	if got := origin.ClusterProfile.Network(fromType(t, p)); got.Host != "192.0.2.7" || got.Port != 443 {
		t.Errorf("ClusterProfile: %+v", got)
	}
	if got := inventoryv1alpha1.GroupVersion.Group; got != origin.ClusterProfile.Group {
		t.Errorf("the group of ClusterProfiles is %q", got)
	}
	if got := clusterv1.GroupVersion.Group; got != origin.ClusterAPI.Group {
		t.Errorf("Cluster API's group is %q", got)
	}
}

func fromType(t *testing.T, obj any) *unstructured.Unstructured {
	t.Helper()
	m := must.Get(runtime.DefaultUnstructuredConverter.ToUnstructured(obj)).Or(t)
	return &unstructured.Unstructured{Object: m}
}
