// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// OwnMetadata are labels and annotations of your own on the Flux objects that the hub makes. A value may hold
// expressions. These keys are refused: those by which Flux, the hub, Kubernetes and other tools know what is theirs
// and what to do with it, such as chandler.dev/ and everything of fluxcd.io but annotations of
// event.toolkit.fluxcd.io/.
type OwnMetadata struct {
	// labels, such as team: payments.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	Labels map[string]string `json:"labels,omitempty"`

	// annotations, such as event.toolkit.fluxcd.io/team, which Flux copies into each event about the object.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	Annotations map[string]string `json:"annotations,omitempty"`
}
