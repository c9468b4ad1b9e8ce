// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Labels and annotations that people set.
const (
	// RegisterLabel on a TenantControlPlane, a Cluster API Cluster or a kubeconfig Secret registers that cluster when
	// it is "true". "false" unregisters at once; removing the label unregisters after a delay.
	RegisterLabel = "chandler.dev/register"

	// RegisterSecretsLabel on a Namespace lets labelled Secrets register clusters there when it is "true".
	RegisterSecretsLabel = "chandler.dev/register-secrets"

	// KubeConfigKeyAnnotation on a labelled Secret names the key that holds the kubeconfig.
	KubeConfigKeyAnnotation = "chandler.dev/kubeconfig-key"

	// VariablesAnnotation on an origin holds variables of that cluster, as a JSON or YAML object.
	VariablesAnnotation = "chandler.dev/variables"

	// ShareAnnotation on a ConfigMap or Secret of a registration's namespace lists the namespaces, comma-separated, whose sets may read the
	// object with from: Cluster. Its owner writes it.
	ShareAnnotation = "chandler.dev/share-with"

	// ApproveRemovalAnnotation on an AddonSet approves the removals that its removal guard holds, if the value is
	// status.heldRemovals.hash.
	ApproveRemovalAnnotation = "chandler.dev/approve-removal"

	// ApproveAnnotation on an AddonSet lets the wave after one with approval: Manual begin: <revision>/<wave>. Several are
	// separated by commas.
	ApproveAnnotation = "chandler.dev/approve"
	// ExpediteAnnotation on an AddonSet ends soaks and windows for one revision: <revision>: <reason>.
	ExpediteAnnotation = "chandler.dev/expedite"
	// RetryAnnotation on an AddonSet has a revision that failed rolled out again: <revision>/<a mark that counts once>.
	RetryAnnotation = "chandler.dev/retry"
	// UndoAnnotation on an AddonSet gives its clusters an older revision while it has the newest: <newest>/<older>, and /now
	// for all clusters at once.
	UndoAnnotation = "chandler.dev/undo"
	// RolloutAnnotation on an AddonSet is what the hub must not forget of its rollouts if the status is lost: the last revision
	// that was completed, and those that failed. The hub reads it only then.
	RolloutAnnotation = "chandler.dev/rollout"

	// ForceUnregisterAnnotation, when it is "true" on a ClusterRegistration that is being deleted, lets all its
	// add-ons go at once. The hub uninstalls nothing and waits for nothing, and reports what is left on the cluster.
	ForceUnregisterAnnotation = "chandler.dev/force-unregister"

	// RenewTokenAnnotation on a Secret with the kubeconfig of a cluster has the hub renew the ServiceAccount's token in
	// it. The value is the lifetime to ask for, such as 720h.
	RenewTokenAnnotation = "chandler.dev/renew-token"

	// AccountAnnotation on a Secret that `chandler register` has made is the namespace/name of the hub's ServiceAccount on
	// the cluster. Only the command line reads it.
	AccountAnnotation = "chandler.dev/account"
	// HubUIDAnnotation on what `chandler register` makes on a cluster is the UID of kube-system of the management cluster.
	HubUIDAnnotation = "chandler.dev/hub-uid"

	// DrainAnnotation on a TenantControlPlane or Cluster, while it is "true", has its add-ons uninstalled, if its
	// registration has spec.drainBeforeDeletion. Removing the annotation brings them back.
	DrainAnnotation = "chandler.dev/drain"

	// ForceDeletionAnnotation on a TenantControlPlane or Cluster, while it is "true", allows its deletion, whatever
	// is left on the cluster. On a Namespace it allows the deletion with all AddonSets and ClusterRegistrations in
	// it. Only the admission policies read it; the hub does not.
	ForceDeletionAnnotation = "chandler.dev/force-deletion"
)

