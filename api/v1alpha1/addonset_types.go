// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AddonSetSpec says which add-ons go to which clusters.
//
// +kubebuilder:validation:XValidation:rule="(has(self.selectAll) && self.selectAll) != (has(self.clusterSelector) && ((has(self.clusterSelector.matchLabels) && size(self.clusterSelector.matchLabels) > 0) || (has(self.clusterSelector.matchExpressions) && size(self.clusterSelector.matchExpressions) > 0)))",message="write a spec.clusterSelector that is not empty, or spec.selectAll: true for every cluster, and not both"
type AddonSetSpec struct {
	// clusterSelector selects ClusterRegistrations by their labels. An empty one is refused.
	// +optional
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`

	// selectAll selects every cluster in reach. Use it instead of clusterSelector.
	// +optional
	SelectAll bool `json:"selectAll,omitempty"`

	// priority decides between sets of the same class (platform sets, all others) that deliver the same add-on to the
	// same cluster: the higher one wins. Platform sets always win over others.
	// +optional
	// +kubebuilder:validation:Minimum=-1000
	// +kubebuilder:validation:Maximum=1000
	Priority int32 `json:"priority,omitempty"`

	// addons are what every selected cluster gets.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	Addons []Addon `json:"addons"`

	// deletionPolicy says what leaving does to the add-ons: Delete (the default) uninstalls them, Orphan leaves them on
	// the cluster. Orphan anywhere (here, at the add-on or at the registration) wins.
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// Addon is one add-on of a set: a Helm release or a Kustomization.
//
// +kubebuilder:validation:XValidation:rule="has(self.helmRelease) != has(self.kustomization)",message="write exactly one of helmRelease and kustomization"
type Addon struct {
	// name is the identity of the add-on on a cluster, and what its release name and target namespace default to.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=53
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// dependsOn lists add-ons of this set, of the same kind, that must be Ready before this one is delivered. Removal
	// runs in reverse.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	DependsOn []AddonReference `json:"dependsOn,omitempty"`

	// helmRelease is the spec of a Flux HelmRelease (helm.toolkit.fluxcd.io/v2), without kubeConfig, dependsOn and
	// suspend. The hub checks it strictly against the Flux type.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	HelmRelease *apiextensionsv1.JSON `json:"helmRelease,omitempty"`

	// kustomization is the spec of a Flux Kustomization (kustomize.toolkit.fluxcd.io/v1), without kubeConfig, dependsOn
	// and suspend. The hub checks it strictly against the Flux type.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Kustomization *apiextensionsv1.JSON `json:"kustomization,omitempty"`

	// deletionPolicy of this add-on: Delete (the default) or Orphan.
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// AddonReference names another add-on.
type AddonReference struct {
	// name of the add-on.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=53
	Name string `json:"name"`
}

// AddonSetStatus is how far a set has come.
type AddonSetStatus struct {
	// observedGeneration is the generation that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions: Ready, RolloutComplete and Healthy always; Reconciling and Stalled while true. Stalled means that the
	// set does not compile.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// revision is the newest revision that compiled: the name of a ControllerRevision beside the set.
	// +optional
	Revision string `json:"revision,omitempty"`
	// clusters counts the clusters of this set.
	// +optional
	Clusters *ClusterCounts `json:"clusters,omitempty"`
	// rollout is Complete, or Progressing while a cluster has not got the newest revision.
	// +optional
	Rollout string `json:"rollout,omitempty"`
}

// ClusterCounts counts the clusters of a set.
type ClusterCounts struct {
	// matched is how many clusters the set selects.
	// +optional
	Matched int32 `json:"matched"`
	// ready is how many of them have every add-on Ready.
	// +optional
	Ready int32 `json:"ready"`
	// updated is how many have been Ready on the newest revision.
	// +optional
	Updated int32 `json:"updated"`
	// failed is how many have an add-on that failed.
	// +optional
	Failed int32 `json:"failed"`
	// offline is how many do not answer now, or have not answered yet.
	// +optional
	Offline int32 `json:"offline"`
	// held is how many clusters a removal is held back for.
	// +optional
	Held int32 `json:"held"`
	// leaving is how many clusters are on their way out of the set.
	// +optional
	Leaving int32 `json:"leaving"`
	// readySummary is ready and matched in one string, such as "420/450".
	// +optional
	ReadySummary string `json:"readySummary,omitempty"`
	// updatedSummary is updated and matched in one string.
	// +optional
	UpdatedSummary string `json:"updatedSummary,omitempty"`
}

// AddonSet delivers add-ons to every cluster that it selects.
//
// A set in a platform namespace may select every ClusterRegistration, a set elsewhere only those of its own namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=aset,categories=chandler
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Clusters",type=string,JSONPath=`.status.clusters.readySummary`
// +kubebuilder:printcolumn:name="Updated",type=string,JSONPath=`.status.clusters.updatedSummary`
// +kubebuilder:printcolumn:name="Failed",type=integer,JSONPath=`.status.clusters.failed`
// +kubebuilder:printcolumn:name="Offline",type=integer,JSONPath=`.status.clusters.offline`
// +kubebuilder:printcolumn:name="Held",type=integer,JSONPath=`.status.clusters.held`
// +kubebuilder:printcolumn:name="Rollout",type=string,JSONPath=`.status.rollout`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Revision",type=string,priority=1,JSONPath=`.status.revision`
// +kubebuilder:printcolumn:name="Priority",type=integer,priority=1,JSONPath=`.spec.priority`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type AddonSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec AddonSetSpec `json:"spec"`
	// status defaults to a generation that never was, as Flux's own kinds do: else kstatus takes an object that the hub has
	// not seen yet for one that is finished.
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status AddonSetStatus `json:"status,omitempty"`
}

// AddonSetList is a list of AddonSets.
//
// +kubebuilder:object:root=true
type AddonSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AddonSet `json:"items"`
}

// GetConditions returns the conditions, for the status package.
func (s *AddonSet) GetConditions() *[]metav1.Condition { return &s.Status.Conditions }

// SetObservedGeneration says which generation the status speaks of.
func (s *AddonSet) SetObservedGeneration(g int64) { s.Status.ObservedGeneration = g }
