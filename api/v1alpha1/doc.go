// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds Chandler's API: ClusterRegistration, AddonSet, AddonDelivery and Team.
//
// Other programs import it, so it depends only on Kubernetes' API machinery and on no other package of this module.
//
// +kubebuilder:object:generate=true
// +groupName=chandler.dev
package v1alpha1
