// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"cmp"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AddonSetSpec says which add-ons go to which clusters.
//
// +kubebuilder:validation:XValidation:rule="(has(self.selectAll) && self.selectAll) != (has(self.clusterSelector) && ((has(self.clusterSelector.matchLabels) && size(self.clusterSelector.matchLabels) > 0) || (has(self.clusterSelector.matchExpressions) && size(self.clusterSelector.matchExpressions) > 0)))",message="write a spec.clusterSelector that is not empty, or spec.selectAll: true for every cluster, and not both"
type AddonSetSpec struct {
	// clusterSelector selects ClusterRegistrations by their labels. An empty selector is rejected.
	// +optional
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`

	// selectAll selects every cluster in reach. Use it instead of clusterSelector.
	// +optional
	SelectAll bool `json:"selectAll,omitempty"`

	// priority decides between sets of the same class (platform sets, all others) that deliver the same add-on to the
	// same cluster: the higher one wins. Platform sets always win over others.
	// +optional
	// +kubebuilder:validation:Minimum=-1000
	// +kubebuilder:validation:Maximum=1000
	Priority int32 `json:"priority,omitempty"`

	// dependsOn lists sets of the same namespace. On a cluster that has both sets, the hub makes or changes the
	// add-ons of this set only when all add-ons of the other have been Ready on its present revision. A set that is
	// not on the cluster is ignored. If there is no such set at all, this one is Stalled until there is. Removal runs
	// in reverse order.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	DependsOn []AddonSetReference `json:"dependsOn,omitempty"`

	// sources are Flux sources that the hub keeps beside the set while an add-on uses them. An add-on refers to one
	// by the name given here: sourceRef: {name: …}. A spec may hold expressions. Clusters whose specs come out the
	// same share one source.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=50
	Sources []Source `json:"sources,omitempty"`

	// variables are read as vars.<name> in expressions. A value is any JSON, and may hold expressions. Variables of
	// variablesFrom, of matching overlays and of the cluster override these.
	// +optional
	Variables map[string]apiextensionsv1.JSON `json:"variables,omitempty"`

	// variablesFrom lists ConfigMaps in the set's namespace. Each key is a variable, and its value is text. Later
	// ConfigMaps override earlier ones.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	VariablesFrom []VariablesSource `json:"variablesFrom,omitempty"`

	// addons are the add-ons that every selected cluster gets.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	Addons []Addon `json:"addons"`

	// overlays change the add-ons for some of the clusters. All overlays that match apply, in this order.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=100
	Overlays []Overlay `json:"overlays,omitempty"`

	// metadata are labels and annotations of your own on the HelmReleases and Kustomizations of the set and, where a
	// value holds no expression, on its sources. They are not part of a revision: a change of them reaches all clusters at once.
	// +optional
	Metadata *OwnMetadata `json:"metadata,omitempty"`

	// deletionPolicy says what happens to the add-ons when the set, the add-on or the cluster goes: Delete (the
	// default) uninstalls them, Orphan leaves them on the cluster. If any of set, add-on and registration says
	// Orphan, Orphan applies.
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// removalGuard limits how much one edit takes away. It is not part of a revision.
	// +optional
	RemovalGuard *RemovalGuard `json:"removalGuard,omitempty"`

	// rollout says how each revision reaches the clusters, the first one too. It is not part of a revision. Without it, a revision goes to
	// one cluster, then a quarter, then the rest.
	// +optional
	Rollout *Rollout `json:"rollout,omitempty"`

	// pause holds back new revisions: no cluster that has the set gets another one. Nothing is suspended. It is not part
	// of a revision.
	// +optional
	Pause *RolloutPause `json:"pause,omitempty"`
}

// Source is a Flux source that the hub keeps beside the set.
type Source struct {
	// name by which the add-ons of this set refer to it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=53
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// kind of the source.
	// +required
	// +kubebuilder:validation:Enum=GitRepository;OCIRepository;HelmRepository;Bucket
	Kind string `json:"kind"`

	// spec of the source (source.toolkit.fluxcd.io/v1), without suspend. The hub validates it strictly against the
	// Flux type.
	// +required
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Spec *apiextensionsv1.JSON `json:"spec"`
}

// VariablesSource is a ConfigMap of variables.
type VariablesSource struct {
	// configMap is its name. It may hold expressions.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	ConfigMap string `json:"configMap"`

	// from is Cluster for a ConfigMap in the namespace of the cluster's registration, which its owner shares with the set's namespace by
	// annotation chandler.dev/share-with. Its variables count as the cluster's own. Without it, the ConfigMap is in the set's namespace.
	// +optional
	// +kubebuilder:validation:Enum=Cluster
	From string `json:"from,omitempty"`

	// optional makes a missing ConfigMap count as empty. Without it, a missing ConfigMap keeps the delivery as it is.
	// +optional
	Optional bool `json:"optional,omitempty"`
}

// AddonBody is what an add-on delivers. An add-on has exactly one of these fields, and an overlay of it has the same
// one.
type AddonBody struct {
	// helmRelease is the spec of a Flux HelmRelease (helm.toolkit.fluxcd.io/v2), without kubeConfig, dependsOn and
	// suspend. The hub validates it strictly against the Flux type.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	HelmRelease *apiextensionsv1.JSON `json:"helmRelease,omitempty"`

	// kustomization is the spec of a Flux Kustomization (kustomize.toolkit.fluxcd.io/v1), without kubeConfig,
	// dependsOn and suspend. The hub validates it strictly against the Flux type.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Kustomization *apiextensionsv1.JSON `json:"kustomization,omitempty"`

	// manifests are plain objects: objects, manifestsFrom [{kind: ConfigMap or Secret, name, key, optional, copyAs}],
	// targetNamespace, strategy (Reconcile or ApplyOnce), interval and timeout.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Manifests *apiextensionsv1.JSON `json:"manifests,omitempty"`
}

// Addon is one add-on of a set: a Helm release, a Kustomization or plain manifests.
//
// +kubebuilder:validation:XValidation:rule="[has(self.helmRelease), has(self.kustomization), has(self.manifests)].filter(x, x).size() == 1",message="write exactly one of helmRelease, kustomization and manifests"
type Addon struct {
	// name identifies the add-on on a cluster. The release name and the target namespace default to it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=53
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// dependsOn lists add-ons that must be Ready before the hub makes or changes this one. They belong to this set,
	// or with addonSet to another one. An add-on that is not on the cluster is ignored. Removal runs in reverse
	// order.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	DependsOn []AddonReference `json:"dependsOn,omitempty"`

	AddonBody `json:",inline"`

	// when is an expression, such as "<< cluster.provider == 'Kamaji' >>". The add-on is delivered only where it is
	// true.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	When string `json:"when,omitempty"`

	// overridable lists the paths of the body that a cluster's overrides may change, such as values.resources. The
	// default is values and postBuild.substitute. These can never be opened: sources, charts, any *From, decryption,
	// serviceAccountName, and the names and namespaces of a release.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Overridable *[]string `json:"overridable,omitempty"`

	// optional lets a cluster's overrides exclude the add-on.
	// +optional
	Optional bool `json:"optional,omitempty"`

	// movedFrom lists earlier names of this add-on, in this set or another. On a cluster that still has the add-on
	// under the earlier name, this one takes over the workload, and Flux does not reinstall it.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	MovedFrom []MovedAddon `json:"movedFrom,omitempty"`

	// adopt names a HelmRelease or Kustomization that a user wrote by hand for the same cluster. The add-on takes
	// over its workload.
	// +optional
	Adopt *Adoption `json:"adopt,omitempty"`

	// metadata are labels and annotations of your own on the HelmRelease or Kustomization of this add-on. They win over
	// those of the set, and are not part of a revision either.
	// +optional
	Metadata *OwnMetadata `json:"metadata,omitempty"`

	// deletionPolicy of this add-on: Delete (the default) or Orphan.
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// AddonReference names another add-on.
type AddonReference struct {
	// name of the add-on.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=53
	Name string `json:"name"`
	// addonSet is the set that delivers it, in the same namespace; this set by default.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	AddonSet string `json:"addonSet,omitempty"`
}

// MovedAddon is an earlier name of an add-on.
type MovedAddon struct {
	// namespace of the set that delivered it; the set's own by default. Only sets in platform namespaces may name
	// another namespace.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
	// addonSet that delivered it; this set by default.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	AddonSet string `json:"addonSet,omitempty"`
	// name that it had; by default the same as now.
	// +optional
	// +kubebuilder:validation:MaxLength=53
	Name string `json:"name,omitempty"`
}

// Of returns the name with its defaults filled in, as an add-on of a set gives it.
func (m MovedAddon) Of(namespace, set, addon string) MovedAddon {
	return MovedAddon{Namespace: cmp.Or(m.Namespace, namespace), AddonSet: cmp.Or(m.AddonSet, set), Name: cmp.Or(m.Name, addon)}
}

// Adoption names a Flux object of the add-on's kind that a user wrote by hand.
type Adoption struct {
	// name of the object. It may hold expressions, such as "<< cluster.name >>-cert-manager".
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Name string `json:"name"`
	// namespace of the object; the set's own by default. It may hold expressions. Only sets in platform namespaces
	// may name another namespace.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Namespace string `json:"namespace,omitempty"`
}

// AddonSetStatus is the state of a set.
type AddonSetStatus struct {
	// observedGeneration is the generation that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions: Ready, RolloutComplete and Healthy are always there, and RolloutEnforced if the set has waves;
	// RemovalsHeld, Reconciling and Stalled are there only while true. Stalled means that the set does
	// not compile.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// revision is the newest revision that compiled: the name of a ControllerRevision beside the set.
	// +optional
	Revision string `json:"revision,omitempty"`
	// clusters counts the clusters of this set.
	// +optional
	Clusters *ClusterCounts `json:"clusters,omitempty"`
	// rollout of the newest revision.
	// +optional
	Rollout *RolloutStatus `json:"rollout,omitempty"`
	// sources are what the set follows upstream, if its revisions pin that.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Sources []FollowedSource `json:"sources,omitempty"`
	// heldRemovals are the removals that the removal guard holds; absent if it holds none.
	// +optional
	HeldRemovals *HeldRemovals `json:"heldRemovals,omitempty"`
	// removals are the removals that the removal guard granted in the last hour, and those that are not finished.
	// +optional
	Removals *Removals `json:"removals,omitempty"`
	// orphans are add-ons of this set that the hub has orphaned and that, as far as it knows, are still on their
	// clusters: the last 20, and those whose deliveries wait to be named here. The hub takes one off the list when the
	// add-on is delivered there again.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=200
	Orphans []Orphan `json:"orphans,omitempty"`
	// orphansOmitted is how many older orphans the list has left out.
	// +optional
	OrphansOmitted int32 `json:"orphansOmitted,omitempty"`
}

// ClusterCounts counts the clusters of a set.
type ClusterCounts struct {
	// matched is how many clusters the set selects. A cluster that the set delivers to counts also while its
	// registration is missing.
	// +optional
	Matched int32 `json:"matched"`
	// ready is how many of them have every add-on Ready.
	// +optional
	Ready int32 `json:"ready"`
	// updated is how many have been Ready on the newest revision.
	// +optional
	Updated int32 `json:"updated"`
	// failed is how many have an add-on that failed.
	// +optional
	Failed int32 `json:"failed"`
	// offline is how many do not answer now, or have not answered yet.
	// +optional
	Offline int32 `json:"offline"`
	// paused is how many have an add-on that is paused with its cluster, or suspended by a user.
	// +optional
	Paused int32 `json:"paused,omitempty"`
	// waiting is how many have nothing of the set yet, because its rollout has not come to them.
	// +optional
	Waiting int32 `json:"waiting,omitempty"`
	// held is how many clusters have a removal that is held.
	// +optional
	Held int32 `json:"held"`
	// leaving is how many clusters the set does not select any more, or is being withdrawn from.
	// +optional
	Leaving int32 `json:"leaving"`
	// readySummary is ready and matched in one string, such as "420/450".
	// +optional
	ReadySummary string `json:"readySummary,omitempty"`
	// updatedSummary is updated and matched in one string.
	// +optional
	UpdatedSummary string `json:"updatedSummary,omitempty"`
}

// AddonSet delivers add-ons to every cluster that it selects.
//
// A set in a platform namespace may select every ClusterRegistration. A set in any other namespace may select only
// the ClusterRegistrations of its own namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=aset,categories=chandler
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Clusters",type=string,JSONPath=`.status.clusters.readySummary`
// +kubebuilder:printcolumn:name="Updated",type=string,JSONPath=`.status.clusters.updatedSummary`
// +kubebuilder:printcolumn:name="Failed",type=integer,JSONPath=`.status.clusters.failed`
// +kubebuilder:printcolumn:name="Offline",type=integer,JSONPath=`.status.clusters.offline`
// +kubebuilder:printcolumn:name="Held",type=integer,JSONPath=`.status.clusters.held`
// +kubebuilder:printcolumn:name="Rollout",type=string,JSONPath=`.status.rollout.phase`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Revision",type=string,priority=1,JSONPath=`.status.revision`
// +kubebuilder:printcolumn:name="Priority",type=integer,priority=1,JSONPath=`.spec.priority`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type AddonSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec AddonSetSpec `json:"spec"`
	// status defaults to observedGeneration -1, as in Flux's own kinds. Otherwise kstatus would report an object that
	// the hub has not seen yet as Current.
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status AddonSetStatus `json:"status,omitempty"`
}

// AddonSetList is a list of AddonSets.
//
// +kubebuilder:object:root=true
type AddonSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AddonSet `json:"items"`
}

// GetConditions returns the conditions, for the status package.
func (s *AddonSet) GetConditions() *[]metav1.Condition { return &s.Status.Conditions }

// SetObservedGeneration sets the generation that the status describes.
func (s *AddonSet) SetObservedGeneration(g int64) { s.Status.ObservedGeneration = g }
