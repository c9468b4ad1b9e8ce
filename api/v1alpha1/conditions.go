// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Condition types. Ready is always there. Reconciling and Stalled are there only while true, as kstatus expects: a
// Flux Kustomization with `wait: true` reads them.
const (
	ReadyCondition       = "Ready"
	ReconcilingCondition = "Reconciling"
	StalledCondition     = "Stalled"

	// KubeConfigValidCondition of a ClusterRegistration: the hub found a kubeconfig, and it passed every check.
	KubeConfigValidCondition = "KubeConfigValid"
	// ReachableCondition of a ClusterRegistration: the cluster answered the last probe with these credentials. With
	// workload identity, which the hub cannot probe with: a Flux object is Ready there.
	ReachableCondition = "Reachable"
	// CredentialExpiringCondition of a ClusterRegistration, only while true: the kubeconfig in use expires within 30
	// days, or has expired. A credential that a controller rotates is replaced in time, usually on the last day.
	CredentialExpiringCondition = "CredentialExpiring"
	// DuplicateCondition of a ClusterRegistration, only while true: another registration has the cluster, and nothing is delivered
	// through this one; or both have it, since each is in a tenant's namespace.
	DuplicateCondition = "Duplicate"
	// SuspendedCondition of a ClusterRegistration, only while true: the hub keeps the cluster's Flux objects suspended.
	SuspendedCondition = "Suspended"
	// MaintenanceCondition of a ClusterRegistration, only while true: the origin's own controller is working on the
	// cluster, or is paused. If the cluster does not answer meanwhile, that is not a failure.
	MaintenanceCondition = "Maintenance"
	// DrainingCondition of a ClusterRegistration, only while true: a user asked for its add-ons to be uninstalled
	// before its cluster is deleted. Its transition time is when the drain began.
	DrainingCondition = "Draining"
	// UnregisteringCondition of a ClusterRegistration, only while true: it is being unregistered, or will be when its
	// delay is over.
	UnregisteringCondition = "Unregistering"

	// OverridesRefusedCondition of an AddonDelivery and of a ClusterRegistration, only while true: the cluster's
	// owner wrote an override, a variable or an annotation that is not allowed, or that the hub cannot read. The hub
	// delivers everything without it.
	OverridesRefusedCondition = "OverridesRefused"

	// RemovalsHeldCondition of an AddonSet, only while true: its removal guard holds removals, and the message says
	// how to go on. Of an AddonDelivery and a ClusterRegistration: some of them are on this cluster.
	RemovalsHeldCondition = "RemovalsHeld"
	// RolloutCompleteCondition of an AddonSet: every matching cluster has the newest revision. If it is False while the rollout waits or has
	// stopped, its reason is the phase of the rollout.
	RolloutCompleteCondition = "RolloutComplete"
	// RolloutEnforcedCondition of an AddonSet with waves: nothing that it delivers changes without a new revision. If it is
	// False, the message names what floats: a chart version that is a range, a branch, a ConfigMap of values.
	RolloutEnforcedCondition = "RolloutEnforced"
	// HealthyCondition of an AddonSet: every add-on on every matching cluster is Ready now. kstatus ignores this
	// condition, so one broken cluster does not block those who wait for the set.
	HealthyCondition = "Healthy"
)

// Reasons that more than one kind uses.
const (
	// SucceededReason: everything is as the spec asks.
	SucceededReason = "Succeeded"
	// ProgressingReason: the hub or Flux is working on it.
	ProgressingReason = "Progressing"
	// FailedReason: the hub failed and tries again; the message says what went wrong.
	FailedReason = "ReconciliationFailed"
	// TerminatingReason: the object is being deleted and waits for the objects that depend on it.
	TerminatingReason = "Terminating"
)

// Reasons of KubeConfigValid=False, beside those of the kubeconfig rules (package kubeconfig) and CredentialRefusedReason: the cluster
// refuses what the Secret says now, and the kubeconfig in use stays in use.
const (
	// KubeConfigNotReadyReason: the origin has no kubeconfig yet.
	KubeConfigNotReadyReason = "KubeConfigNotReady"
	// SecretNotFoundReason: the Secret that should hold the kubeconfig does not exist.
	SecretNotFoundReason = "SecretNotFound"
	// KubeConfigSourceMissingReason: the registration has neither an origin nor spec.kubeConfig.
	KubeConfigSourceMissingReason = "KubeConfigSourceMissing"
	// OriginNotFoundReason: the origin does not exist. What runs on the cluster is left alone.
	OriginNotFoundReason = "OriginNotFound"
	// NamespaceNotAllowedReason: Secrets in that namespace may not register clusters, or may no longer. The cluster
	// keeps its add-ons and the kubeconfig in use.
	NamespaceNotAllowedReason = "NamespaceNotAllowed"
	// OriginKindNotInstalledReason: the origin's CRD is not installed. What runs on the cluster is left alone.
	OriginKindNotInstalledReason = "OriginKindNotInstalled"
)

