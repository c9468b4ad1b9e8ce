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
	// originRef is the object in the same namespace that this cluster comes from. Discovery sets it.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.originRef is immutable; delete the registration and make a new one"
	OriginRef *OriginReference `json:"originRef,omitempty"`

	// kubeConfig says how to get at the cluster, without an origin, or instead of what the origin says.
	// +optional
	KubeConfig *KubeConfigSource `json:"kubeConfig,omitempty"`

	// variables of this cluster, any JSON, read as vars.<name> in the expressions of sets. They win over all others. What an
	// expression may decide by them is bounded: no source, no chart, nothing *From, and not where a release lies.
	// +optional
	Variables map[string]apiextensionsv1.JSON `json:"variables,omitempty"`

	// overrides change add-ons on this cluster only, after every overlay, within what their set leaves open. One that goes
	// beyond that is ignored, and condition OverridesRefused says so.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Overrides []Override `json:"overrides,omitempty"`

	// serviceAccountName is whom Flux impersonates on the cluster, for add-ons that do not name one themselves: the
	// ServiceAccount of that name in the namespace that is called, on the cluster, as the set's is on the hub.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// pause suspends the Flux objects of this cluster, for as long as it is there or until its end. What runs stays as it is:
	// nothing is made, changed, undone or removed. A suspend that somebody asked for by hand stays when the pause ends.
	// +optional
	Pause *Pause `json:"pause,omitempty"`

	// deletionPolicy says what unregistering does to the add-ons: Delete (the default) uninstalls them, Orphan leaves
	// them on the cluster. Orphan anywhere (here, at the set or at the add-on) wins.
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// drainBeforeDeletion keeps the TenantControlPlane or Cluster that this cluster comes from until its add-ons have been
	// uninstalled, so that load balancers and volumes that they asked for do not stay behind. Annotation chandler.dev/drain: "true"
	// there has them uninstalled; config/policies denies the deletion until the hub has annotated it chandler.dev/drained: "true".
	// +optional
	DrainBeforeDeletion *DrainBeforeDeletion `json:"drainBeforeDeletion,omitempty"`
}

// DrainBeforeDeletion says how a cluster is drained before it is deleted.
type DrainBeforeDeletion struct {
	// timeout is how long the add-ons have to be uninstalled, 30m if it is not set. What is left after that does not hinder the
	// deletion any more.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="must be a duration of more than nothing, such as 30m"
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}

// Override changes one add-on on one cluster. Expressions are for sets: here a value is written as it is.
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

	// exclude leaves the add-on out, if its set says that it is optional.
	// +optional
	Exclude bool `json:"exclude,omitempty"`

	// until is when the override ends by itself, such as 2026-12-01T00:00:00Z.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self > timestamp('1970-01-01T00:00:00Z')",message="must be a time such as 2026-12-01T00:00:00Z"
	Until *metav1.Time `json:"until,omitempty"`

	// reason is for whoever finds the override later.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`
}

// Pause holds a cluster as it is.
type Pause struct {
	// until is when it ends by itself, such as 2026-12-01T00:00:00Z.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self > timestamp('1970-01-01T00:00:00Z')",message="must be a time such as 2026-12-01T00:00:00Z"
	Until *metav1.Time `json:"until,omitempty"`
	// reason is for whoever finds it later.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`
}

