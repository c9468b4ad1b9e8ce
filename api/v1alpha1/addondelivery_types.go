// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// AddonDeliverySpec says which revision of which set one cluster should have.
type AddonDeliverySpec struct {
	// registrationRef names the cluster's registration.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.registrationRef is immutable"
	RegistrationRef RegistrationReference `json:"registrationRef"`
	// addonSetRef names the set, in the same namespace.
	// +required
	// +kubebuilder:validation:XValidation:rule="self.name == oldSelf.name",message="spec.addonSetRef.name is immutable"
	AddonSetRef DeliveredSetReference `json:"addonSetRef"`
	// revisionName names the ControllerRevision, in the same namespace, that the cluster should have.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	RevisionName string `json:"revisionName"`
	// start is when the cluster got that revision, and how it was before.
	// +optional
	Start *DeliveryStart `json:"start,omitempty"`
	// removals are digests of the removals and reinstallations that the set's removal guard has granted. Each is a
	// status.addons[].removal.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=400
	Removals []string `json:"removals,omitempty"`
	// withdrawAfter is there while the set does not select the cluster. The set withdraws the delivery after this time, as
	// far as its removal guard allows. If the set selects the cluster again before, nothing has changed.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self > timestamp('1970-01-01T00:00:00Z')",message="must be a time such as 2026-12-01T00:00:00Z"
	WithdrawAfter *metav1.Time `json:"withdrawAfter,omitempty"`
	// withdrawal is the UID of this delivery. The hub sets it when the set withdraws the delivery, right before it
	// deletes the delivery. Add-ons leave the cluster only then. If a delivery is deleted without it, the hub makes
	// the delivery again, and Flux notices nothing.
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

// SetKey returns the namespaced name of the delivery's set; its text is namespace/name.
func (d *AddonDelivery) SetKey() types.NamespacedName {
	return types.NamespacedName{Namespace: d.Namespace, Name: d.Spec.AddonSetRef.Name}
}

// Withdrawn returns whether a delivery is being deleted because its set has withdrawn it.
func (d *AddonDelivery) Withdrawn() bool {
	return d.DeletionTimestamp != nil && d.Spec.Withdrawal != "" && d.Spec.Withdrawal == d.UID
}

// Orphaned returns whether a withdrawn delivery leaves its add-ons on the cluster. The set decides this when it
// withdraws the delivery.
func (d *AddonDelivery) Orphaned() bool {
	return d.Annotations[DeletionPolicyAnnotation] == string(DeletionPolicyOrphan)
}

// DeliveredSetReference names the AddonSet of a delivery, in the same namespace.
type DeliveredSetReference struct {
	// name of the set.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// uid of the set, written by the hub. A set of the same name with another UID is another set.
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

// AddonState is the state of one add-on on one cluster.
type AddonState string

// The states of an add-on.
const (
	// AddonReady: Flux reports Ready for the generation that the hub applied.
	AddonReady AddonState = "Ready"
	// AddonProgressing: the hub or Flux is working on it.
	AddonProgressing AddonState = "Progressing"
	// AddonWaitingForDependency: an add-on that this one depends on is not Ready yet.
	AddonWaitingForDependency AddonState = "WaitingForDependency"
	// AddonWaitingForCluster: the cluster has not answered yet, so the hub has made nothing; with reason FactUnknown, an expression rests
	// on what the cluster has not told yet, and what runs of the add-on stays as it is.
	AddonWaitingForCluster AddonState = "WaitingForCluster"
	// AddonWaitingForNodes: Flux has begun to apply it, and the cluster has no node yet, so nothing can run there. This is not a failure.
	AddonWaitingForNodes AddonState = "WaitingForNodes"
	// AddonPaused: the cluster is paused or sleeps; the hub keeps the Flux object suspended.
	AddonPaused AddonState = "Paused"
	// AddonUnreachable: the cluster does not answer; the hub keeps the Flux object suspended until it does.
	AddonUnreachable AddonState = "Unreachable"
	// AddonExcluded: the cluster's overrides, an overlay or the add-on's when exclude it.
	AddonExcluded AddonState = "Excluded"
	// AddonFailed: Flux or the management cluster's API server rejects it; the message says why. It stays Failed
	// while Flux tries again, until Flux succeeds or the hub applies something else.
	AddonFailed AddonState = "Failed"
	// AddonSuspended: a user has suspended the Flux object; it stays as it is until a user resumes it.
	AddonSuspended AddonState = "Suspended"
	// AddonLostTo: another set delivers the add-on of this name to this cluster; the message names the set.
	AddonLostTo AddonState = "LostTo"
	// AddonNotOwned: an object of this name exists that the hub did not make; the hub leaves it alone.
	AddonNotOwned AddonState = "NotOwned"
	// AddonHeld: it stays as it is. The set has dropped it, or an edit would have Flux reinstall it, and the set's
	// removal guard has not granted that.
	AddonHeld AddonState = "Held"
	// AddonRemoving: Flux is uninstalling it.
	AddonRemoving AddonState = "Removing"
	// AddonOrphaned: the hub has orphaned it, and it may still run on the cluster.
	AddonOrphaned AddonState = "Orphaned"
)

// AddonStatus is the status of one add-on on one cluster.
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
	// state of the add-on.
	// +required
	State AddonState `json:"state"`
	// before is the state that it had before it was paused or suspended. It is set only if that was Ready, and no
	// change waits for the add-on to be resumed.
	// +optional
	Before AddonState `json:"before,omitempty"`
	// since is when it entered this state.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
	// version is the one that Flux last applied: a chart version, or a source revision.
	// +optional
	Version string `json:"version,omitempty"`
	// appliedGeneration is the generation of the Flux object after the hub's last write. If the object has a higher
	// one, another writer has edited the spec.
	// +optional
	AppliedGeneration int64 `json:"appliedGeneration,omitempty"`
	// reason is a word for why it is not Ready, if the state does not say it. If Flux failed, it is Flux's own
	// reason.
	// +optional
	Reason string `json:"reason,omitempty"`
	// message says why it is not Ready.
	// +optional
	Message string `json:"message,omitempty"`
	// lastAttempt says how Flux's last attempt failed; empty if it did not. Unreached: Flux did not reach the cluster, the cluster did not
	// accept its credential, or Flux could not read which Helm release is there. That says nothing of the revision. Failed: any other
	// failure.
	// +optional
	// +kubebuilder:validation:Enum=Failed;Unreached
	LastAttempt AttemptResult `json:"lastAttempt,omitempty"`
	// takenOverBy is the Flux object of another namespace that takes over the add-on's workload. The add-on is an orphan
	// until Flux has recorded the workload for that object.
	// +optional
	TakenOverBy *FluxObjectReference `json:"takenOverBy,omitempty"`
	// removal is a digest of exactly what is to be removed or reinstalled. It is set from when the removal guard is
	// asked until the removal is done.
	// +optional
	Removal string `json:"removal,omitempty"`
	// release is the Helm release, if it differs from the one that follows from the add-on's name: the add-on took it
	// over from another object. It stays for as long as the add-on is on this cluster.
	// +optional
	Release *HelmReleaseIdentity `json:"release,omitempty"`
}

// AttemptResult is how an attempt of Flux failed.
type AttemptResult string

const (
	// AttemptFailed is a failure of what Flux delivers.
	AttemptFailed AttemptResult = "Failed"
	// AttemptUnreached is a failure that says nothing of what Flux delivers.
	AttemptUnreached AttemptResult = "Unreached"
)

// HelmReleaseIdentity identifies the Helm release that a HelmRelease manages. If any of these fields changes, Flux
// uninstalls the old release and installs another.
type HelmReleaseIdentity struct {
	// name of the release.
	// +required
	Name string `json:"name"`
	// namespace that the release is installed into.
	// +required
	Namespace string `json:"namespace"`
	// storageNamespace is the namespace in which Helm keeps its records.
	// +required
	StorageNamespace string `json:"storageNamespace"`
}

// AddonDeliveryStatus is the state of a delivery.
type AddonDeliveryStatus struct {
	// observedGeneration is the generation that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions: Ready is always there; Reconciling, Stalled, RemovalsHeld and OverridesRefused are there only while
	// true.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// addons lists the add-ons of the revision, and those that are still being removed. The list is atomic: only the
	// hub writes it, and field ownership for each field of each add-on would be most of the object.
	// +optional
	// +listType=atomic
	Addons []AddonStatus `json:"addons,omitempty"`
	// addonCounts counts the add-ons.
	// +optional
	AddonCounts *ObjectCounts `json:"addonCounts,omitempty"`
	// observedRevision is the last revision whose objects the hub has written in full.
	// +optional
	ObservedRevision string `json:"observedRevision,omitempty"`
	// readyRevision is the last revision on which all add-ons were Ready at the same time.
	// +optional
	ReadyRevision string `json:"readyRevision,omitempty"`
	// readyTime is when the hub first saw that, by its own clock. A soak counts from here.
	// +optional
	ReadyTime *metav1.Time `json:"readyTime,omitempty"`
}

// AddonDelivery is what one AddonSet delivers to one cluster. The hub writes it; people read it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=addondeliveries,shortName=adel,categories=chandler
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.spec.registrationRef.name`
// +kubebuilder:printcolumn:name="Set",type=string,JSONPath=`.spec.addonSetRef.name`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Addons",type=string,JSONPath=`.status.addonCounts.summary`
// +kubebuilder:printcolumn:name="Revision",type=string,JSONPath=`.status.observedRevision`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type AddonDelivery struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec AddonDeliverySpec `json:"spec"`
	// status defaults to observedGeneration -1, as in Flux's own kinds. Otherwise kstatus would report an object that
	// the hub has not seen yet as Current.
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

// SetObservedGeneration sets the generation that the status describes.
func (d *AddonDelivery) SetObservedGeneration(g int64) { d.Status.ObservedGeneration = g }
