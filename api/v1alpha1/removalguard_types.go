// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RemovalGuard says what happens to removals that come in large numbers.
type RemovalGuard struct {
	// mode of the guard. With Enforce (the default), a third of the set's clusters may lose add-ons, or have them reinstalled, in a
	// window (one at least), but at most three, or a tenth if that is more, whatever the cause; the rest is held until a user
	// approves it. Off lets all removals happen at once. It is for automation that withdraws clusters in large numbers.
	// +optional
	// +kubebuilder:validation:Enum=Enforce;Off
	Mode RemovalGuardMode `json:"mode,omitempty"`
	// window is the time that the limit is about; by default that of the hub's flag --removal-window, an hour.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m') && duration(self) <= duration('168h')",message="must be a duration from 1m to 168h"
	Window *metav1.Duration `json:"window,omitempty"`
}

// RemovalGuardMode is a mode of the removal guard.
type RemovalGuardMode string

// The modes of the removal guard.
const (
	RemovalGuardEnforce RemovalGuardMode = "Enforce"
	RemovalGuardOff     RemovalGuardMode = "Off"
)

// HeldRemovals are the removals that the removal guard holds. They happen when a user annotates the set with
// chandler.dev/approve-removal: <hash>. They are dropped when no edit asks for them any more.
type HeldRemovals struct {
	// count is the number of clusters that would lose, or reinstall, add-ons.
	// +required
	Count int32 `json:"count"`
	// since is when the guard began to hold something.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
	// hash is a digest of exactly what has been held since then.
	// +required
	Hash string `json:"hash"`
	// sample names some of the clusters and their add-ons.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Sample []string `json:"sample,omitempty"`
}

// Removals is the removal guard's memory of what it granted.
type Removals struct {
	// counts are the numbers of granted removals, for each twelfth of the window.
	// +optional
	// +listType=atomic
	Counts []RemovalCount `json:"counts,omitempty"`
	// underWay are digests of granted removals that are not finished. The guard does not count them again.
	// +optional
	// +listType=atomic
	UnderWay []string `json:"underWay,omitempty"`
}

// RemovalCount counts the removals that the guard has granted.
type RemovalCount struct {
	// time is when this twelfth of the window began.
	// +required
	Time metav1.Time `json:"time"`
	// count is the number of removals: each is of one cluster.
	// +required
	Count int32 `json:"count"`
}
