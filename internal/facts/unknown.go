// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/expression"
	"github.com/chandler-hub/chandler/internal/origin"
)

// The facts that may be unknown, as expressions name them below cluster.
const (
	uid               = "uid"
	kubernetesVersion = "kubernetesVersion"
	versionParts      = "version"
	nodes             = "nodes"
	apiServer         = "apiServer"
	hubEndpoint       = "hubEndpoint"
	podCIDRs          = "podCIDRs"
	serviceCIDRs      = "serviceCIDRs"
)

// unknown returns the facts about a cluster that are not known. What a probe found out once stays in the status while the
// cluster does not answer, so it is known.
func unknown(reg *hubv1.ClusterRegistration, obj *unstructured.Unstructured, c *expression.Cluster) map[string]expression.Lack {
	out := map[string]expression.Lack{}
	probed := map[string]bool{
		uid: c.UID != "", kubernetesVersion: c.KubernetesVersion != "", versionParts: c.Version.Major > 0, nodes: reg.Status.Nodes != nil,
	}
	asked := Identity(reg) == ""
	for name, known := range probed {
		if !known {
			out[name] = unprobed(name, asked, reg.Status.ClusterUID != "")
		}
	}
	if c.APIServer.Host == "" {
		out[apiServer] = unaddressed(asked)
	}
	if c.HubEndpoint == "" {
		out[hubEndpoint] = unaddressed(asked)
	}
	if ref := reg.Spec.OriginRef; ref != nil && obj == nil {
		if kind, err := origin.KindOf(*ref); err == nil && kind.IsCluster() {
			lack := expression.Lack{Why: fmt.Sprintf("its origin, %s %q, is not there", ref.Kind, ref.Name)}
			out[podCIDRs], out[serviceCIDRs] = lack, lack
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// unprobed says why a fact is not known that a probe finds out.
func unprobed(name string, asked, answered bool) expression.Lack {
	switch {
	case !asked:
		return expression.Lack{Stays: true, Why: "the cluster is registered with a workload identity, and the hub cannot ask it. " +
			"Use a label or a variable of the cluster, or test with has(cluster." + name + ")"}
	case answered && name == nodes:
		return expression.Lack{Why: "the cluster has not told how many nodes it has. The hub's account there needs the right to list nodes"}
	case answered:
		return expression.Lack{Why: "the cluster has answered without it"}
	}
	return expression.Lack{Why: "the cluster has not answered yet"}
}

// unaddressed says why it is not known where the API server is.
func unaddressed(asked bool) expression.Lack {
	if !asked {
		return expression.Lack{Stays: true, Why: "the cluster is registered with a workload identity without an address, and Flux asks " +
			"the cloud for it. Write spec.kubeConfig.workloadIdentity.address, or use a variable of the cluster"}
	}
	return expression.Lack{Why: "the cluster has not answered yet"}
}

// inOrigin are the facts that an origin may say as well.
var inOrigin = map[string]string{kubernetesVersion: "the version", versionParts: "the version", apiServer: "the address of the API server"}

// InFiles says of what is not known about a cluster where an author who has only files writes it. What nothing brings by
// itself stays as it is: it cannot be written there.
func InFiles(reg *hubv1.ClusterRegistration, c *expression.Cluster) {
	where := map[string]string{
		uid: "status.clusterUID", kubernetesVersion: "status.kubernetesVersion", versionParts: "status.kubernetesVersion", nodes: "status.nodes",
		apiServer: "status.endpoint", hubEndpoint: "status.endpoint",
	}
	for name, lack := range c.Unknown {
		if lack.Stays {
			continue
		}
		lack.Why = fmt.Sprintf("write %s of the ClusterRegistration into the files", where[name])
		if ref := reg.Spec.OriginRef; ref != nil && (name == podCIDRs || name == serviceCIDRs) {
			lack.Why = fmt.Sprintf("put the %s that it comes from into the files", ref.Kind)
		} else if ref != nil && inOrigin[name] != "" && ref.Kind != origin.Secret.Kind {
			lack.Why += fmt.Sprintf(", or %s into its %s", inOrigin[name], ref.Kind)
		}
		c.Unknown[name] = lack
	}
}
