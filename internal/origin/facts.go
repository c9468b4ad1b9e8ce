// SPDX-License-Identifier: Apache-2.0

package origin

import (
	"net"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Network is what an origin says about its cluster's network, as far as it does.
type Network struct {
	// Host and Port are where nodes reach the API server; empty and 0 if that is not known.
	Host                   string
	Port                   int64
	PodCIDRs, ServiceCIDRs []string
}

// NetworkOf reads it from where each kind keeps it. Kamaji: spec.networkProfile and status.controlPlaneEndpoint
// (api/v1alpha1, NetworkProfileSpec). Cluster API: spec.clusterNetwork and spec.controlPlaneEndpoint, alike in v1beta1 and
// v1beta2.
func NetworkOf(k Kind, obj *unstructured.Unstructured) Network {
	if obj == nil {
		return Network{}
	}
	switch k.GroupKind {
	case Kamaji.GroupKind:
		return kamajiNetwork(obj)
	case ClusterAPI.GroupKind:
		return clusterAPINetwork(obj)
	}
	return Network{}
}

func kamajiNetwork(obj *unstructured.Unstructured) Network {
	var n Network
	if endpoint, _, _ := unstructured.NestedString(obj.Object, "status", "controlPlaneEndpoint"); endpoint != "" {
		host, port, err := net.SplitHostPort(endpoint)
		if err == nil {
			n.Host = host
			n.Port, _ = strconv.ParseInt(port, 10, 64)
		}
	}
	profile := []string{"spec", "networkProfile"}
	if n.Host == "" {
		n.Host, _, _ = unstructured.NestedString(obj.Object, append(profile, "address")...)
		n.Port, _, _ = unstructured.NestedInt64(obj.Object, append(profile, "port")...)
	}
	if cidr, _, _ := unstructured.NestedString(obj.Object, append(profile, "podCidr")...); cidr != "" {
		n.PodCIDRs = []string{cidr}
	}
	if cidr, _, _ := unstructured.NestedString(obj.Object, append(profile, "serviceCidr")...); cidr != "" {
		n.ServiceCIDRs = []string{cidr}
	}
	return n
}

func clusterAPINetwork(obj *unstructured.Unstructured) Network {
	var n Network
	n.Host, _, _ = unstructured.NestedString(obj.Object, "spec", "controlPlaneEndpoint", "host")
	n.Port, _, _ = unstructured.NestedInt64(obj.Object, "spec", "controlPlaneEndpoint", "port")
	n.PodCIDRs, _, _ = unstructured.NestedStringSlice(obj.Object, "spec", "clusterNetwork", "pods", "cidrBlocks")
	n.ServiceCIDRs, _, _ = unstructured.NestedStringSlice(obj.Object, "spec", "clusterNetwork", "services", "cidrBlocks")
	return n
}
