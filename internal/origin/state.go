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
	}
	return breaker.State{}
}

func kamajiState(obj *unstructured.Unstructured) string {
	state, _, _ := unstructured.NestedString(obj.Object, "status", "kubernetesResources", "version", "status")
	return state
}
