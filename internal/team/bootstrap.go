// SPDX-License-Identifier: Apache-2.0

package team

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/identity"
)

const (
	hubDomain = "chandler.dev"
	// podSecurityLabel begins the labels by which the Pod Security Admission enforces a level. Those for its audits
	// and warnings begin otherwise.
	podSecurityLabel = "pod-security.kubernetes.io/enforce"
	// managedByLabel is written by Helm on everything that it installs.
	managedByLabel = "app.kubernetes.io/managed-by"
	// keepAnnotation has Helm leave an object on the cluster when its release does not have it any more, or is
	// uninstalled.
	keepAnnotation = "helm.sh/resource-policy"
)

// Bootstrap returns the spec of the AddonSet that brings a Team's namespaces and rights to its clusters. It returns
// the error of Check for a Team that may not have them. The spec depends on what the Team says, and not on the order
// in which it lists namespaces.
//
// The add-on is never an orphan: when the Team or the cluster goes, the rights go. What is in the team's namespaces is
// data, so Helm keeps these, unless the Team says Delete. The namespace of the ServiceAccount always goes, and
// with it every token.
func Bootstrap(t *hubv1.Team) (*hubv1.AddonSetSpec, error) {
	if err := Check(t); err != nil {
		return nil, err
	}
	b := builder{team: t}
	b.account()
	byName := func(a, b hubv1.TeamNamespace) int { return cmp.Compare(a.Name, b.Name) }
	for _, n := range slices.SortedFunc(slices.Values(t.Spec.Namespaces), byName) {
		b.namespace(&n)
	}
	raw, err := json.Marshal(map[string]any{"objects": b.objects})
	if err != nil {
		return nil, fmt.Errorf("write the objects of Team %s: %w", t.Name, err)
	}
	spec := &hubv1.AddonSetSpec{SelectAll: t.Spec.SelectAll, DependsOn: slices.Clone(t.Spec.DependsOn),
		// A right that is taken goes everywhere at once, and no cluster that fails keeps it on the others.
		Rollout: &hubv1.Rollout{Strategy: hubv1.AllAtOnceStrategy}, Addons: []hubv1.Addon{{
			Name:           SetName(t.Name),
			AddonBody:      hubv1.AddonBody{Manifests: &apiextensionsv1.JSON{Raw: raw}},
			DeletionPolicy: hubv1.DeletionPolicyDelete,
		}}}
	if !spec.SelectAll {
		spec.ClusterSelector = t.Spec.ClusterSelector.DeepCopy()
	}
	return spec, nil
}

type builder struct {
	team    *hubv1.Team
	objects []map[string]any
}

// metadata is the part of an object's metadata that differs.
type metadata struct {
	name, namespace     string
	labels, annotations map[string]string
}

// add adds an object, with the label of the Team.
func (b *builder) add(apiVersion, kind string, m metadata, fields map[string]any) {
	all := map[string]string{}
	maps.Copy(all, m.labels)
	all[hubv1.TeamLabel] = b.team.Name
	meta := map[string]any{"name": m.name, "labels": all}
	if m.namespace != "" {
		meta["namespace"] = m.namespace
	}
	if len(m.annotations) > 0 {
		meta["annotations"] = m.annotations
	}
	o := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": meta}
	maps.Copy(o, fields)
	b.objects = append(b.objects, o)
}

// name returns the name of the Team's objects in a namespace.
func (b *builder) name() string { return "chandler-" + b.team.Name }

// account adds the team's ServiceAccount in a namespace of its own, where nothing runs.
func (b *builder) account() {
	ns := AccountNamespace(b.team.Name)
	b.add("v1", "Namespace", metadata{name: ns, labels: podSecurity("restricted")}, nil)
	b.add("v1", "ResourceQuota", metadata{name: b.name(), namespace: ns}, map[string]any{
		"spec": corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(0, resource.DecimalSI)}},
	})
	b.add("v1", "ServiceAccount", metadata{name: b.team.Name, namespace: ns}, map[string]any{"automountServiceAccountToken": false})
}

// namespace adds one of the team's namespaces, and what the Team says of it.
func (b *builder) namespace(n *hubv1.TeamNamespace) {
	m := metadata{name: n.Name, labels: map[string]string{}}
	maps.Copy(m.labels, n.Labels)
	if n.PodSecurity != "" {
		maps.Copy(m.labels, podSecurity(n.PodSecurity))
	}
	if b.team.Spec.DeletionPolicy != hubv1.DeletionPolicyDelete {
		m.annotations = map[string]string{keepAnnotation: "keep"}
	}
	b.add("v1", "Namespace", m, nil)
	inside := metadata{name: b.name(), namespace: n.Name}
	if n.ResourceQuota != nil {
		b.add("v1", "ResourceQuota", inside, map[string]any{"spec": n.ResourceQuota})
	}
	if n.LimitRange != nil {
		b.add("v1", "LimitRange", inside, map[string]any{"spec": n.LimitRange})
	}
	if n.NetworkPolicy == hubv1.TeamNetworkIsolated {
		b.add("networking.k8s.io/v1", "NetworkPolicy", inside, map[string]any{"spec": b.isolated()})
	}
	b.rights(n.Name)
}

// rights binds the Team's role to its ServiceAccount in one namespace. The binding's name has the role in it: the role
// of a binding cannot be changed, so with another role Helm makes another binding, and deletes this one.
func (b *builder) rights(namespace string) {
	role := cmp.Or(b.team.Spec.ClusterRole, defaultRole)
	b.add("rbac.authorization.k8s.io/v1", "RoleBinding", metadata{name: b.name() + "-" + identity.LabelValue(role), namespace: namespace},
		map[string]any{
			"roleRef":  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			"subjects": []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: b.team.Name, Namespace: AccountNamespace(b.team.Name)}},
		})
}

// podSecurity returns the labels that enforce a level of Pod security in a namespace.
func podSecurity(level string) map[string]string {
	return map[string]string{podSecurityLabel: level, podSecurityLabel + "-version": "latest"}
}

// isolated returns the policy of a namespace whose Pods talk only to Pods of the team's namespaces, and to the
// cluster's DNS. It is one policy, so that there is never one that forbids without the one that allows. It selects
// namespaces by their names, which Kubernetes itself writes on them: any other label may be changed by a team whose
// role may change its Namespace, as cluster-admin may, and so another team could come in.
func (b *builder) isolated() networkingv1.NetworkPolicySpec {
	names := make([]string, 0, len(b.team.Spec.Namespaces))
	for i := range b.team.Spec.Namespaces {
		names = append(names, b.team.Spec.Namespaces[i].Name)
	}
	slices.Sort(names)
	own, dns := called(names...), networkingv1.NetworkPolicyEgressRule{To: called(metav1.NamespaceSystem)}
	for _, protocol := range []corev1.Protocol{corev1.ProtocolUDP, corev1.ProtocolTCP} {
		dns.Ports = append(dns.Ports, networkingv1.NetworkPolicyPort{Protocol: new(protocol), Port: new(intstr.FromInt32(53))})
	}
	return networkingv1.NetworkPolicySpec{
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
		Ingress:     []networkingv1.NetworkPolicyIngressRule{{From: own}},
		Egress:      []networkingv1.NetworkPolicyEgressRule{{To: own}, dns},
	}
}

// called selects the Pods of the namespaces of some names.
func called(names ...string) []networkingv1.NetworkPolicyPeer {
	return []networkingv1.NetworkPolicyPeer{{NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: names},
	}}}}
}
