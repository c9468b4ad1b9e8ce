// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// DeletionPolicy says what happens to add-ons that leave a cluster.
// +kubebuilder:validation:Enum=Delete;Orphan
type DeletionPolicy string

const (
	// DeletionPolicyDelete has Flux uninstall the add-ons.
	DeletionPolicyDelete DeletionPolicy = "Delete"
	// DeletionPolicyOrphan leaves the add-ons on the cluster, and removes only the objects on the management cluster.
	DeletionPolicyOrphan DeletionPolicy = "Orphan"
)

// ObjectCounts counts the add-ons of a cluster or a delivery.
type ObjectCounts struct {
	// total is how many there should be.
	// +optional
	Total int32 `json:"total"`
	// ready is how many are Ready.
	// +optional
	Ready int32 `json:"ready"`
	// failed is how many have failed.
	// +optional
	Failed int32 `json:"failed"`
	// summary is ready and total in one string, such as "7/8".
	// +optional
	Summary string `json:"summary,omitempty"`
}

// Orphan is an add-on that the hub left on its cluster, without an owner: it may still be there.
type Orphan struct {
	// cluster that it was left on: namespace/name of the ClusterRegistration.
	// +required
	Cluster string `json:"cluster"`
	// addonSet that delivered it: namespace/name.
	// +required
	AddonSet string `json:"addonSet"`
	// addon is the name of the add-on.
	// +required
	Addon string `json:"addon"`
	// message says what was left, where, and why.
	// +optional
	Message string `json:"message,omitempty"`
	// takenOverBy is the Flux object of another namespace that takes over the add-on's workload. When Flux has recorded
	// the workload for that object, the hub takes the orphan off the list.
	// +optional
	TakenOverBy *FluxObjectReference `json:"takenOverBy,omitempty"`
	// since is when the hub orphaned it.
	// +required
	Since metav1.Time `json:"since"`
}

// FluxObjectReference names a HelmRelease or Kustomization.
type FluxObjectReference struct {
	// kind is HelmRelease or Kustomization.
	// +required
	Kind string `json:"kind"`
	// namespace of the object.
	// +required
	Namespace string `json:"namespace"`
	// name of the object.
	// +required
	Name string `json:"name"`
}