// WorkloadIdentityInvalidReason of KubeConfigValid=False: spec.kubeConfig.workloadIdentity is not valid.
const WorkloadIdentityInvalidReason = "WorkloadIdentityInvalid"

// Reasons of Reachable, beside those of the probe (package probe).
const (
	// FluxSucceedsReason: the hub cannot probe the cluster, and at least one Flux object is Ready there.
	FluxSucceedsReason = "FluxSucceeds"
	// FluxFailsReason: the hub cannot probe the cluster, and none of its Flux objects can reach it.
	FluxFailsReason = "FluxFails"
	// ProbeSucceededReason: the API server answered with these credentials.
	ProbeSucceededReason = "ProbeSucceeded"
	// NotProbedReason: no probe has been answered yet, or there is no credential to probe with.
	NotProbedReason = "NotProbed"
	// HubItselfReason: the kubeconfig points at the management cluster itself, which the hub rejects.
	HubItselfReason = "HubItself"
)

// Reasons of CredentialExpiring. When one begins, the hub emits an event.
const (
	ExpiresIn30DaysReason = "ExpiresIn30Days"
	ExpiresIn7DaysReason  = "ExpiresIn7Days"
	ExpiresIn1DayReason   = "ExpiresIn1Day"
	ExpiredReason         = "Expired"
)

// SameClusterReason of Duplicate: both have one kube-system UID. Of Unregistering: the registration is going, and its
// add-ons are orphaned, not uninstalled, since another registration of the same cluster stays.
const SameClusterReason = "SameCluster"

// DuplicateReason of Ready, of a ClusterRegistration and of its AddonDeliveries: another registration has the cluster.
const DuplicateReason = "Duplicate"

// Reasons of Suspended, and of Ready of what is suspended.
const (
	// PausedReason: spec.pause asks for it. Ready of paused objects keeps its value.
	PausedReason = "Paused"
	// ClusterUnreachableReason: the cluster has not answered several times in a row. It would block Flux's workers.
	ClusterUnreachableReason = "ClusterUnreachable"
	// CredentialRefusedReason: the cluster answers, and has refused the kubeconfig's credential several times in a row. Also a reason of
	// KubeConfigValid=False.
	CredentialRefusedReason = "CredentialRefused"
	// FluxHangsReason: the cluster answers the hub, and Flux has waited for minutes for the first answer of a reconcile. It has no deadline
	// for that, so the cluster holds one of Flux's workers for each of its objects.
	FluxHangsReason = "FluxHangs"
	// ClusterSleepingReason: Kamaji has scaled the control plane down.
	ClusterSleepingReason = "ClusterSleeping"
	// ClusterWriteLimitedReason: Kamaji rejects all writes to the tenant for now.
	ClusterWriteLimitedReason = "ClusterWriteLimited"
	// ClusterMigratingReason: Kamaji moves the tenant's data to another DataStore, and denies every change meanwhile.
	ClusterMigratingReason = "ClusterMigrating"
)

// Tripped returns whether Suspended has a reason of the breaker, which found that Flux gets nowhere on the cluster. All other reasons are
// wanted, by a user or by the origin.
func Tripped(reason string) bool {
	return reason == ClusterUnreachableReason || reason == CredentialRefusedReason || reason == FluxHangsReason
}

// Reasons of Maintenance.
const (
	// ClusterUpgradingReason: Kamaji upgrades the control plane to another version.
	ClusterUpgradingReason = "ClusterUpgrading"
	// ClusterRotatingCAReason: Kamaji gives the control plane another certificate authority.
	ClusterRotatingCAReason = "ClusterCertificateAuthorityRotating"
	// ClusterAPIPausedReason: the Cluster of Cluster API is paused.
	ClusterAPIPausedReason = "ClusterAPIPaused"
)

// Reasons of a ClusterRegistration's Ready.
const (
	// WaitingForWaveReason: all sets that select the cluster deliver nothing there before their rollouts come to it.
	WaitingForWaveReason = "WaitingForWave"
	// NoAddonSetReason: the cluster is reachable, and no AddonSet selects it.
	NoAddonSetReason = "NoAddonSetMatches"
	// AddonsFailedReason: at least one add-on failed.
	AddonsFailedReason = "AddonsFailed"
	// AddonsLeavingReason: a set is being withdrawn from the cluster, and some of its add-ons are not uninstalled
	// yet; the message names them.
	AddonsLeavingReason = "AddonsLeaving"
)

// AddonsLostReason of an AddonSet and of an AddonDelivery: other sets deliver add-ons that this set has too; the
// message says which add-ons and which sets. Ready is False only if that is true of all add-ons.
const AddonsLostReason = "AddonsLost"

