// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ClusterRegistrationSpec says which cluster this is and how to reach it.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.originRef) || has(self.originRef)",message="spec.originRef cannot be removed; delete the registration instead"
type ClusterRegistrationSpec struct {
	// originRef names the origin, in the same namespace. Discovery sets it.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.originRef is immutable; delete the registration and make a new one"
	OriginRef *OriginReference `json:"originRef,omitempty"`

	// kubeConfig says how to reach the cluster, if there is no origin, or instead of what the origin says.
	// +optional
	KubeConfig *KubeConfigSource `json:"kubeConfig,omitempty"`

	// variables of this cluster, read as vars.<name> in the expressions of sets. A value is any JSON. These override
	// all other variables. They may not decide the source, the chart, any *From, or the names and namespaces of a
	// release.
	// +optional
	Variables map[string]apiextensionsv1.JSON `json:"variables,omitempty"`

	// overrides change add-ons on this cluster only, after every overlay, and within the paths that their set opens.
	// An override that goes beyond these paths is ignored, and the condition OverridesRefused reports it.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Overrides []Override `json:"overrides,omitempty"`

	// serviceAccountName is the ServiceAccount that Flux impersonates on the cluster, for add-ons that do not name
	// one themselves. It is in the namespace on the workload cluster that has the same name as the set's namespace on
	// the management cluster.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$`
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// pause suspends the Flux objects of this cluster, for as long as it is set or until its end. What runs stays as
	// it is: nothing is made, changed, undone or removed. If a user suspended an object, it stays suspended
	// when the pause ends.
	// +optional
	Pause *Pause `json:"pause,omitempty"`

	// deletionPolicy says what unregistering does to the add-ons: Delete (the default) uninstalls them, Orphan leaves
	// them on the cluster. If any of registration, set and add-on says Orphan, Orphan applies.
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// drainBeforeDeletion keeps the origin, a TenantControlPlane or Cluster, until its add-ons have been uninstalled,
	// so that their load balancers and volumes do not stay behind. The annotation chandler.dev/drain: "true" on the
	// origin starts the drain. The policies in config/policies deny the deletion until the hub has annotated the
	// origin with chandler.dev/drained: "true".
	// +optional
	DrainBeforeDeletion *DrainBeforeDeletion `json:"drainBeforeDeletion,omitempty"`
}

// DrainBeforeDeletion says how a cluster is drained before it is deleted.
type DrainBeforeDeletion struct {
	// timeout is how long Flux may take to uninstall the add-ons; 30m by default. After that the cluster may be
	// deleted, although add-ons are left.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="must be a duration of more than nothing, such as 30m"
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}

// Override changes one add-on on one cluster. It takes plain values: expressions are for sets only.
type Override struct {
	// name of the add-on, whichever set delivers it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=53
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	AddonBody `json:",inline"`

	// patches are RFC 6902 operations on the add-on's body after the merge.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Patches []PatchOperation `json:"patches,omitempty"`

	// exclude leaves the add-on out, if its set says that the add-on is optional.
	// +optional
	Exclude bool `json:"exclude,omitempty"`

	// until is when the override ends by itself, such as 2026-12-01T00:00:00Z.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self > timestamp('1970-01-01T00:00:00Z')",message="must be a time such as 2026-12-01T00:00:00Z"
	Until *metav1.Time `json:"until,omitempty"`

	// reason is for people who find the override later.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`
}

// Pause suspends a cluster's add-ons.
type Pause struct {
	// until is when the pause ends by itself, such as 2026-12-01T00:00:00Z.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self > timestamp('1970-01-01T00:00:00Z')",message="must be a time such as 2026-12-01T00:00:00Z"
	Until *metav1.Time `json:"until,omitempty"`
	// reason is for people who find the pause later.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`
}

