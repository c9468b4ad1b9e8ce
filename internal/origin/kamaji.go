// SPDX-License-Identifier: Apache-2.0

package origin

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/breaker"
)

// What the hub may do with them:
// +kubebuilder:rbac:groups=kamaji.clastix.io,resources=tenantcontrolplanes,verbs=list;watch;patch

// Kamaji is the kind of Kamaji's tenant control planes.
var Kamaji = Kind{
	GroupKind: schema.GroupKind{Group: "kamaji.clastix.io", Kind: "TenantControlPlane"},
	Provider:  "Kamaji",
	Flag:      "kamaji",
	CRD:       "tenantcontrolplanes.kamaji.clastix.io",
	traits:    kamaji{},
}

type kamaji struct{ plain }

// kamajiKeyAnnotation is Kamaji's own (api/v1alpha1/types.go, KubeconfigSecretKeyAnnotation).
const kamajiKeyAnnotation = "kamaji.clastix.io/kubeconfig-secret-key"

// kubeConfig reads status.kubeconfig.admin.secretName. The Secret holds the admin's kubeconfig twice: admin.svc names
// the Service, which a hub beside Kamaji reaches best, and admin.conf the address that nodes use. Which of them works
// depends on where the hub runs, so both are candidates, and the probe decides.
//
// The hub ignores the status word here. Kamaji says Ready only when every replica is ready, so an API server that
// answers may be NotReady; and v1.0.0 says Ready at zero replicas. The probe knows better.
func (k kamaji) kubeConfig(obj *unstructured.Unstructured) (Source, error) {
	secret, _, _ := unstructured.NestedString(obj.Object, "status", "kubeconfig", "admin", "secretName")
	if secret == "" {
		state := k.state(obj)
		if state == "" {
			state = "without a status yet"
		}
		return Source{}, &NotReady{fmt.Sprintf("TenantControlPlane %q has no status.kubeconfig.admin.secretName; it is %s", obj.GetName(), state)}
	}
	if key := obj.GetAnnotations()[kamajiKeyAnnotation]; key != "" {
		return Source{Secret: secret, Key: key}, nil
	}
	return Source{Secret: secret, Candidates: []string{"admin.svc", "admin.conf"}}, nil
}

func (kamaji) usualSecret(name string) string { return name + "-admin-kubeconfig" }

// network reads spec.networkProfile and status.controlPlaneEndpoint (api/v1alpha1, NetworkProfileSpec).
func (kamaji) network(obj *unstructured.Unstructured) Network {
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

func (kamaji) version(obj *unstructured.Unstructured) string {
	v, _, _ := unstructured.NestedString(obj.Object, "spec", "kubernetes", "version")
	return v
}

// state reads status.kubernetesResources.version.status. Sleeping and WriteLimited exist since Kamaji's edge
// releases.
func (kamaji) state(obj *unstructured.Unstructured) string {
	state, _, _ := unstructured.NestedString(obj.Object, "status", "kubernetesResources", "version", "status")
	return state
}

func (k kamaji) still(obj *unstructured.Unstructured) breaker.State {
	switch k.state(obj) {
	case "Sleeping":
		return breaker.State{Reason: hubv1.ClusterSleepingReason, Message: fmt.Sprintf("TenantControlPlane %q is Sleeping: it has no replicas",
			obj.GetName())}
	case "WriteLimited":
		return breaker.State{Reason: hubv1.ClusterWriteLimitedReason,
			Message: fmt.Sprintf("TenantControlPlane %q is WriteLimited: its spec.writePermissions refuses all writes", obj.GetName())}
	case "Migrating": // its webhook kamaji-freeze denies every change while the data goes to another DataStore
		return breaker.State{Reason: hubv1.ClusterMigratingReason,
			Message: fmt.Sprintf("TenantControlPlane %q is Migrating: Kamaji refuses all writes until its data has moved", obj.GetName())}
	}
	return breaker.State{}
}

func (k kamaji) maintenance(obj *unstructured.Unstructured) breaker.State {
	switch k.state(obj) {
	case "Upgrading":
		return breaker.State{Reason: hubv1.ClusterUpgradingReason, Message: fmt.Sprintf("TenantControlPlane %q is Upgrading", obj.GetName()),
			Restarts: true}
	case "CertificateAuthorityRotating":
		return breaker.State{Reason: hubv1.ClusterRotatingCAReason, Message: fmt.Sprintf("TenantControlPlane %q is CertificateAuthorityRotating",
			obj.GetName()), Restarts: true}
	}
	return breaker.State{}
}

func (kamaji) refuse(obj *unstructured.Unstructured, clusterExists func(string) bool) string {
	if why := ofCluster(obj, clusterExists); why != "" {
		return why
	}
	for _, o := range obj.GetOwnerReferences() {
		if o.Kind == "KamajiControlPlane" {
			return fmt.Sprintf("it belongs to KamajiControlPlane %q of Cluster API; label its Cluster instead", o.Name)
		}
	}
	// Kamaji's Cluster API provider gives this name, and no owner, to a control plane whose Cluster is in another
	// management cluster.
	if uid, ok := strings.CutPrefix(obj.GetName(), "kcp-"); ok && len(uid) == 36 {
		return "it belongs to a KamajiControlPlane of Cluster API elsewhere; label its Cluster instead"
	}
	return ""
}