// SuspendedReason of an AddonDelivery: a user has suspended one of its Flux objects. Ready keeps its value.
const SuspendedReason = "Suspended"

// HandOverReason of an add-on that is LostTo another set: the other set has it by movedFrom, and takes it over as
// soon as it can.
const HandOverReason = "HandOver"

// Reasons of Unregistering.
const (
	// LabelRemovedReason: the register label was taken off the origin, and the delay runs.
	LabelRemovedReason = "LabelRemoved"
	// OriginMissingReason: the origin, a Secret, is gone or is being deleted. Its cluster lives on, and the grace
	// runs. Also of Ready, of an AddonDelivery: the origin, of whatever kind, does not exist or cannot be read, so that
	// nothing is rendered. What is delivered stays as it is.
	OriginMissingReason = "OriginMissing"
	// OriginLostReason: the grace is over. The hub orphans the add-ons and does not uninstall them, as far as the
	// sets' removal guards grant it.
	OriginLostReason = "OriginLost"
	// UnregisteredReason: the registration is being deleted, and its add-ons are being uninstalled.
	UnregisteredReason = "Unregistered"
	// OriginDeletedReason: the cluster itself is being deleted, or another hub serves it now. The hub lets the
	// add-ons go and does not uninstall them.
	OriginDeletedReason = "OriginDeleted"
	// ForcedReason: a user asked for it to go at once. The hub orphans the add-ons and does not uninstall them.
	ForcedReason = "Forced"
)

// Waits returns whether a reason of Unregistering is a delay that runs, so that nothing is removed yet.
func Waits(reason string) bool { return reason == LabelRemovedReason || reason == OriginMissingReason }

// OrphansAddons returns whether a reason of Unregistering means that the hub orphans the add-ons without uninstalling them.
func OrphansAddons(reason string) bool {
	return reason == OriginDeletedReason || reason == ForcedReason || reason == SameClusterReason
}

// Reasons of Draining, and of Ready during a drain.
const (
	// DrainInProgressReason: add-ons are left on the cluster.
	DrainInProgressReason = "DrainInProgress"
	// DrainedReason: no add-on is left, and the cluster may be deleted.
	DrainedReason = "Drained"
	// DrainTimedOutReason: add-ons were left when spec.drainBeforeDeletion.timeout was over. The cluster may be
	// deleted all the same.
	DrainTimedOutReason = "DrainTimedOut"
)

// Reasons of an AddonSet.
const (
	// InvalidSpecReason: the set does not compile. Clusters keep what they have.
	InvalidSpecReason = "InvalidSpec"
	// NoClusterMatchesReason: the set is valid and selects no cluster; the message says which clusters are in reach.
	NoClusterMatchesReason = "NoClusterMatches"
)

// SourcesNotReadyReason: the next revision of a set waits for what Flux has not read yet, or cannot read.
const SourcesNotReadyReason = "SourcesNotReady"

// SourcesFloatReason of RolloutEnforced: the message names what may change without a new revision.
const SourcesFloatReason = "SourcesFloat"

// RolloutFailedReason of an AddonSet's Ready: too many clusters of a wave failed on the newest revision.
const RolloutFailedReason = "RolloutFailed"

// NotWrittenReason of an add-on that is Failed: the management cluster did not take a write of the hub, which is tried again.
const NotWrittenReason = "NotWritten"

// Reasons of an add-on that is Held.
const (
	// DroppedReason: the set does not deliver it to the cluster any more.
	DroppedReason = "Dropped"
	// ReinstallReason: an edit would have Flux uninstall it and install it again.
	ReinstallReason = "Reinstall"
)

// Reasons of RemovalsHeld.
const (
	// TooManyRemovalsReason: more clusters would lose an add-on within an hour than the guard grants by itself.
	TooManyRemovalsReason = "TooManyRemovals"
)

// Reasons of OverridesRefused. If several apply, the condition has the first.
const (
	// OverrideRefusedReason: an override changes a path that its set does not open, or cannot be applied; a variable would decide a field
	// that no cluster may decide, or an expression fails with its value, or the hub cannot read it.
	OverrideRefusedReason = "OverrideRefused"
)

