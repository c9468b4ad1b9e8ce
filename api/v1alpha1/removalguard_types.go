// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RemovalGuard says what happens to removals that come in large numbers.
type RemovalGuard struct {
	// mode of the guard. With Enforce (the default), each add-on may be removed from, or reinstalled on, a third of its
	// clusters in an hour (one at least), but at most three, or a tenth if that is more, whatever the cause; the rest is held until
	// somebody approves it. Off lets all
	// removals happen at once. It is for automation that withdraws clusters in large numbers.
	// +optional
	// +kubebuilder:validation:Enum=Enforce;Off
	Mode RemovalGuardMode `json:"mode,omitempty"`
}

// RemovalGuardMode is a mode of the removal guard.
type RemovalGuardMode string

// The modes of the removal guard.
const (
	RemovalGuardEnforce RemovalGuardMode = "Enforce"
	RemovalGuardOff     RemovalGuardMode = "Off"
)

// HeldRemovals are the removals that the removal guard holds. They happen when somebody annotates the set with
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
	// counts are the numbers of clusters that lost an add-on, for each five minutes of the last hour.
	// +optional
	// +listType=atomic
	Counts []RemovalCount `json:"counts,omitempty"`
	// underWay are digests of granted removals that are not finished. The guard does not count them again.
	// +optional
	// +listType=atomic
	UnderWay []string `json:"underWay,omitempty"`
}

// RemovalCount counts the clusters that lost an add-on.
type RemovalCount struct {
	// addon is the name of the add-on.
	// +required
	Addon string `json:"addon"`
	// time is when these five minutes began.
	// +required
	Time metav1.Time `json:"time"`
	// count is the number of clusters in these five minutes. A cluster that has lost the add-on again since then
	// counts in the later ones.
	// +required
	Count int32 `json:"count"`
	// clusters are the clusters, as three bytes of a hash for each. So a cluster that gets the add-on back and loses
	// it again counts once. Hubs up to v0.1 did not write this; their counts are taken as they are.
	// +optional
	Clusters []byte `json:"clusters,omitempty"`
}