// OriginReference names the object that a cluster comes from, in the registration's namespace.
type OriginReference struct {
	// apiGroup of the origin: kamaji.clastix.io, cluster.x-k8s.io, multicluster.x-k8s.io, or empty for a Secret.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	APIGroup string `json:"apiGroup,omitempty"`
	// kind of the origin: TenantControlPlane, Cluster, Secret or ClusterProfile.
	// +required
	// +kubebuilder:validation:Enum=TenantControlPlane;Cluster;Secret;ClusterProfile
	Kind string `json:"kind"`
	// name of the origin.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// KubeConfigSource says how to reach a cluster: with a kubeconfig, or without any stored credential.
//
// +kubebuilder:validation:XValidation:rule="has(self.secretRef) != has(self.workloadIdentity)",message="exactly one of secretRef and workloadIdentity must be set"
type KubeConfigSource struct {
	// secretRef is the Secret, in the registration's namespace, that holds the kubeconfig.
	// +optional
	SecretRef *SecretKeyReference `json:"secretRef,omitempty"`

	// workloadIdentity has Flux log in with a short-lived token of a ServiceAccount of the management cluster. The
	// hub itself cannot log in with it, and so cannot probe the cluster. Instead, the cluster is Reachable while Flux
	// succeeds there.
	// +optional
	WorkloadIdentity *WorkloadIdentity `json:"workloadIdentity,omitempty"`
}

// WorkloadIdentity is what Flux needs to log in to a cluster without a stored credential. The hub writes it into a
// ConfigMap beside each set that delivers to the cluster, for Flux's spec.kubeConfig.configMapRef.
//
// +kubebuilder:validation:XValidation:rule="self.provider != 'generic' || has(self.address)",message="provider generic needs address: there is no cloud to ask for it"
// +kubebuilder:validation:XValidation:rule="self.provider != 'generic' || !has(self.cluster)",message="provider generic has no use for cluster"
// +kubebuilder:validation:XValidation:rule="self.provider != 'aws' || has(self.cluster)",message="provider aws needs cluster, the ARN: the region is taken from it"
// +kubebuilder:validation:XValidation:rule="has(self.cluster) || has(self.address) && (has(self.caBundle) || self.provider == 'generic')",message="without cluster, address and caBundle must both be there"
type WorkloadIdentity struct {
	// provider whose identity the ServiceAccount stands for. With generic, Flux shows the ServiceAccount's own token
	// to the cluster, which must trust the management cluster as an OIDC issuer.
	// +required
	// +kubebuilder:validation:Enum=aws;azure;gcp;generic
	Provider string `json:"provider"`
	// cluster is the full name of the cluster at the provider: the ARN of an EKS cluster, the resource ID of an AKS cluster,
	// projects/*/locations/*/clusters/* of a GKE cluster.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Cluster string `json:"cluster,omitempty"`
	// address is https://host:port of the API server. Without it, Flux asks the provider.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^https://[^/]+$`
	Address string `json:"address,omitempty"`
	// caBundle is the CA of the API server, in PEM. Without it, Flux asks the provider.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	CABundle string `json:"caBundle,omitempty"`
	// audiences of the ServiceAccount's token. The default for generic is the address; for the others it is what the
	// provider expects.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	// +kubebuilder:validation:items:Pattern=`^[^\s,]+$`
	Audiences []string `json:"audiences,omitempty"`
	// serviceAccountName names the ServiceAccount, in the namespace of each set that delivers to the cluster. Without
	// one, Flux would log in with its own identity.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	ServiceAccountName string `json:"serviceAccountName"`
}

// SecretKeyReference names a key of a Secret in the same namespace.
type SecretKeyReference struct {
	// name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// key that holds the kubeconfig. Without it, the hub tries the usual keys in this order: value, value.yaml,
	// kubeconfig, config, super-admin.svc, admin.svc, admin.conf, kubeconfig.yaml. If the Secret has none of them and
	// a single key, it takes that one.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`
}

// ClusterRegistrationStatus is what the hub knows about a cluster.
type ClusterRegistrationStatus struct {
	// observedGeneration is the generation that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions: Ready, KubeConfigValid and Reachable are always there. Reconciling, Stalled, CredentialExpiring,
	// Draining, Duplicate, Suspended, Maintenance, RemovalsHeld, OverridesRefused and Unregistering are
	// there only while true.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// provider is where the cluster comes from: Kamaji, ClusterAPI, Secret or WorkloadIdentity.
	// +optional
	Provider string `json:"provider,omitempty"`
	// endpoint is the API server's URL, as the hub and Flux reach it.
	// +optional
	Endpoint string `json:"endpoint,omitempty"`
	// kubernetesVersion is the version that the cluster's API server reports.
	// +optional
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	// clusterUID is the UID of the cluster's kube-system namespace. It identifies the cluster, whatever its name is.
	// +optional
	ClusterUID types.UID `json:"clusterUID,omitempty"`
	// clusterSince is when the registration came to be of this cluster. The first registration of a cluster has it.
	// +optional
	ClusterSince *metav1.Time `json:"clusterSince,omitempty"`
	// duplicateOf is the registration that has the cluster. Nothing is delivered through this one while that one exists.
	// +optional
	DuplicateOf *RegistrationReference `json:"duplicateOf,omitempty"`
	// nodes is how many nodes the cluster had at the last probe.
	// +optional
	Nodes *int32 `json:"nodes,omitempty"`
	// credential describes the kubeconfig in use.
	// +optional
	Credential *CredentialStatus `json:"credential,omitempty"`
	// addonCounts counts the add-ons of all sets on this cluster.
	// +optional
	AddonCounts *ObjectCounts `json:"addonCounts,omitempty"`
	// sets says which AddonSets in reach deliver to this cluster, and why others do not. At most 20; sets that
	// deliver come first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Sets []SetResult `json:"sets,omitempty"`
	// orphans are add-ons that the hub has orphaned and that, as far as it knows, are still on the cluster: the last
	// 20, and those whose deliveries wait to be named here. The hub takes one off the list when the add-on is delivered
	// again.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=200
	Orphans []Orphan `json:"orphans,omitempty"`
	// orphansOmitted is how many older orphans the list has left out.
	// +optional
	OrphansOmitted int32 `json:"orphansOmitted,omitempty"`
	// originUID is the UID of the origin when the hub last saw it. If it is set and the origin is missing, the origin
	// was deleted; see originSeenBy.
	// +optional
	OriginUID types.UID `json:"originUID,omitempty"`
	// originSeenBy is the UID of this registration when the hub saw the origin. A registration that was restored from a
	// backup with its status has another UID: its origin may still be restored. It is empty while the Secret of the
	// origin is gone and spec.kubeConfig leads to the cluster: nothing asks for the registration then.
	// +optional
	OriginSeenBy types.UID `json:"originSeenBy,omitempty"`
}

// CredentialStatus describes the kubeconfig in use. It holds nothing secret.
type CredentialStatus struct {
	// workloadIdentity is the provider of the identity that Flux logs in with; empty if Flux logs in with a
	// kubeconfig.
	// +optional
	WorkloadIdentity string `json:"workloadIdentity,omitempty"`
	// secretName is the Secret, in the registration's namespace, that the kubeconfig came from.
	// +optional
	SecretName string `json:"secretName,omitempty"`
	// fromSpec is true if spec.kubeConfig named that Secret, and not the origin.
	// +optional
	FromSpec bool `json:"fromSpec,omitempty"`
	// key is the Secret's key that the kubeconfig came from.
	// +optional
	Key string `json:"key,omitempty"`
	// context is the kubeconfig's context that the origin names; absent for its current one.
	// +optional
	Context string `json:"context,omitempty"`
	// fingerprint is a digest of the kubeconfig, or of the ConfigMap for workload identity, that the Flux objects
	// use.
	// +optional
	Fingerprint string `json:"fingerprint,omitempty"`
	// targetFingerprint is a digest of the address and CA alone or, with workload identity, of the cluster's name at
	// its provider. If it changes, this may be another cluster.
	// +optional
	TargetFingerprint string `json:"targetFingerprint,omitempty"`
	// authorityFingerprint is a digest of the CA by which the cluster proves who it is, or of its address where the kubeconfig has no CA. Two
	// registrations are known to be of one cluster if it is the same for both, and clusterUID too.
	// +optional
	AuthorityFingerprint string `json:"authorityFingerprint,omitempty"`
	// expirationTime is when the client certificate or token expires, if it has an expiry.
	// +optional
	ExpirationTime *metav1.Time `json:"expirationTime,omitempty"`
	// expiresIn is the time left until then: in days, such as "29d", in hours on the last day; ">90d" if it is
	// longer, and "expired" when it is over.
	// +optional
	ExpiresIn string `json:"expiresIn,omitempty"`
	// renewed is true if the hub renews the token itself: its Secret has annotation chandler.dev/renew-token.
	// +optional
	Renewed bool `json:"renewed,omitempty"`
}

// What one AddonSet does for a cluster. NotSelected, Stalled and Duplicate are followed by a colon and the reason.
const (
	SetDelivered   = "Delivered"
	SetLeaving     = "Leaving"
	SetSelected    = "Selected"
	SetWaits       = "WaitingForWave" // the set selects the cluster, and delivers nothing there before its rollout comes to it
	SetNotSelected = "NotSelected"
	SetStalled     = "Stalled"
	SetDuplicate   = "Duplicate"
)

// SetResult says whether one AddonSet delivers to a cluster, and if not, why.
type SetResult struct {
	// name of the set, with its namespace: namespace/name.
	// +required
	Name string `json:"name"`
	// result is Delivered, Leaving, Selected while nothing is delivered yet, or NotSelected, Stalled or Duplicate and the reason.
	// +required
	Result string `json:"result"`
}

// ClusterRegistration is one workload cluster that the hub serves.
//
// Discovery makes one for each TenantControlPlane, Cluster API Cluster, Secret or ClusterProfile labelled chandler.dev/register:
// "true", with the same name and in the same namespace. People may write one by hand, with spec.kubeConfig.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=clreg,categories=chandler
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reachable",type=string,JSONPath=`.status.conditions[?(@.type=="Reachable")].status`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.kubernetesVersion`
// +kubebuilder:printcolumn:name="Addons",type=string,JSONPath=`.status.addonCounts.summary`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Credential",type=string,JSONPath=`.status.credential.expiresIn`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Origin",type=string,priority=1,JSONPath=`.spec.originRef.kind`
// +kubebuilder:printcolumn:name="Endpoint",type=string,priority=1,JSONPath=`.status.endpoint`
// +kubebuilder:printcolumn:name="Paused-Until",type=string,priority=1,JSONPath=`.spec.pause.until`
// +kubebuilder:printcolumn:name="Nodes",type=integer,priority=1,JSONPath=`.status.nodes`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type ClusterRegistration struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec ClusterRegistrationSpec `json:"spec"`
	// status defaults to observedGeneration -1, as in Flux's own kinds. Otherwise kstatus would report an object that
	// the hub has not seen yet as Current.
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status ClusterRegistrationStatus `json:"status,omitempty"`
}