// Reasons of an AddonDelivery's Ready.
const (
	// AddonsReadyReason: every add-on is Ready on the cluster.
	AddonsReadyReason = "AddonsReady"
	// WaitingForClusterReason: the cluster has not answered yet; the hub makes nothing before it does.
	WaitingForClusterReason = "WaitingForCluster"
	// RegistrationNotFoundReason: the registration does not exist; the add-ons stay as they are.
	RegistrationNotFoundReason = "RegistrationNotFound"
	// IdentityForbiddenReason: the registration may not choose a ServiceAccount in the set's namespace.
	IdentityForbiddenReason = "IdentityForbidden"
	// RevisionNotFoundReason: the revision that the delivery names does not exist; the add-ons stay as they are.
	RevisionNotFoundReason = "RevisionNotFound"
	// RenderFailedReason: an expression of the set fails for this cluster, also without the variables and overrides
	// of the cluster's owner. The add-ons concerned stay on the cluster as they are.
	RenderFailedReason = "RenderFailed"
	// FactUnknownReason of Ready, and of an add-on that is WaitingForCluster: an expression rests on a fact about the cluster that the hub
	// does not know yet, and which the message names. What is delivered stays as it is; it goes on by itself when the fact is known.
	FactUnknownReason = "FactUnknown"
	// ReadFailedReason: the hub could not read an object that it needs to render the delivery. It tries again; until
	// then the add-ons stay as they are.
	ReadFailedReason = "ReadFailed"
	// FluxObjectsInFolderReason: a Kustomization's folder holds Flux objects, and the cluster has no Flux.
	FluxObjectsInFolderReason = "FluxObjectsInFolder"
	// SourceNotFoundReason of Ready, and of an add-on: Flux waits for a source or chart that does not exist, and that the hub does not
	// make. The add-on is Progressing for half a minute, and then Failed. It goes on by itself when the source is made.
	SourceNotFoundReason = "SourceNotFound"
	// TeamForbiddenReason: an add-on of a Team needs a right that the Team does not have on the cluster.
	TeamForbiddenReason = "TeamForbidden"
	// DefaultServiceAccountReason: Flux impersonates a ServiceAccount that no add-on names, and the cluster refuses that.
	DefaultServiceAccountReason = "DefaultServiceAccount"
	// RemovalsHeldReason: the set's removal guard has not granted a removal or a reinstallation.
	RemovalsHeldReason = "RemovalsHeld"
	// NotFromAddonSetReason: the hub did not make this delivery: its name, or the UID of its set, differs from what
	// the hub gives. The hub makes and removes nothing for it.
	NotFromAddonSetReason = "NotFromAddonSet"
	// AddonSetNotFoundReason: the delivery's namespace has no AddonSet of that name. The hub makes nothing for the
	// delivery, and its add-ons stay as they are.
	AddonSetNotFoundReason = "AddonSetNotFound"
	// NamespaceTakenReason: another Team, or the platform, has a namespace that a Team claims, on the hub or on a cluster.
	NamespaceTakenReason = "NamespaceTaken"
	// NotOwnedReason: an object exists under the name of one that the hub would make, and it is not the hub's.
	NotOwnedReason = "NotOwned"
	// OutOfReachReason: sets in that namespace may not deliver to that cluster. The hub makes nothing for the
	// delivery.
	OutOfReachReason = "OutOfReach"
	// NotSelectedReason: the AddonSet does not select the cluster, or that is being unregistered, and the hub has made
	// nothing there yet. It makes nothing.
	NotSelectedReason = "NotSelected"
	// FrozenReason: a hub with another version of the renderer made the revision. Existing objects stay as they are
	// until the set's rollout comes to the cluster. The present renderer makes those that are missing.
	FrozenReason = "Frozen"
)

// Reasons of events that no condition tells of. Every other event has as its reason the type of its condition, or the reason of that.
const (
	RegisteredEvent        = "Registered"
	NotRegisteredEvent     = "NotRegistered"
	LabelConflictEvent     = "LabelConflict"
	NoProfileEvent         = "NoClusterProfile"
	KubeConfigChangedEvent = "KubeConfigChanged"
	ClusterReplacedEvent   = "ClusterReplaced"
	HeldEvent              = "NothingIsRemoved"
	ResumedEvent           = "Resumed"
	DrainCancelledEvent    = "DrainCancelled"
	RevisionCreatedEvent   = "RevisionCreated"
	RemovalsApprovedEvent  = "RemovalsApproved"
	AddonRemovedEvent      = "AddonRemoved"
	AddonOrphanedEvent     = "AddonOrphaned"
	AddonTakenOverEvent    = "AddonTakenOver"
	AddonFailedEvent       = "AddonFailed"
	AddonRecoveredEvent    = "AddonRecovered"
	// TokenFailedEvent: there is no token of a cluster, for a Team or for the hub itself. The message says why. The hub tries again.
	TokenFailedEvent = "TokenFailed"
	DeliveredEvent   = "Delivered"

	RolloutStartedEvent = "RolloutStarted"
	WaveStartedEvent    = "WaveStarted"
	RolloutWaitsEvent   = "RolloutWaits"
	// RollbackEvent: clusters get an older revision again, or have it.
	RollbackEvent = "Rollback"
	// DeliveryMadeAgainEvent: a user deleted a delivery that its set wants. The hub makes it again, and nothing is
	// removed.
	DeliveryMadeAgainEvent = "DeliveryMadeAgain"
)
