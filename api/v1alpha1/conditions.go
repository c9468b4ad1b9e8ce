// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Condition types. Ready is always there. Reconciling and Stalled are there only while they are true, as kstatus
// wants it: a Flux Kustomization with `wait: true` reads them.
const (
	ReadyCondition       = "Ready"
	ReconcilingCondition = "Reconciling"
	StalledCondition     = "Stalled"

	// KubeConfigValidCondition of a ClusterRegistration: a kubeconfig was found, and passed every check.
	KubeConfigValidCondition = "KubeConfigValid"
	// ReachableCondition of a ClusterRegistration: the cluster answered the last probe with these credentials, or, where the hub
	// has none to probe with, what Flux does there succeeds.
	ReachableCondition = "Reachable"
	// CredentialExpiringCondition of a ClusterRegistration, only while true: the kubeconfig in use expires within 30 days, or
	// has expired. A credential that somebody else rotates has a new one in time, usually on the last day.
	CredentialExpiringCondition = "CredentialExpiring"
	// DuplicateCondition of a ClusterRegistration, only while true: another registration is of the same cluster.
	DuplicateCondition = "Duplicate"
	// SuspendedCondition of a ClusterRegistration, only while true: the hub keeps the cluster's Flux objects suspended.
	SuspendedCondition = "Suspended"
	// MaintenanceCondition of a ClusterRegistration, only while true: the origin's own controller is at work on the cluster, or has
	// been told to leave it alone. A cluster that does not answer meanwhile has not failed.
	MaintenanceCondition = "Maintenance"
	// DrainingCondition of a ClusterRegistration, only while true: somebody asked for its add-ons to be uninstalled before its
	// cluster is deleted. Its transition time is when that began.
	DrainingCondition = "Draining"
	// UnregisteringCondition of a ClusterRegistration, only while true: it is going, or will when its delay is over.
	UnregisteringCondition = "Unregistering"
	// DeletionHeldCondition of a ClusterRegistration, only while true: it was deleted, and stays until somebody has looked.
	DeletionHeldCondition = "DeletionHeld"

	// OriginIgnoredCondition of a ClusterRegistration, only while true: an origin of its name asks to be registered, and is not.
	OriginIgnoredCondition = "OriginIgnored"

	// OverridesRefusedCondition of an AddonDelivery and of a ClusterRegistration, only while true: the cluster's owner wrote an
	// override, a variable or an annotation that may not be, or cannot be read. Everything is delivered without it.
	OverridesRefusedCondition = "OverridesRefused"

	// RemovalsHeldCondition of an AddonSet, only while true: its removal guard holds something back, and says how to go on. Of an
	// AddonDelivery and a ClusterRegistration: some of that is on this cluster.
	RemovalsHeldCondition = "RemovalsHeld"
	// RolloutCompleteCondition of an AddonSet: every matching cluster has the newest revision.
	RolloutCompleteCondition = "RolloutComplete"
	// HealthyCondition of an AddonSet: every add-on on every matching cluster is Ready now. kstatus ignores it, so
	// that one broken cluster does not block whoever waits for the set.
	HealthyCondition = "Healthy"
)

// Reasons that more than one kind uses.
const (
	// SucceededReason: all is as the spec wants it.
	SucceededReason = "Succeeded"
	// ProgressingReason: the hub or Flux is at work.
	ProgressingReason = "Progressing"
	// FailedReason: the hub could not do its work and tries again; the message says what went wrong.
	FailedReason = "ReconciliationFailed"
	// TerminatingReason: the object is being deleted and waits for what depends on it.
	TerminatingReason = "Terminating"
)

