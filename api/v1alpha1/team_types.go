// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TeamSpec says which namespaces a team has on which clusters, and what its AddonSets may do there.
//
// +kubebuilder:validation:XValidation:rule="(has(self.selectAll) && self.selectAll) != (has(self.clusterSelector) && ((has(self.clusterSelector.matchLabels) && size(self.clusterSelector.matchLabels) > 0) || (has(self.clusterSelector.matchExpressions) && size(self.clusterSelector.matchExpressions) > 0)))",message="write a spec.clusterSelector that is not empty, or spec.selectAll: true for every cluster, and not both"
type TeamSpec struct {
	// hubNamespaces are the namespaces of the management cluster whose AddonSets the Team governs. Default: the
	// Team's name. A namespace has one Team at most, and a platform namespace has none.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	HubNamespaces []string `json:"hubNamespaces,omitempty"`

	// clusterSelector selects the team's clusters by the labels of their ClusterRegistration, in any namespace.
	// +optional
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`

	// selectAll gives the team every cluster, instead of a clusterSelector.
	// +optional
	SelectAll bool `json:"selectAll,omitempty"`

	// namespaces are the team's namespaces on each of its clusters. The hub makes and keeps them.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	Namespaces []TeamNamespace `json:"namespaces"`

	// dependsOn lists AddonSets of the Team's own namespace, such as those with the cluster's policies. On a cluster that
	// has them, the team gets its namespaces and its rights only when all their add-ons have been Ready, and so its own
	// add-ons come after them. When a cluster loses both, the team goes first.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	DependsOn []AddonSetReference `json:"dependsOn,omitempty"`

	// clusterRole is a ClusterRole of the clusters. It is bound to the team's ServiceAccount in each of the team's
	// namespaces, and nowhere else. Default: admin.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ClusterRole string `json:"clusterRole,omitempty"`

	// sources says which Flux sources the team may use. Default: any source of its own hub namespace.
	// +optional
	Sources *TeamSources `json:"sources,omitempty"`

	// maxPriority is the highest priority that the team's AddonSets may have.
	// +optional
	MaxPriority int32 `json:"maxPriority,omitempty"`

	// addons limits the team's add-ons.
	// +optional
	Addons *TeamAddons `json:"addons,omitempty"`

	// credential is what Flux reaches the clusters with for this team. Token (the default, and the only kind) is a
	// token of the team's ServiceAccount on each cluster, which the hub requests and renews.
	// +optional
	// +kubebuilder:validation:Enum=Token
	Credential TeamCredential `json:"credential,omitempty"`

	// deletionPolicy says what happens to a namespace on a cluster when the team loses the namespace or the cluster.
	// Orphan (the default) leaves it there with what is in it, without the team's rights. Delete deletes it.
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// TeamCredential is a kind of credential.
type TeamCredential string

// TeamCredentialToken is a token of the team's ServiceAccount on a cluster.
const TeamCredentialToken TeamCredential = "Token"

// TeamNamespace is one namespace of a team on its clusters.
type TeamNamespace struct {
	// name of the namespace. It may hold expressions.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// podSecurity is the level of the Pod Security Admission that is enforced there. Default: the cluster's own.
	// +optional
	// +kubebuilder:validation:Enum=privileged;baseline;restricted
	PodSecurity string `json:"podSecurity,omitempty"`

	// labels of the namespace.
	// +optional
	// +kubebuilder:validation:MaxProperties=50
	Labels map[string]string `json:"labels,omitempty"`

	// resourceQuota is the spec of a ResourceQuota there.
	// +optional
	ResourceQuota *corev1.ResourceQuotaSpec `json:"resourceQuota,omitempty"`

	// limitRange is the spec of a LimitRange there.
	// +optional
	LimitRange *corev1.LimitRangeSpec `json:"limitRange,omitempty"`

	// networkPolicy Isolated lets Pods there talk only to Pods of the team's own namespaces, and to the cluster's DNS.
	// None (the default) makes no NetworkPolicy.
	// +optional
	// +kubebuilder:validation:Enum=None;Isolated
	NetworkPolicy TeamNetworkPolicy `json:"networkPolicy,omitempty"`
}

// TeamNetworkPolicy says which NetworkPolicy a namespace of a team gets.
type TeamNetworkPolicy string

// The network policies of a team's namespace.
const (
	TeamNetworkNone     TeamNetworkPolicy = "None"
	TeamNetworkIsolated TeamNetworkPolicy = "Isolated"
)

// TeamSources says which Flux sources a team may use.
type TeamSources struct {
	// allow are the URLs that sources of the team may have. A * stands for any text at the end of a URL, or for one
	// label of a host name. Default: any URL.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=2048
	Allow []string `json:"allow,omitempty"`

	// kinds are the kinds of sources that the team may use. Default: all.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:items:Enum=GitRepository;OCIRepository;HelmRepository;Bucket
	Kinds []string `json:"kinds,omitempty"`

	// requireVerification wants every source to verify a signature (spec.verify of Flux's sources).
	// +optional
	RequireVerification bool `json:"requireVerification,omitempty"`
}

// TeamAddons limits a team's add-ons.
type TeamAddons struct {
	// max is how many add-ons each AddonSet of the team may have. Default: 50.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=500
	Max int32 `json:"max,omitempty"`
}

// TeamStatus is the state of a Team.
type TeamStatus struct {
	// observedGeneration is the generation that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions: Ready is always there; Reconciling and Stalled are there only while true.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// addonSet is the AddonSet beside the Team that brings its namespaces and rights to its clusters.
	// +optional
	AddonSet string `json:"addonSet,omitempty"`
	// clusters counts the clusters that have them.
	// +optional
	Clusters *ClusterCounts `json:"clusters,omitempty"`
}

// Team gives the AddonSets of some namespaces of the management cluster a place on clusters: namespaces there, and the
// rights of a role in them. Flux delivers the team's AddonSets with a token of the team's ServiceAccount on each
// cluster, and never with the cluster's admin kubeconfig. A Team counts only in a platform namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=chandler
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Clusters",type=string,JSONPath=`.status.clusters.readySummary`
// +kubebuilder:printcolumn:name="AddonSet",type=string,JSONPath=`.status.addonSet`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type Team struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec TeamSpec `json:"spec"`
	// status defaults to observedGeneration -1, as in Flux's own kinds. Otherwise kstatus would report an object that
	// the hub has not seen yet as Current.
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status TeamStatus `json:"status,omitempty"`
}

// TeamList is a list of Teams.
//
// +kubebuilder:object:root=true
type TeamList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Team `json:"items"`
}

// GetConditions returns the conditions, for the status package.
func (t *Team) GetConditions() *[]metav1.Condition { return &t.Status.Conditions }

// SetObservedGeneration sets the generation that the status describes.
func (t *Team) SetObservedGeneration(g int64) { t.Status.ObservedGeneration = g }
