// SPDX-License-Identifier: Apache-2.0

package origin

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/teardown"
)

// Policy says which origins are registered.
type Policy struct {
	// RegisterAll holds the Flag of each kind that is registered without the label.
	RegisterAll []string
	// SecretNamespaces are the namespaces in which a labelled Secret registers a cluster; "*" is all. Whoever can write
	// a Secret there has the hub deliver add-ons, with what secrets they hold, to a server of their choice.
	SecretNamespaces []string
}

// Verdict says what an origin asks for.
type Verdict struct {
	// Origin is OriginWanted, OriginUnwanted or OriginDeleting.
	Origin teardown.Origin
	// AtOnce is true if an unwanted origin says so itself, with the value "false", and there is no delay.
	AtOnce bool
	// Refused says why an origin that asks for it is not registered all the same; empty otherwise.
	Refused string
}

// Judge returns what an origin asks for. clusterExists tells whether a Cluster API Cluster of a name exists in the origin's
// namespace.
func (p Policy) Judge(k Kind, obj *unstructured.Unstructured, clusterExists func(name string) bool) Verdict {
	if obj.GetDeletionTimestamp() != nil {
		return Verdict{Origin: teardown.OriginDeleting}
	}
	switch value, labelled := obj.GetLabels()[hubv1.RegisterLabel]; {
	case value == "true":
	case value == "false":
		return Verdict{Origin: teardown.OriginUnwanted, AtOnce: true}
	case labelled:
		return Verdict{Origin: teardown.OriginUnwanted, Refused: fmt.Sprintf("label %s is %q; write \"true\" or \"false\"", hubv1.RegisterLabel, value)}
	case k.Flag == "" || !slices.Contains(p.RegisterAll, k.Flag):
		return Verdict{Origin: teardown.OriginUnwanted}
	}
	if why := p.refuse(k, obj, clusterExists); why != "" {
		return Verdict{Origin: teardown.OriginUnwanted, Refused: why}
	}
	return Verdict{Origin: teardown.OriginWanted}
}

const clusterNameLabel = "cluster.x-k8s.io/cluster-name"

// refuse keeps a cluster from being registered twice, and Secrets to the namespaces that the platform allows.
func (p Policy) refuse(k Kind, obj *unstructured.Unstructured, clusterExists func(string) bool) string {
	cluster := obj.GetLabels()[clusterNameLabel]
	switch k.GroupKind {
	case Kamaji.GroupKind:
		if cluster != "" && clusterExists(cluster) {
			return fmt.Sprintf("it belongs to Cluster %q of Cluster API; label that instead", cluster)
		}
		for _, o := range obj.GetOwnerReferences() {
			if o.Kind == "KamajiControlPlane" {
				return fmt.Sprintf("it belongs to KamajiControlPlane %q of Cluster API; label its Cluster instead", o.Name)
			}
		}
		// Kamaji's Cluster API provider gives this name, and no owner, to a control plane in another cluster.
		if uid, ok := strings.CutPrefix(obj.GetName(), "kcp-"); ok && len(uid) == 36 {
			return "it belongs to a KamajiControlPlane of Cluster API elsewhere; label its Cluster instead"
		}
	case Secret.GroupKind:
		if !slices.Contains(p.SecretNamespaces, "*") && !slices.Contains(p.SecretNamespaces, obj.GetNamespace()) {
			return fmt.Sprintf("Secrets in namespace %q may not register clusters; --secret-namespaces allows it", obj.GetNamespace())
		}
		if cluster != "" && clusterExists(cluster) {
			return fmt.Sprintf("it belongs to Cluster %q of Cluster API; label that instead", cluster)
		}
		for _, o := range obj.GetOwnerReferences() {
			if o.Kind == Kamaji.Kind {
				return fmt.Sprintf("it belongs to TenantControlPlane %q; label that instead", o.Name)
			}
		}
		if _, ok := obj.GetLabels()[hubv1.MirrorLabel]; ok {
			return "it is the hub's own copy of a kubeconfig"
		}
	}
	return ""
}