// Reasons of KubeConfigValid=False, beside those of the kubeconfig rules (package kubeconfig).
const (
	// KubeConfigNotReadyReason: the origin has not got a kubeconfig yet.
	KubeConfigNotReadyReason = "KubeConfigNotReady"
	// SecretNotFoundReason: the Secret that should hold the kubeconfig does not exist.
	SecretNotFoundReason = "SecretNotFound"
	// KubeConfigSourceMissingReason: the registration has neither an origin nor spec.kubeConfig.
	KubeConfigSourceMissingReason = "KubeConfigSourceMissing"
	// OriginNotFoundReason: the origin does not exist. What runs on the cluster is left alone.
	OriginNotFoundReason = "OriginNotFound"
	// NamespaceNotAllowedReason: Secrets in that namespace may not register clusters, or no longer. The cluster keeps what it has, and
	// the kubeconfig that is in use.
	NamespaceNotAllowedReason = "NamespaceNotAllowed"
	// OriginKindNotInstalledReason: the origin's CRD is not installed. What runs on the cluster is left alone.
	OriginKindNotInstalledReason = "OriginKindNotInstalled"
)

// WorkloadIdentityInvalidReason of KubeConfigValid=False: spec.kubeConfig.workloadIdentity says what cannot be.
const WorkloadIdentityInvalidReason = "WorkloadIdentityInvalid"

// Reasons of Reachable, beside those of the probe (package probe).
const (
	// FluxSucceedsReason: the hub cannot probe the cluster, and a Flux object is Ready there.
	FluxSucceedsReason = "FluxSucceeds"
	// FluxFailsReason: the hub cannot probe the cluster, and none of its Flux objects gets through to it.
	FluxFailsReason = "FluxFails"
	// ProbeSucceededReason: the API server answered with these credentials.
	ProbeSucceededReason = "ProbeSucceeded"
	// NotProbedReason: there is no answer yet, or nothing to probe with.
	NotProbedReason = "NotProbed"
	// HubItselfReason: the kubeconfig points at the management cluster itself, which Chandler refuses.
	HubItselfReason = "HubItself"
)

// Reasons of CredentialExpiring. Each is an event when it begins.
const (
	ExpiresIn30DaysReason = "ExpiresIn30Days"
	ExpiresIn7DaysReason  = "ExpiresIn7Days"
	ExpiresIn1DayReason   = "ExpiresIn1Day"
	ExpiredReason         = "Expired"
)

// SameClusterReason of Duplicate: both have one kube-system UID.
const SameClusterReason = "SameCluster"

// Reasons of Suspended, and of what waits for it.
const (
	// PausedReason: spec.pause asks for it. Ready of what is paused stays as it was.
	PausedReason = "Paused"
	// ClusterUnreachableReason: the cluster has not answered several times in a row. Flux would block its workers on it.
	ClusterUnreachableReason = "ClusterUnreachable"
	// ClusterSleepingReason: Kamaji has scaled the control plane down.
	ClusterSleepingReason = "ClusterSleeping"
	// ClusterWriteLimitedReason: Kamaji lets nobody write to the tenant now.
	ClusterWriteLimitedReason = "ClusterWriteLimited"
	// ClusterMigratingReason: Kamaji moves the tenant's data to another DataStore, and denies every change meanwhile.
	ClusterMigratingReason = "ClusterMigrating"
)

// Reasons of Maintenance.
const (
	// ClusterUpgradingReason: Kamaji brings the control plane to another version.
	ClusterUpgradingReason = "ClusterUpgrading"
	// ClusterRotatingCAReason: Kamaji gives the control plane another certificate authority.
	ClusterRotatingCAReason = "ClusterCertificateAuthorityRotating"
	// ClusterAPIPausedReason: the Cluster of Cluster API is paused.
	ClusterAPIPausedReason = "ClusterAPIPaused"
)

// Reasons of a ClusterRegistration's Ready.
const (
	// NoAddonSetReason: the cluster is reachable, and no AddonSet selects it.
	NoAddonSetReason = "NoAddonSetMatches"
	// AddonsFailedReason: at least one add-on failed.
	AddonsFailedReason = "AddonsFailed"
	// AddonsLeavingReason: a set is being withdrawn from the cluster, and its add-ons are not uninstalled yet; the message names them.
	AddonsLeavingReason = "AddonsLeaving"
)

// AddonsLostReason of an AddonSet and of an AddonDelivery: add-ons of the set are delivered by other sets; the message says which, and by
// whom. Ready is False only if that is all of them.
const AddonsLostReason = "AddonsLost"

