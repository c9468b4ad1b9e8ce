// SPDX-License-Identifier: Apache-2.0

package origin

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/teardown"
)

// Policy decides which origins are registered.
type Policy struct {
	// RegisterAll holds the Flag of each kind that is registered without the label.
	RegisterAll []string
	// SecretNamespaces are the namespaces in which a labelled Secret or ClusterProfile registers a cluster, beside the namespaces with
	// the label; "*" means all. A user who can write one in such a namespace can have the hub deliver add-ons,
	// with the secrets in them, to a server of his choice.
	SecretNamespaces []string
	// Rules register origins without the label. SecretNamespaces, and the label on a Namespace, bound them as they bound labelled Secrets.
	Rules []Rule
}

// Verdict is the decision about one origin.
type Verdict struct {
	// Origin is OriginWanted, OriginUnwanted or OriginDeleting; for an origin that is not the cluster itself also
	// OriginGone.
	Origin teardown.Origin
	// AtOnce is true if an unwanted origin has the label with the value "false", so that no delay runs.
	AtOnce bool
	// Copied is true if an origin that counts as gone still exists, and its labels count as long as it does.
	Copied bool
	// Refused says why an origin with the label is not registered; "" otherwise.
	Refused string
	// NoKubeConfig is true if it is refused only because the hub can take no kubeconfig from it: a registration that has its own, with
	// spec.originRef, is served.
	NoKubeConfig bool
	// Reason is the reason of a refusal that also forbids taking the kubeconfig from this origin; "" otherwise.
	Reason string
	// By is what the rule says that matches the origin; nil if none does. It counts also for an origin that the label registers, so that the
	// label, which may come later, changes nothing else.
	By *Ruling
}

// RegistrationName returns the name of the registration of an origin, before any other origin has it.
func (v Verdict) RegistrationName(origin string) string {
	if v.By != nil {
		return v.By.Name
	}
	return origin
}

// Around is the surroundings of an origin that decide about it.
type Around struct {
	// NamespaceLabels are the labels of its namespace; nil if they are not known.
	NamespaceLabels map[string]string
	// ClusterExists returns whether its namespace has a Cluster API Cluster of that name.
	ClusterExists func(name string) bool
}

// Judge decides about an origin. The label, if there is one, counts before any rule.
func (p Policy) Judge(k Kind, obj *unstructured.Unstructured, around Around) Verdict {
	by := p.Ruling(k, obj)
	verdict := p.judge(k, obj, around, by)
	verdict.By = by
	return verdict
}

func (p Policy) judge(k Kind, obj *unstructured.Unstructured, around Around, by *Ruling) Verdict {
	deleted := obj.GetDeletionTimestamp() != nil
	if _, moving := obj.GetAnnotations()[moveAnnotation]; moving || deleted && k.IsCluster() {
		return Verdict{Origin: teardown.OriginDeleting}
	}
	switch value, labelled := obj.GetLabels()[hubv1.RegisterLabel]; {
	case value == "false":
		return Verdict{Origin: teardown.OriginUnwanted, AtOnce: true}
	case deleted:
		// Only the way to the cluster is being deleted. A finalizer or a foreground deletion, such as a prune by Argo
		// CD, may keep the object for long, so it counts as gone already.
		return Verdict{Origin: teardown.OriginGone, Copied: p.Asks(k, obj) && p.allows(obj.GetNamespace(), around.NamespaceLabels)}
	case value == "true":
	case labelled:
		return Verdict{Origin: teardown.OriginUnwanted, Refused: fmt.Sprintf("label %s is %q; write \"true\" or \"false\"", hubv1.RegisterLabel,
			value)}
	case by != nil:
	case k.Flag == "" || !slices.Contains(p.RegisterAll, k.Flag):
		return Verdict{Origin: teardown.OriginUnwanted}
	}
	if !k.IsCluster() && !p.allows(obj.GetNamespace(), around.NamespaceLabels) {
		return Verdict{Origin: teardown.OriginUnwanted, Reason: hubv1.NamespaceNotAllowedReason, Refused: fmt.Sprintf(
			"%ss in namespace %q may not register clusters; label %s: \"true\" on the Namespace allows it, or --secret-namespaces",
			k.Kind, obj.GetNamespace(), hubv1.RegisterSecretsLabel)}
	}
	if why := by.invalid(); why != "" {
		return Verdict{Origin: teardown.OriginUnwanted, Refused: why}
	}
	if why := k.traits.refuse(obj, around.ClusterExists); why != "" {
		return Verdict{Origin: teardown.OriginUnwanted, Refused: why}
	}
	if why := k.traits.noKubeConfig(obj); why != "" {
		return Verdict{Origin: teardown.OriginUnwanted, Refused: why, NoKubeConfig: true}
	}
	return Verdict{Origin: teardown.OriginWanted}
}

// moveAnnotation is the annotation that `clusterctl move` puts on the objects that it deletes here because another
// management cluster has them now (cmd/clusterctl/api/v1alpha3, DeleteForMoveAnnotation).
const moveAnnotation = "clusterctl.cluster.x-k8s.io/delete-for-move"

// allows returns whether Secrets and ClusterProfiles in a namespace may register clusters. The right to label a Namespace decides that on
// a cluster with tenants; the right to write Secrets in it does not.
func (p Policy) allows(namespace string, labels map[string]string) bool {
	return labels[hubv1.RegisterSecretsLabel] == "true" || slices.Contains(p.SecretNamespaces, "*") ||
		slices.Contains(p.SecretNamespaces, namespace)
}
