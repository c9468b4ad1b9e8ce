// SPDX-License-Identifier: Apache-2.0

package origin

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/teardown"
)

// Policy says which origins are registered.
type Policy struct {
	// RegisterAll holds the Flag of each kind that is registered without the label.
	RegisterAll []string
	// SecretNamespaces are the namespaces in which a labelled Secret registers a cluster, beside those that are labelled for it; "*"
	// is all. Whoever can write a Secret there has the hub deliver add-ons, with what secrets they hold, to a server of their choice.
	SecretNamespaces []string
}

// Verdict says what an origin asks for.
type Verdict struct {
	// Origin is OriginWanted, OriginUnwanted or OriginDeleting; of an origin that is no cluster also OriginGone.
	Origin teardown.Origin
	// AtOnce is true if an unwanted origin says so itself, with the value "false", and there is no delay.
	AtOnce bool
	// Refused says why an origin that asks for it is not registered all the same; empty otherwise.
	Refused string
	// Reason is the reason of a refusal that holds for a kubeconfig as well: it is not taken from such an origin. Empty otherwise.
	Reason string
}

// Around is what lies around an origin.
type Around struct {
	// NamespaceLabels are those of its namespace; none if it is not known.
	NamespaceLabels map[string]string
	// ClusterExists tells whether a Cluster API Cluster of a name exists in its namespace.
	ClusterExists func(name string) bool
}

// Judge returns what an origin asks for.
func (p Policy) Judge(k Kind, obj *unstructured.Unstructured, around Around) Verdict {
	deleted := obj.GetDeletionTimestamp() != nil
	if _, moving := obj.GetAnnotations()[moveAnnotation]; moving || deleted && k.IsCluster() {
		return Verdict{Origin: teardown.OriginDeleting}
	}
	switch value, labelled := obj.GetLabels()[hubv1.RegisterLabel]; {
	case value == "false":
		return Verdict{Origin: teardown.OriginUnwanted, AtOnce: true}
	case deleted:
		// Only the way to the cluster goes. A finalizer, or a deletion in the foreground, as a prune of Argo CD's is, may hold it for
		// long: that is no other news than that it is not there.
		return Verdict{Origin: teardown.OriginGone}
	case value == "true":
	case labelled:
		return Verdict{Origin: teardown.OriginUnwanted, Refused: fmt.Sprintf("label %s is %q; write \"true\" or \"false\"", hubv1.RegisterLabel, value)}
	case k.Flag == "" || !slices.Contains(p.RegisterAll, k.Flag):
		return Verdict{Origin: teardown.OriginUnwanted}
	}
	if k == Secret && !p.allows(obj.GetNamespace(), around.NamespaceLabels) {
		return Verdict{Origin: teardown.OriginUnwanted, Reason: hubv1.NamespaceNotAllowedReason, Refused: fmt.Sprintf(
			"Secrets in namespace %q may not register clusters; label %s: \"true\" on the Namespace allows it, or --secret-namespaces", obj.GetNamespace(), hubv1.RegisterSecretsLabel)}
	}
	if why := k.traits.refuse(obj, around.ClusterExists); why != "" {
		return Verdict{Origin: teardown.OriginUnwanted, Refused: why}
	}
	return Verdict{Origin: teardown.OriginWanted}
}

// moveAnnotation is what `clusterctl move` puts on what it deletes here because it is in another management cluster now
// (cmd/clusterctl/api/v1alpha3, DeleteForMoveAnnotation).
const moveAnnotation = "clusterctl.cluster.x-k8s.io/delete-for-move"

// allows returns whether Secrets in a namespace may register clusters. Who may label a Namespace decides for a cluster of tenants;
// who may write Secrets in it does not.
func (p Policy) allows(namespace string, labels map[string]string) bool {
	return labels[hubv1.RegisterSecretsLabel] == "true" || slices.Contains(p.SecretNamespaces, "*") || slices.Contains(p.SecretNamespaces, namespace)
}