// OriginReference names the object that a cluster comes from, in the registration's namespace.
type OriginReference struct {
	// apiGroup of the origin: kamaji.clastix.io, cluster.x-k8s.io, or empty for a Secret.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	APIGroup string `json:"apiGroup,omitempty"`
	// kind of the origin: TenantControlPlane, Cluster or Secret.
	// +required
	// +kubebuilder:validation:Enum=TenantControlPlane;Cluster;Secret
	Kind string `json:"kind"`
	// name of the origin.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// KubeConfigSource says how to get at a cluster: with a kubeconfig, or without any stored credential.
//
// +kubebuilder:validation:XValidation:rule="has(self.secretRef) != has(self.workloadIdentity)",message="exactly one of secretRef and workloadIdentity must be set"
type KubeConfigSource struct {
	// secretRef is the Secret, in the registration's namespace, that holds the kubeconfig.
	// +optional
	SecretRef *SecretKeyReference `json:"secretRef,omitempty"`

	// workloadIdentity has Flux log in with a short-lived token of a ServiceAccount of the management cluster. The hub itself
	// cannot log in with it, and so does not probe the cluster: what Flux achieves there stands in for that.
	// +optional
	WorkloadIdentity *WorkloadIdentity `json:"workloadIdentity,omitempty"`
}

// WorkloadIdentity is what Flux needs to log in to a cluster without a stored credential. The hub writes it into the ConfigMap
// that Flux's spec.kubeConfig.configMapRef names, beside each set that delivers to the cluster.
//
// +kubebuilder:validation:XValidation:rule="self.provider != 'generic' || has(self.address)",message="provider generic needs address: there is no cloud to ask for it"
// +kubebuilder:validation:XValidation:rule="self.provider != 'generic' || !has(self.cluster)",message="provider generic has no use for cluster"
// +kubebuilder:validation:XValidation:rule="self.provider != 'aws' || has(self.cluster)",message="provider aws needs cluster, the ARN: the region is taken from it"
// +kubebuilder:validation:XValidation:rule="has(self.cluster) || has(self.address) && (has(self.caBundle) || self.provider == 'generic')",message="without cluster, address and caBundle must both be there"
type WorkloadIdentity struct {
	// provider is whose identity the ServiceAccount stands for; with generic its own token is shown to the cluster, which must
	// trust the management cluster as an OIDC issuer.
	// +required
	// +kubebuilder:validation:Enum=aws;azure;gcp;generic
	Provider string `json:"provider"`
	// cluster is the full name of the cluster at the provider: the ARN of an EKS cluster, the resource ID of an AKS cluster,
	// projects/*/locations/*/clusters/* of a GKE cluster.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Cluster string `json:"cluster,omitempty"`
	// address is https://host:port of the API server. Without it Flux asks the provider.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^https://[^/]+$`
	Address string `json:"address,omitempty"`
	// caBundle is the CA of the API server, in PEM. Without it Flux asks the provider.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	CABundle string `json:"caBundle,omitempty"`
	// audiences of the ServiceAccount's token; for generic the address by default, else what the provider wants.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	// +kubebuilder:validation:items:Pattern=`^[^\s,]+$`
	Audiences []string `json:"audiences,omitempty"`
	// serviceAccountName is the ServiceAccount, in the namespace of each set that delivers to the cluster. Without one, Flux
	// would log in as itself.
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
	// key that holds the kubeconfig. Without it the usual keys are tried: value, value.yaml, kubeconfig, config,
	// super-admin.svc, admin.svc, admin.conf, kubeconfig.yaml, then the only key.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`
}

// ClusterRegistrationStatus is what the hub found out about a cluster.
type ClusterRegistrationStatus struct {
	// observedGeneration is the generation that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions: Ready, KubeConfigValid and Reachable always; Reconciling, Stalled, CredentialExpiring, Draining, Duplicate,
	// Suspended, Maintenance, OverridesRefused, OriginIgnored and Unregistering while true.
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
	// kubernetesVersion is what the cluster's API server says its version is.
	// +optional
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	// clusterUID is the UID of the cluster's kube-system namespace: which cluster this is, whatever it is called.
	// +optional
	ClusterUID types.UID `json:"clusterUID,omitempty"`
	// nodes is how many nodes the cluster had at the last probe.
	// +optional
	Nodes *int32 `json:"nodes,omitempty"`
	// credential is the kubeconfig in use.
	// +optional
	Credential *CredentialStatus `json:"credential,omitempty"`
	// addonCounts counts the add-ons of all sets on this cluster.
	// +optional
	AddonCounts *ObjectCounts `json:"addonCounts,omitempty"`
	// sets says which AddonSets in reach deliver to this cluster, and why others do not. At most 20, sets that
	// deliver first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Sets []SetResult `json:"sets,omitempty"`
	// orphans are add-ons that the hub has let go and that are still on the cluster, as far as it knows: the last 20. One that is
	// delivered again is taken off the list.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Orphans []Orphan `json:"orphans,omitempty"`
	// originUID is the UID of the origin when the hub last saw it. An origin that was seen and is not there has been deleted.
	// +optional
	OriginUID types.UID `json:"originUID,omitempty"`
}

// CredentialStatus tells which kubeconfig is in use, and holds nothing secret.
type CredentialStatus struct {
	// workloadIdentity is the provider of the identity that Flux logs in with; empty if it does so with a kubeconfig.
	// +optional
	WorkloadIdentity string `json:"workloadIdentity,omitempty"`
	// secretName is the Secret, in the registration's namespace, that the kubeconfig came from.
	// +optional
	SecretName string `json:"secretName,omitempty"`
	// key is the Secret's key that the kubeconfig came from.
	// +optional
	Key string `json:"key,omitempty"`
	// fingerprint is a digest of the kubeconfig, or the ConfigMap for a workload identity, that the Flux objects use.
	// +optional
	Fingerprint string `json:"fingerprint,omitempty"`
	// targetFingerprint is a digest of the address and CA alone, or of what names the cluster to its provider: a change means
	// another cluster, perhaps.
	// +optional
	TargetFingerprint string `json:"targetFingerprint,omitempty"`
	// expirationTime is when the client certificate or token expires, if it says so.
	// +optional
	ExpirationTime *metav1.Time `json:"expirationTime,omitempty"`
	// expiresIn is how long that is from now, in days, such as "29d"; ">90d" while it is far off.
	// +optional
	ExpiresIn string `json:"expiresIn,omitempty"`
}

// SetResult says what one AddonSet does for a cluster, and why.
type SetResult struct {
	// name of the set, with its namespace: namespace/name.
	// +required
	Name string `json:"name"`
	// result is Delivered, or NotSelected and the reason.
	// +required
	Result string `json:"result"`
}

// ClusterRegistration is one workload cluster that the hub serves.
//
// Discovery makes one, of the same name and in the same namespace, for each TenantControlPlane, Cluster API Cluster
// or Secret labelled chandler.dev/register: "true". People may write one by hand, with spec.kubeConfig.
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
	// status defaults to a generation that never was, as Flux's own kinds do: else kstatus takes an object that the hub has
	// not seen yet for one that is finished.
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

// UsesWorkloadIdentity returns whether Flux gets at the cluster by workload identity, so that nobody can probe it.
func (s *ClusterRegistrationStatus) UsesWorkloadIdentity() bool {
	return s.Credential != nil && s.Credential.WorkloadIdentity != ""
}

// ClusterID is what tells one cluster from another: the UID of kube-system, or, where nobody can ask for it, the fingerprint of what
// names the cluster. Empty while neither is known.
func (s *ClusterRegistrationStatus) ClusterID() string {
	if s.UsesWorkloadIdentity() {
		return s.Credential.TargetFingerprint
	}
	return string(s.ClusterUID)
}

// SetObservedGeneration says which generation the status speaks of.
func (r *ClusterRegistration) SetObservedGeneration(g int64) { r.Status.ObservedGeneration = g }
