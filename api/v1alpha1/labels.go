// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Labels and annotations that people set.
const (
	// RegisterLabel on a TenantControlPlane, a Cluster API Cluster or a kubeconfig Secret registers that cluster
	// when it is "true". "false" unregisters at once; taking the label off unregisters after a delay.
	RegisterLabel = "chandler.dev/register"

	// RegisterSecretsLabel on a Namespace lets labelled Secrets register clusters there when it is "true".
	RegisterSecretsLabel = "chandler.dev/register-secrets"

	// KubeConfigKeyAnnotation on a labelled Secret names the key that holds the kubeconfig.
	KubeConfigKeyAnnotation = "chandler.dev/kubeconfig-key"

	// VariablesAnnotation on an origin holds variables of that cluster, as a JSON or YAML object.
	VariablesAnnotation = "chandler.dev/variables"

	// ApproveRemovalAnnotation on an AddonSet lets go what its removal guard holds, if it is status.heldRemovals.hash.
	ApproveRemovalAnnotation = "chandler.dev/approve-removal"

	// ForceUnregisterAnnotation, when it is "true", on a ClusterRegistration that is being deleted lets all its add-ons go at
	// once: nothing is uninstalled or waited for any more, and what is left on the cluster is reported.
	ForceUnregisterAnnotation = "chandler.dev/force-unregister"

	// DiscardSpecAnnotation, when it is "true", on a ClusterRegistration that is being deleted while its origin wants it lets it be made
	// again without what somebody wrote into its spec.
	DiscardSpecAnnotation = "chandler.dev/discard-spec"

	// DrainAnnotation on a TenantControlPlane or Cluster has its add-ons uninstalled while it is "true", if its registration has
	// spec.drainBeforeDeletion. Taking it off brings them back.
	DrainAnnotation = "chandler.dev/drain"

	// ForceDeletionAnnotation on a TenantControlPlane or Cluster lets it be deleted while it is "true", whatever is left on the
	// cluster. On a Namespace it lets that be deleted with the AddonSets and ClusterRegistrations that it holds. The admission policies
	// read it, and the hub does not.
	ForceDeletionAnnotation = "chandler.dev/force-deletion"
)

// What the hub sets on a TenantControlPlane or Cluster whose registration has spec.drainBeforeDeletion. A policy sees no other
// object than the one that is to be deleted, so this is how it knows.
const (
	// DrainBeforeDeletionLabel is "true" on those that must not be deleted before they are drained.
	DrainBeforeDeletionLabel = "chandler.dev/drain-before-deletion"
	// DrainedAnnotation is "true" on those whose add-ons have been uninstalled, or have had the time for it.
	DrainedAnnotation = "chandler.dev/drained"
)

// Labels that the hub sets on ClusterRegistrations, to select on.
const (
	// NameLabel is the registration's own name.
	NameLabel = "chandler.dev/name"
	// ProviderLabel is where the cluster comes from: Kamaji, ClusterAPI, Secret or WorkloadIdentity.
	ProviderLabel = "chandler.dev/provider"
	// KubernetesMinorLabel is the cluster's Kubernetes minor version, such as "1.33". It is set after the first
	// successful probe.
	KubernetesMinorLabel = "chandler.dev/kubernetes-minor"
)

