// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds Chandler's API: ClusterRegistration, AddonSet and AddonDelivery.
//
// It is imported by people's own tools, so it depends on Kubernetes' API machinery and on nothing else of ours.
//
// +kubebuilder:object:generate=true
// +groupName=chandler.dev
package v1alpha1
