// SPDX-License-Identifier: Apache-2.0

package origin

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/breaker"
)

// Still returns the state in which an origin says that nothing can be applied to its cluster: a state that somebody chose, and no
// failure. Kamaji's are in status.kubernetesResources.version.status (Sleeping and WriteLimited since its edge releases); one
// that no release of ours knows is none.
func Still(k Kind, obj *unstructured.Unstructured) breaker.State {
	if obj == nil || k.GroupKind != Kamaji.GroupKind {
		return breaker.State{}
	}
	switch kamajiState(obj) {
	case "Sleeping":
		return breaker.State{Reason: hubv1.ClusterSleepingReason, Message: fmt.Sprintf("TenantControlPlane %q is Sleeping: it has no replicas", obj.GetName())}
	case "WriteLimited":
		return breaker.State{Reason: hubv1.ClusterWriteLimitedReason, Message: fmt.Sprintf("TenantControlPlane %q is WriteLimited: its spec.writePermissions lets nobody write", obj.GetName())}
	case "Migrating": // its webhook kamaji-freeze denies every change while the data goes to another DataStore
		return breaker.State{Reason: hubv1.ClusterMigratingReason, Message: fmt.Sprintf("TenantControlPlane %q is Migrating: Kamaji lets nobody write until its data has moved", obj.GetName())}
	}
	return breaker.State{}
}

// Maintenance returns what the origin's own controller does with the cluster, or has been told not to do. It goes on being served,
// and is expected to miss probes.
func Maintenance(k Kind, obj *unstructured.Unstructured) breaker.State {
	switch {
	case obj == nil:
	case k.GroupKind == Kamaji.GroupKind:
		switch kamajiState(obj) {
		case "Upgrading":
			return breaker.State{Reason: hubv1.ClusterUpgradingReason, Message: fmt.Sprintf("TenantControlPlane %q is Upgrading", obj.GetName()), Restarts: true}
		case "CertificateAuthorityRotating":
			return breaker.State{Reason: hubv1.ClusterRotatingCAReason, Message: fmt.Sprintf("TenantControlPlane %q is CertificateAuthorityRotating", obj.GetName()), Restarts: true}
		}
	case k.GroupKind == ClusterAPI.GroupKind:
		paused, _, _ := unstructured.NestedBool(obj.Object, "spec", "paused")
		_, annotated := obj.GetAnnotations()[clusterAPIPaused]
		if paused || annotated {
			return breaker.State{Reason: hubv1.ClusterAPIPausedReason, Message: fmt.Sprintf("Cluster %q is paused: Cluster API does nothing for it", obj.GetName())}
		}
	}
	return breaker.State{}
}

// State is the word in which the origin's own controller says how its cluster is; empty where there is none. It is compared, and
// not understood: when it changes, it is time to look at the cluster.
func State(k Kind, obj *unstructured.Unstructured) string {
	switch {
	case obj == nil:
	case k.GroupKind == Kamaji.GroupKind:
		return kamajiState(obj)
	case k.GroupKind == ClusterAPI.GroupKind:
		phase, _, _ := unstructured.NestedString(obj.Object, "status", "phase")
		return phase
	}
	return ""
}

// clusterAPIPaused pauses by being there, whatever its value (cluster-api, util/annotations).
const clusterAPIPaused = "cluster.x-k8s.io/paused"

func kamajiState(obj *unstructured.Unstructured) string {
	state, _, _ := unstructured.NestedString(obj.Object, "status", "kubernetesResources", "version", "status")
	return state
}