// Labels and annotations of generated objects (Flux objects, kubeconfig mirrors, charts, deliveries, revisions).
const (
	// ClusterKeyLabel is a hash that stands for the registration that a generated object serves. A hash, because a
	// namespace and a name together do not fit a label value.
	ClusterKeyLabel = "chandler.dev/cluster-key"
	// ClusterLabel is the registration's name, shortened if need be: for people and their selectors.
	ClusterLabel = "chandler.dev/cluster"
	// AddonSetLabel is the name of the AddonSet, shortened if need be.
	AddonSetLabel = "chandler.dev/addonset"
	// AddonLabel is the name of the add-on.
	AddonLabel = "chandler.dev/addon"
	// ChartLabel marks the HelmCharts that the hub keeps.
	ChartLabel = "chandler.dev/chart"
	// SourceLabel marks the Flux sources that the hub keeps.
	SourceLabel = "chandler.dev/source"
	// MirrorLabel marks the kubeconfig Secrets, and the ConfigMaps for workload identity, that the hub keeps.
	MirrorLabel = "chandler.dev/mirror"

	// RegistrationAnnotation is the namespace/name of the registration that a generated object serves.
	RegistrationAnnotation = "chandler.dev/registration"
	// DeliveryAnnotation is the name of the AddonDelivery (same namespace) that a generated object belongs to.
	DeliveryAnnotation = "chandler.dev/delivery"
	// HashAnnotation is a digest of everything that the hub applied to the object.
	HashAnnotation = "chandler.dev/applied-hash"
	// DependsOnAnnotation lists the add-ons, comma-separated, that this one was delivered after. Removal runs the
	// other way round, also when the set that said so is gone.
	DependsOnAnnotation = "chandler.dev/depends-on"
	// DeletionPolicyAnnotation is the deletion policy of the add-on when it was last applied. It is read when the add-on
	// has been dropped, and the set says nothing about it any more. On an AddonDelivery it is that of the set, or of the
	// registration, when the delivery was withdrawn.
	DeletionPolicyAnnotation = "chandler.dev/deletion-policy"
	// ReleaseAnnotation is the Helm release (name,namespace,storage namespace) that an add-on goes on with although its name
	// would give another one: it took it over.
	ReleaseAnnotation = "chandler.dev/release"
	// AppliedAsAnnotation on a Kustomization is a digest of the folder and the places that Flux had applied, and the generation that said so, when
	// the hub had it apply something else. It counts until Flux has succeeded with that.
	AppliedAsAnnotation = "chandler.dev/applied-as"
	// ClusterUIDAnnotation on a Flux object is the UID of kube-system of the cluster that it was made for, or, with workload
	// identity, the fingerprint of what names the cluster. What Flux knows of one cluster must never be tried on another.
	ClusterUIDAnnotation = "chandler.dev/cluster-uid"
	// SuspendedAnnotation on a Flux object says why the hub keeps it suspended. Without it, a suspend is somebody else's.
	SuspendedAnnotation = "chandler.dev/suspended"
	// FingerprintAnnotation on a mirror is the fingerprint of what it holds.
	FingerprintAnnotation = "chandler.dev/kubeconfig-fingerprint"
	// MirroredAnnotation on a registration lists the label keys, comma-separated, that discovery mirrors. One with a ! is left
	// as it is, since somebody else has given it another value.
	MirroredAnnotation = "chandler.dev/mirrored-labels"
)

// Annotations of generated Flux objects that Flux's controllers copy into each event about the object, so that a notification
// says which cluster it is about. Not plain "cluster": people give their Alerts a field of that name for the management cluster, and
// an Alert's own fields win.
const (
	// EventClusterAnnotation is the namespace/name of the registration.
	EventClusterAnnotation = "event.toolkit.fluxcd.io/workload-cluster"
	// EventSetAnnotation is the namespace/name of the AddonSet.
	EventSetAnnotation = "event.toolkit.fluxcd.io/addonset"
	// EventAddonAnnotation is the name of the add-on.
	EventAddonAnnotation = "event.toolkit.fluxcd.io/addon"
)

// Finalizers.
const (
	// RegistrationFinalizer keeps a registration until no delivery for it is left.
	RegistrationFinalizer = "chandler.dev/registration"
	// AddonSetFinalizer keeps a set until its deliveries are gone.
	AddonSetFinalizer = "chandler.dev/addonset"
	// DeliveryFinalizer keeps a delivery until what it put on the cluster is gone or given up.
	DeliveryFinalizer = "chandler.dev/delivery"
	// MirrorFinalizer keeps a kubeconfig mirror until the last Flux object that uses it is gone: a Kustomization
	// whose kubeconfig vanished hangs for ever, a HelmRelease forgets its release without a word.
	MirrorFinalizer = "chandler.dev/mirror"
	// TwinFinalizer keeps a twin of a ServiceAccount until the last Flux object that names it is gone, also when its namespace is
	// deleted: a Kustomization without its twin leaves everything behind without a word.
	TwinFinalizer = "chandler.dev/twin"
)

// Field managers. Each part of the hub owns its own fields, and nothing else.
const (
	// FieldManager owns the generated objects.
	FieldManager = "chandler"
	// DiscoveryFieldManager owns originRef and the mirrored labels of a registration.
	DiscoveryFieldManager = "chandler-discovery"
	// RegistrationFieldManager owns the labels that a probe found out.
	RegistrationFieldManager = "chandler-registration"
	// GuardFieldManager owns spec.removals and spec.withdrawal of deliveries.
	GuardFieldManager = "chandler-guard"
	// SuspendFieldManager owns spec.suspend of generated objects while the hub holds them. Its own manager, so
	// that giving it up leaves a suspend that a person asked for in place.
	SuspendFieldManager = "chandler-suspend"
)