// ClusterRegistrationList is a list of ClusterRegistrations.
//
// +kubebuilder:object:root=true
type ClusterRegistrationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterRegistration `json:"items"`
}

// GetConditions returns the conditions, for the status package.
func (r *ClusterRegistration) GetConditions() *[]metav1.Condition { return &r.Status.Conditions }

// UsesWorkloadIdentity returns whether Flux logs in to the cluster by workload identity. The hub cannot probe such a
// cluster.
func (s *ClusterRegistrationStatus) UsesWorkloadIdentity() bool {
	return s.Credential != nil && s.Credential.WorkloadIdentity != ""
}

// ClusterID returns what tells one cluster from another: the UID of kube-system or, with workload identity, the
// target fingerprint. It is empty while neither is known.
func (s *ClusterRegistrationStatus) ClusterID() string {
	if s.UsesWorkloadIdentity() {
		return s.Credential.TargetFingerprint
	}
	return string(s.ClusterUID)
}

// SetObservedGeneration sets the generation that the status describes.
func (r *ClusterRegistration) SetObservedGeneration(g int64) { r.Status.ObservedGeneration = g }

// SawOrigin returns whether the hub has seen the origin of this registration, in this management cluster. It may be gone since.
func (r *ClusterRegistration) SawOrigin() bool {
	return r.Status.OriginUID != "" && (r.Status.OriginSeenBy == r.UID || r.Status.OriginSeenBy == "")
}
