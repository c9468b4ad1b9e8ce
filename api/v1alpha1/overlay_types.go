// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Overlay changes add-ons, and adds variables, for the clusters that match it.
//
// +kubebuilder:validation:XValidation:rule="has(self.clusterSelector) || has(self.when)",message="write a clusterSelector, when, or both: an overlay for every cluster belongs into the add-on itself"
type Overlay struct {
	// name of the overlay, for messages.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// clusterSelector selects clusters by the labels of their ClusterRegistration.
	// +optional
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`

	// when is an expression. If there is a clusterSelector too, both must match.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	When string `json:"when,omitempty"`

	// variables of this overlay. They may hold expressions.
	// +optional
	Variables map[string]apiextensionsv1.JSON `json:"variables,omitempty"`

	// addons are changes to the set's add-ons.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=100
	Addons []AddonOverlay `json:"addons,omitempty"`
}

// AddonOverlay changes one add-on: its body is merged (RFC 7386; within Helm values, null is kept), then patches apply.
type AddonOverlay struct {
	// name of the add-on.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=53
	Name string `json:"name"`

	AddonBody `json:",inline"`

	// patches are RFC 6902 operations on the add-on's body after the merge. They can change lists and remove keys.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Patches []PatchOperation `json:"patches,omitempty"`

	// exclude leaves the add-on out, if true; false undoes an earlier overlay's exclude.
	// +optional
	Exclude *bool `json:"exclude,omitempty"`
}

// PatchOperation is an operation of RFC 6902.
type PatchOperation struct {
	// op is add, remove, replace, move, copy or test.
	// +required
	// +kubebuilder:validation:Enum=add;remove;replace;move;copy;test
	Op string `json:"op"`
	// path is a JSON pointer into the add-on's body, such as /values/tolerations/-.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Path string `json:"path"`
	// from is a JSON pointer, for move and copy.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	From string `json:"from,omitempty"`
	// value for add, replace and test. It may hold expressions.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Value *apiextensionsv1.JSON `json:"value,omitempty"`
}