// The hub sets these on a TenantControlPlane or Cluster whose registration has spec.drainBeforeDeletion. An admission
// policy sees only the object that is to be deleted, so it needs them there.
const (
	// DrainBeforeDeletionLabel is "true" on an object that must not be deleted before it is drained.
	DrainBeforeDeletionLabel = "chandler.dev/drain-before-deletion"
	// DrainedAnnotation is "true" on an object whose add-ons have been uninstalled, or whose time for it is over.
	DrainedAnnotation = "chandler.dev/drained"
)

// Labels that the hub sets on ClusterRegistrations, to select on.
const (
	// NameLabel is the registration's own name.
	NameLabel = "chandler.dev/name"
	// ProviderLabel says where the cluster comes from: Kamaji, ClusterAPI, Secret or WorkloadIdentity.
	ProviderLabel = "chandler.dev/provider"
	// KubernetesMinorLabel is the cluster's Kubernetes minor version, such as "1.33". It is set after the first
	// successful probe.
	KubernetesMinorLabel = "chandler.dev/kubernetes-minor"
)

// Labels and annotations of generated objects (Flux objects, kubeconfig copies, charts, deliveries, revisions).
const (
	// ClusterKeyLabel is a hash of the registration that a generated object serves. It is a hash because a namespace
	// and a name together do not fit a label value.
	ClusterKeyLabel = "chandler.dev/cluster-key"
	// ClusterLabel is the registration's name, shortened if it is too long. It is for people and their selectors.
	ClusterLabel = "chandler.dev/cluster"
	// AddonSetLabel is the name of the AddonSet, shortened if it is too long.
	AddonSetLabel = "chandler.dev/addonset"
	// AddonLabel is the name of the add-on.
	AddonLabel = "chandler.dev/addon"
	// ChartLabel marks the HelmCharts that the hub keeps.
	ChartLabel = "chandler.dev/chart"
	// SourceLabel marks the Flux sources that the hub keeps.
	SourceLabel = "chandler.dev/source"
	// TeamLabel is the name of the Team on the AddonSet that the hub keeps for it, on what that set brings to clusters,
	// and on the kubeconfigs with the team's tokens.
	TeamLabel = "chandler.dev/team"
	// CopyLabel marks what the hub copies beside the sets: the kubeconfig Secrets, the ConfigMaps for workload identity, and copies of what
	// lies beside a cluster.
	CopyLabel = "chandler.dev/copy"

	// RegistrationAnnotation is the namespace/name of the registration that a generated object serves.
	RegistrationAnnotation = "chandler.dev/registration"
	// DeliveryAnnotation is the name of the AddonDelivery (same namespace) that a generated object belongs to.
	DeliveryAnnotation = "chandler.dev/delivery"
	// CopyOfAnnotation on a copy of what lies beside a cluster is the name of the original, in the namespace of the registration.
	CopyOfAnnotation = "chandler.dev/copy-of"
	// HashAnnotation is a digest of everything that the hub applied to the object.
	HashAnnotation = "chandler.dev/applied-hash"
	// DependsOnAnnotation lists the add-ons, comma-separated, that this one was delivered after. Removal runs in
	// reverse order, also when the set is gone.
	DependsOnAnnotation = "chandler.dev/depends-on"
	// DeletionPolicyAnnotation on a Flux object is the deletion policy of the add-on when the hub last applied it.
	// The hub reads it when the set no longer has the add-on. On an AddonDelivery that is withdrawn, Orphan says that its
	// add-ons stay: by the policy of the set or the registration at that time, or because the registration orphaned them.
	DeletionPolicyAnnotation = "chandler.dev/deletion-policy"
	// ReleaseAnnotation is the Helm release (name,namespace,storage namespace) of an add-on that took over a release
	// with another name than its own would give.
	ReleaseAnnotation = "chandler.dev/release"
	// AppliedAsAnnotation on a Kustomization records what Flux had applied when the hub changed it: a digest of its
	// folder and places, and the last generation that is known not to have applied the change. It counts until Flux has
	// succeeded with a later one.
	AppliedAsAnnotation = "chandler.dev/applied-as"
	// ClusterUIDAnnotation on a Flux object, or on a Secret that `chandler register` has made, is the UID of kube-system of the
	// cluster that it was made for or, with workload identity, the target fingerprint. What Flux records about one cluster
	// must never be applied to another.
	ClusterUIDAnnotation = "chandler.dev/cluster-uid"
	// SuspendedAnnotation on a Flux object says why the hub keeps it suspended. Without it, a user suspended
	// the object.
	SuspendedAnnotation = "chandler.dev/suspended"
	// TakenOverSuspension is the value of SuspendedAnnotation on an object that the hub is about to delete, and whose workload stays: an
	// add-on of another namespace takes it over, or it is left on the cluster.
	TakenOverSuspension = "TakenOver"
	// FingerprintAnnotation on a kubeconfig copy, or on a Secret with RenewTokenAnnotation, is the fingerprint of its kubeconfig.
	FingerprintAnnotation = "chandler.dev/kubeconfig-fingerprint"
	// TokenExpiryAnnotation on a team's kubeconfig copy, or on a Secret with RenewTokenAnnotation, is when its token
	// expires, as RFC 3339.
	TokenExpiryAnnotation = "chandler.dev/token-expires"
	// TokenIssuedAnnotation on a team's kubeconfig copy, or on a Secret with RenewTokenAnnotation, is when its token was
	// asked for, as RFC 3339.
	TokenIssuedAnnotation = "chandler.dev/token-issued"
	// CopiedAnnotation on a registration lists the label keys, comma-separated, that discovery copies. A key with
	// a ! is left alone, since another writer has given the label another value.
	CopiedAnnotation = "chandler.dev/copied-labels"
)