// SuspendedReason of an AddonDelivery: somebody has suspended a Flux object of it. Ready stays as it was.
const SuspendedReason = "Suspended"

// HandOverReason of an add-on that is LostTo another set: it goes over by movedFrom as soon as the other set does without it.
const HandOverReason = "HandOver"

// Reasons of Unregistering.
const (
	// LabelRemovedReason: the register label is gone from the origin; the delay runs.
	LabelRemovedReason = "LabelRemoved"
	// OriginMissingReason: the Secret that it came from is gone, or is being deleted. Its cluster lives on; the grace runs. Of DeletionHeld as
	// well: that happened after the registration had been deleted.
	OriginMissingReason = "OriginMissing"
	// OriginLostReason: the grace is over. The add-ons are let go, not uninstalled, as far as the sets' removal guards allow.
	OriginLostReason = "OriginLost"
	// UnregisteredReason: the registration is going and its add-ons are uninstalled.
	UnregisteredReason = "Unregistered"
	// OriginDeletedReason: the cluster itself is being deleted, or is another hub's now; its add-ons are let go, not uninstalled.
	OriginDeletedReason = "OriginDeleted"
	// ForcedReason: somebody wants it gone at once; its add-ons are let go, not uninstalled.
	ForcedReason = "Forced"
)

// Waits returns whether a reason of Unregistering is a delay that runs: nothing goes yet.
func Waits(reason string) bool { return reason == LabelRemovedReason || reason == OriginMissingReason }

// LetsGo returns whether a reason of Unregistering lets the add-ons go, without uninstalling them.
func LetsGo(reason string) bool { return reason == OriginDeletedReason || reason == ForcedReason }

// SpecWouldBeLostReason of DeletionHeld: its origin has it made again, and what somebody wrote into its spec would be gone.
const SpecWouldBeLostReason = "SpecWouldBeLost"

// WrittenByHandReason of OriginIgnored: the registration has a spec.kubeConfig of its own and no originRef, so nobody but its author knows
// whether it is the origin's cluster.
const WrittenByHandReason = "WrittenByHand"

// Reasons of Draining, and of Ready meanwhile.
const (
	// DrainInProgressReason: add-ons are left on the cluster.
	DrainInProgressReason = "DrainInProgress"
	// DrainedReason: none is left, and the cluster may be deleted.
	DrainedReason = "Drained"
	// DrainTimedOutReason: some were left when spec.drainBeforeDeletion.timeout was over. The cluster may be deleted all the same.
	DrainTimedOutReason = "DrainTimedOut"
)

// Reasons of an AddonSet.
const (
	// InvalidSpecReason: the set does not compile. Clusters keep what they have.
	InvalidSpecReason = "InvalidSpec"
	// NoClusterMatchesReason: the set is fine and selects nothing; the message says what is in reach.
	NoClusterMatchesReason = "NoClusterMatches"
)

// Reasons of an add-on that is Held.
const (
	// DroppedReason: it is not wanted on the cluster any more.
	DroppedReason = "Dropped"
	// ReinstallReason: an edit would have Flux uninstall it and install it anew.
	ReinstallReason = "Reinstall"
)

// Reasons of RemovalsHeld.
const (
	// TooManyRemovalsReason: more clusters were to lose an add-on within an hour than go by themselves.
	TooManyRemovalsReason = "TooManyRemovals"
)

// Reasons of OverridesRefused: of several, the first that applies.
const (
	// OverrideRefusedReason: an override touches what its set does not open, or cannot be applied.
	OverrideRefusedReason = "OverrideRefused"
	// VariableRefusedReason: a variable would decide what no cluster decides, or an expression fails with its value.
	VariableRefusedReason = "VariableRefused"
	// VariablesUnreadableReason: the annotation of variables, or a variable, cannot be read.
	VariablesUnreadableReason = "VariablesUnreadable"
)

