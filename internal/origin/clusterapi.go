// SPDX-License-Identifier: Apache-2.0

package origin

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/breaker"
)

// What the hub may do with them:
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters,verbs=list;watch;patch

// ClusterAPI is the kind of Cluster API's clusters. The API server serves v1beta1 or v1beta2; the hub reads the
// version that it prefers.
var ClusterAPI = Kind{
	GroupKind: schema.GroupKind{Group: "cluster.x-k8s.io", Kind: "Cluster"},
	Provider:  "ClusterAPI",
	Flag:      "capi",
	CRD:       "clusters.cluster.x-k8s.io",
	traits:    clusterAPI{},
}

type clusterAPI struct{ plain }

// kubeConfig follows the contract of Cluster API: the Secret is <cluster>-kubeconfig, the key is value
// (util/secret/consts.go), and it exists once the control plane is initialized. That status never becomes false
// again. v1beta1 and v1beta2 keep it in different places.
func (c clusterAPI) kubeConfig(obj *unstructured.Unstructured) (Source, error) {
	initialized, _, _ := unstructured.NestedBool(obj.Object, "status", "initialization", "controlPlaneInitialized")
	ready, _, _ := unstructured.NestedBool(obj.Object, "status", "controlPlaneReady")
	if !initialized && !ready {
		phase := c.state(obj)
		if phase == "" {
			phase = "without a phase yet"
		}
		return Source{}, &NotReady{fmt.Sprintf("the control plane of Cluster %q is not initialized yet; the Cluster is %s", obj.GetName(), phase)}
	}
	return Source{Secret: c.usualSecret(obj.GetName()), Key: "value"}, nil
}

func (clusterAPI) usualSecret(name string) string { return name + "-kubeconfig" }

// network reads spec.clusterNetwork and spec.controlPlaneEndpoint, which are the same in v1beta1 and v1beta2.
func (clusterAPI) network(obj *unstructured.Unstructured) Network {
	var n Network
	n.Host, _, _ = unstructured.NestedString(obj.Object, "spec", "controlPlaneEndpoint", "host")
	n.Port, _, _ = unstructured.NestedInt64(obj.Object, "spec", "controlPlaneEndpoint", "port")
	n.PodCIDRs, _, _ = unstructured.NestedStringSlice(obj.Object, "spec", "clusterNetwork", "pods", "cidrBlocks")
	n.ServiceCIDRs, _, _ = unstructured.NestedStringSlice(obj.Object, "spec", "clusterNetwork", "services", "cidrBlocks")
	return n
}

// version returns the version of the cluster's topology; "" if it has none.
func (clusterAPI) version(obj *unstructured.Unstructured) string {
	v, _, _ := unstructured.NestedString(obj.Object, "spec", "topology", "version")
	return v
}

func (clusterAPI) state(obj *unstructured.Unstructured) string {
	phase, _, _ := unstructured.NestedString(obj.Object, "status", "phase")
	return phase
}

// clusterAPIPaused pauses a Cluster if it is present, whatever its value (cluster-api, util/annotations).
const clusterAPIPaused = "cluster.x-k8s.io/paused"

func (clusterAPI) maintenance(obj *unstructured.Unstructured) breaker.State {
	paused, _, _ := unstructured.NestedBool(obj.Object, "spec", "paused")
	if _, annotated := obj.GetAnnotations()[clusterAPIPaused]; !paused && !annotated {
		return breaker.State{}
	}
	return breaker.State{Reason: hubv1.ClusterAPIPausedReason, Message: fmt.Sprintf("Cluster %q is paused: Cluster API does nothing for it",
		obj.GetName())}
}

// ClusterNameLabel says to which Cluster of Cluster API an object belongs.
const ClusterNameLabel = "cluster.x-k8s.io/cluster-name"

// ofCluster returns why an origin that belongs to a Cluster of Cluster API must not be registered; "" if it belongs
// to none.
func ofCluster(obj *unstructured.Unstructured, exists func(name string) bool) string {
	if cluster := obj.GetLabels()[ClusterNameLabel]; cluster != "" && exists(cluster) {
		return fmt.Sprintf("it belongs to Cluster %q of Cluster API; label that instead", cluster)
	}
	return ""
}
