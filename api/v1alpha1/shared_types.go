// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// DeletionPolicy says what leaving does to the add-ons on a cluster.
// +kubebuilder:validation:Enum=Delete;Orphan
type DeletionPolicy string

const (
	// DeletionPolicyDelete uninstalls the add-ons.
	DeletionPolicyDelete DeletionPolicy = "Delete"
	// DeletionPolicyOrphan leaves the add-ons on the cluster and removes only the objects on the hub.
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