// Reasons of an AddonDelivery's Ready.
const (
	// AddonsReadyReason: every add-on is Ready on the cluster.
	AddonsReadyReason = "AddonsReady"
	// WaitingForClusterReason: the cluster has not answered yet; nothing is made before it does.
	WaitingForClusterReason = "WaitingForCluster"
	// RegistrationNotFoundReason: the registration is not there; what exists is held as it is.
	RegistrationNotFoundReason = "RegistrationNotFound"
	// IdentityForbiddenReason: the registration may not choose a ServiceAccount in the set's namespace.
	IdentityForbiddenReason = "IdentityForbidden"
	// RevisionNotFoundReason: the revision that the delivery names is not there; what exists is held as it is.
	RevisionNotFoundReason = "RevisionNotFound"
	// RenderFailedReason: for this cluster an expression of the set does not come out, also without what the cluster's owner
	// wrote. Whatever it concerns stays on the cluster as it is.
	RenderFailedReason = "RenderFailed"
	// ReadFailedReason: something that the delivery is rendered from could not be read. It is tried again, and until then what is
	// delivered stays as it is.
	ReadFailedReason = "ReadFailed"
	// FluxObjectsInFolderReason: a Kustomization's folder holds Flux objects, and the cluster has no Flux.
	FluxObjectsInFolderReason = "FluxObjectsInFolder"
	// RemovalsHeldReason: the set's removal guard has not let go what is to be removed or reinstalled.
	RemovalsHeldReason = "RemovalsHeld"
	// NotFromAddonSetReason: the hub has not made this delivery: its name, or the UID of its set, is not what the hub gives. Nothing is
	// made or removed for it.
	NotFromAddonSetReason = "NotFromAddonSet"
	// AddonSetNotFoundReason: there is no AddonSet of that name in the delivery's namespace. Nothing is made for it, and what is there
	// of it stays as it is.
	AddonSetNotFoundReason = "AddonSetNotFound"
	// OutOfReachReason: sets in that namespace may not deliver to that cluster. Nothing is made for it.
	OutOfReachReason = "OutOfReach"
	// NotSelectedReason: the AddonSet does not select the cluster, and nothing has been made there yet. Nothing is.
	NotSelectedReason = "NotSelected"
	// FrozenReason: the revision was made by another version of the hub's renderer. What is there of it stays as it is until the set
	// changes; what is missing is made by the present one.
	FrozenReason = "Frozen"
)

// Reasons of events.
const (
	RegisteredEvent        = "Registered"
	UnregisteredEvent      = "Unregistered"
	NotRegisteredEvent     = "NotRegistered"
	ReRegisteredEvent      = "RegisteredAgain"
	LabelConflictEvent     = "LabelConflict"
	KubeConfigChangedEvent = "KubeConfigChanged"
	ReachableEvent         = "ClusterReachable"
	ClusterReplacedEvent   = "ClusterReplaced"
	HeldEvent              = "NothingIsRemoved"
	CredentialEvent        = "CredentialExpiring"
	DuplicateEvent         = "DuplicateCluster"
	SuspendedEvent         = "ClusterSuspended"
	ResumedEvent           = "ClusterResumed"
	UnreachableEvent       = "ClusterUnreachable"
	DrainingEvent          = "Draining"
	DrainedEvent           = "Drained"
	DrainTimedOutEvent     = "DrainTimedOut"
	DrainCancelledEvent    = "DrainCancelled"
	RevisionCreatedEvent   = "RevisionCreated"
	RemovalsHeldEvent      = "RemovalsHeld"
	RemovalsApprovedEvent  = "RemovalsApproved"
	AddonRemovedEvent      = "AddonRemoved"
	AddonOrphanedEvent     = "AddonOrphaned"
	AddonTakenOverEvent    = "AddonTakenOver"
	AddonFailedEvent       = "AddonFailed"
	AddonRecoveredEvent    = "AddonRecovered"
	DeliveredEvent         = "Delivered"
	// DeliveryMadeAgainEvent: somebody has deleted a delivery that its set wants. Nothing is removed, and it is made again.
	DeliveryMadeAgainEvent = "DeliveryMadeAgain"
)
