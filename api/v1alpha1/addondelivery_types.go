// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// AddonDeliverySpec says which revision of which set one cluster should have.
type AddonDeliverySpec struct {
	// registrationRef is the cluster.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.registrationRef is immutable"
	RegistrationRef RegistrationReference `json:"registrationRef"`
	// addonSetRef is the set, in the same namespace.
	// +required
	// +kubebuilder:validation:XValidation:rule="self.name == oldSelf.name",message="spec.addonSetRef.name is immutable"
	AddonSetRef DeliveredSetReference `json:"addonSetRef"`
	// revisionName is the ControllerRevision, in the same namespace, that the cluster should have.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	RevisionName string `json:"revisionName"`
	// removals are digests of what may be removed or reinstalled now (status.addons[].removal): the set's removal guard has
	// let it go.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=400
	Removals []string `json:"removals,omitempty"`
	// withdrawal is the UID of this delivery once its set has decided that it goes: right before the hub deletes it. Only then its
	// add-ons leave the cluster. A delivery that goes without it is made again, and Flux notices nothing.
	// +optional
	Withdrawal types.UID `json:"withdrawal,omitempty"`
}

// RegistrationReference names a ClusterRegistration.
type RegistrationReference struct {
	// namespace of the registration.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`
	// name of the registration.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// Key returns the namespaced name of the registration; its text is namespace/name.
func (r RegistrationReference) Key() types.NamespacedName {
	return types.NamespacedName{Namespace: r.Namespace, Name: r.Name}
}

// SetKey returns the namespaced name of the set that a delivery brings; its text is namespace/name.
func (d *AddonDelivery) SetKey() types.NamespacedName {
	return types.NamespacedName{Namespace: d.Namespace, Name: d.Spec.AddonSetRef.Name}
}

// Withdrawn returns whether a delivery is being deleted because its set has decided that it goes.
func (d *AddonDelivery) Withdrawn() bool {
	return d.DeletionTimestamp != nil && d.Spec.Withdrawal != "" && d.Spec.Withdrawal == d.UID
}

// Orphaned returns whether a delivery goes, and leaves on the cluster what it has delivered: its set has decided both at once.
func (d *AddonDelivery) Orphaned() bool {
	return d.Annotations[DeletionPolicyAnnotation] == string(DeletionPolicyOrphan)
}

// DeliveredSetReference names the AddonSet that a delivery brings, in the same namespace.
type DeliveredSetReference struct {
	// name of the set.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// uid of the set. The hub writes it. A set of the same name with another UID is another set.
	// +optional
	UID types.UID `json:"uid,omitempty"`
}

// AddonSetReference names an AddonSet in the same namespace.
type AddonSetReference struct {
	// name of the set.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// AddonState is where one add-on stands on one cluster.
type AddonState string

// The states of an add-on.
const (
	// AddonReady: Flux has it Ready at the generation that the hub applied.
	AddonReady AddonState = "Ready"
	// AddonProgressing: the hub or Flux is at work on it.
	AddonProgressing AddonState = "Progressing"
	// AddonWaitingForDependency: an add-on that it depends on is not Ready yet.
	AddonWaitingForDependency AddonState = "WaitingForDependency"
	// AddonWaitingForCluster: the cluster has not answered yet, so nothing has been made.
	AddonWaitingForCluster AddonState = "WaitingForCluster"
	// AddonWaitingForNodes: the cluster has no node yet, so nothing can run there. No failure.
	AddonWaitingForNodes AddonState = "WaitingForNodes"
	// AddonPaused: the cluster is paused, or sleeps; the hub keeps the Flux object suspended.
	AddonPaused AddonState = "Paused"
	// AddonUnreachable: the cluster does not answer; the hub keeps the Flux object suspended until it does.
	AddonUnreachable AddonState = "Unreachable"
	// AddonExcluded: the cluster, or the add-on's when, leaves it out.
	AddonExcluded AddonState = "Excluded"
	// AddonFailed: Flux, or the API server of the hub, refuses it; the message says why. It stays so while Flux tries again, until that
	// succeeds or the hub applies something else.
	AddonFailed AddonState = "Failed"
	// AddonSuspended: somebody suspended the Flux object; it stays as it is until they resume it.
	AddonSuspended AddonState = "Suspended"
	// AddonLostTo: another set delivers the add-on of that name to this cluster; the message names it.
	AddonLostTo AddonState = "LostTo"
	// AddonNotOwned: an object of that name is there that is not the hub's; it is left alone.
	AddonNotOwned AddonState = "NotOwned"
	// AddonHeld: it stays as it is. It was dropped, or an edit would have Flux reinstall it, and the set's removal guard has not
	// let it go.
	AddonHeld AddonState = "Held"
	// AddonRemoving: it is being uninstalled.
	AddonRemoving AddonState = "Removing"
	// AddonOrphaned: it was let go and may still run on the cluster.
	AddonOrphaned AddonState = "Orphaned"
)

// AddonStatus is where one add-on stands.
type AddonStatus struct {
	// name of the add-on.
	// +required
	Name string `json:"name"`
	// kind is HelmRelease or Kustomization.
	// +optional
	Kind string `json:"kind,omitempty"`
	// object is the name of the Flux object, in the delivery's namespace.
	// +optional
	Object string `json:"object,omitempty"`
	// state says where it stands.
	// +required
	State AddonState `json:"state"`
	// before is its state when it was paused or suspended, if that was Ready and nothing waits for it to go on.
	// +optional
	Before AddonState `json:"before,omitempty"`
	// since is when it got into this state.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
	// version is what Flux last applied: a chart version, or a source revision.
	// +optional
	Version string `json:"version,omitempty"`
	// appliedGeneration is the generation of the Flux object that the hub's last write led to. A higher one means that
	// somebody else has edited the spec.
	// +optional
	AppliedGeneration int64 `json:"appliedGeneration,omitempty"`
	// suspended is true while its Flux object is suspended, by whomever: should that object go now, Flux leaves what it applied.
	// +optional
	Suspended bool `json:"suspended,omitempty"`
	// reason is a word for why it is not Ready, where the state does not say it: Flux's own, of what Flux failed to do.
	// +optional
	Reason string `json:"reason,omitempty"`
	// message says why it is not Ready.
	// +optional
	Message string `json:"message,omitempty"`
	// removal stands for exactly what is to be removed or reinstalled, while the removal guard is asked for it and until it is
	// done.
	// +optional
	Removal string `json:"removal,omitempty"`
	// release is the Helm release, where it is not what the add-on's name gives: taken over from another object, and
	// kept as long as the add-on lives here.
	// +optional
	Release *HelmReleaseIdentity `json:"release,omitempty"`
	// takesOver names the Flux objects, as kind namespace/name, whose workload the add-on takes over. It is written before they go, and
	// stays until the add-on has an object of its own: if it never gets one, what they let go is an orphan.
	// +optional
	// +listType=set
	TakesOver []string `json:"takesOver,omitempty"`
	// onCluster stands for what is on the cluster of the add-on, and what Flux would leave there if somebody deleted its object now: what a
	// suspended one has there, what Flux has applied half way and not noted, and what a deleted one has left until the next one goes on with it.
	// +optional
	// +listType=set
	OnCluster []string `json:"onCluster,omitempty"`
}

// HelmReleaseIdentity says which Helm release a HelmRelease manages. A change of any of these makes Flux uninstall the old
// release and install another.
type HelmReleaseIdentity struct {
	// name of the release.
	// +required
	Name string `json:"name"`
	// namespace that it is installed into.
	// +required
	Namespace string `json:"namespace"`
	// storageNamespace is where Helm keeps its records.
	// +required
	StorageNamespace string `json:"storageNamespace"`
}

// AddonDeliveryStatus is how far a delivery has come.
type AddonDeliveryStatus struct {
	// observedGeneration is the generation that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions: Ready always; Reconciling, Stalled and OverridesRefused while true.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// addons are the add-ons of the revision, and those that are still being removed. The list is atomic: the hub alone writes it, and an
	// owner for each field of each add-on would be most of the object.
	// +optional
	// +listType=atomic
	Addons []AddonStatus `json:"addons,omitempty"`
	// addonCounts counts the add-ons.
	// +optional
	AddonCounts *ObjectCounts `json:"addonCounts,omitempty"`
	// observedRevision is the revision whose objects were last written in full.
	// +optional
	ObservedRevision string `json:"observedRevision,omitempty"`
	// readyRevision is the last revision on which every add-on has been Ready at once.
	// +optional
	ReadyRevision string `json:"readyRevision,omitempty"`
	// readyTime is when that was first seen, by the hub's clock. A soak is counted from here.
	// +optional
	ReadyTime *metav1.Time `json:"readyTime,omitempty"`
}

// AddonDelivery is what one AddonSet brings to one cluster. The hub writes it; people read it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=addondeliveries,shortName=adel,categories=chandler
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.spec.registrationRef.name`
// +kubebuilder:printcolumn:name="Set",type=string,JSONPath=`.spec.addonSetRef.name`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Addons",type=string,JSONPath=`.status.addonCounts.summary`
// +kubebuilder:printcolumn:name="Revision",type=string,JSONPath=`.spec.revisionName`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type AddonDelivery struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec AddonDeliverySpec `json:"spec"`
	// status defaults to a generation that never was, as Flux's own kinds do: else kstatus takes an object that the hub has
	// not seen yet for one that is finished.
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status AddonDeliveryStatus `json:"status,omitempty"`
}

// AddonDeliveryList is a list of AddonDeliveries.
//
// +kubebuilder:object:root=true
type AddonDeliveryList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AddonDelivery `json:"items"`
}

// GetConditions returns the conditions, for the status package.
func (d *AddonDelivery) GetConditions() *[]metav1.Condition { return &d.Status.Conditions }

// SetObservedGeneration says which generation the status speaks of.
func (d *AddonDelivery) SetObservedGeneration(g int64) { d.Status.ObservedGeneration = g }