// Annotations of generated Flux objects. Flux's controllers copy them into each event about the object, so that a
// notification says which cluster it is about. The first is not plain "cluster": people give their Alerts a field of
// that name for the management cluster, and an Alert's own fields win.
const (
	// EventClusterAnnotation is the namespace/name of the registration.
	EventClusterAnnotation = "event.toolkit.fluxcd.io/workload-cluster"
	// EventSetAnnotation is the namespace/name of the AddonSet.
	EventSetAnnotation = "event.toolkit.fluxcd.io/addonset"
	// EventAddonAnnotation is the name of the add-on.
	EventAddonAnnotation = "event.toolkit.fluxcd.io/addon"
)

// Finalizer keeps an object of the hub until the hub has done what must be done before the object goes. All kinds have the same one, as
// those of Flux have finalizers.fluxcd.io. A ClusterRegistration is kept until it has no delivery left, an AddonSet until its deliveries
// are gone, a Team until its namespaces and rights have been withdrawn from every cluster, and an AddonDelivery until all that it put on
// the cluster is uninstalled or orphaned.
//
// A kubeconfig copy is kept until the last Flux object that uses it is gone: without its kubeconfig, a Kustomization hangs in deletion for
// ever, and a HelmRelease leaves its Helm release behind without a message. A placeholder ServiceAccount is kept until the last Flux object
// that names it is gone, also when its namespace is deleted: without it, a Kustomization leaves everything behind without a message.
const Finalizer = "chandler.dev/finalizer"

// Field managers. Each part of the hub owns only its own fields.
const (
	// FieldManager owns the generated objects, and the labels of a registration that come from probes.
	FieldManager = "chandler"
	// DiscoveryFieldManager owns originRef and the copied labels of a registration.
	DiscoveryFieldManager = "chandler-discovery"
	// SwitchFieldManager owns what the hub switches on and off beside the content: spec.removals and spec.withdrawal of deliveries, and
	// spec.suspend of generated objects while the hub suspends them. When the hub gives that up, a suspend that a person asked for stays.
	SwitchFieldManager = "chandler-switch"
)
