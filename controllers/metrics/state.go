// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/status"
)

// The states of a registration. Each registration is in one of them: the first that is true of it.
const (
	stateUnregistering     = "Unregistering"
	statePaused            = "Paused"
	statePending           = "Pending"
	stateInvalidKubeConfig = "InvalidKubeConfig"
	stateMaintenance       = "Maintenance"
	stateUnreachable       = "Unreachable"
	stateDraining          = "Draining"
	stateIdle              = "Idle"
	stateAddonsFailed      = "AddonsFailed"
	stateProgressing       = "Progressing"
	stateReady             = "Ready"
	stateStalled           = "Stalled"
	stateTerminating       = "Terminating"
	stateDuplicate         = "Duplicate"
	// stateOther is for states that this hub does not know: another version of it may have written them.
	stateOther = "Other"
)

var registrationStates = []string{
	stateUnregistering, stateDuplicate, statePaused, statePending, stateInvalidKubeConfig, stateMaintenance, stateUnreachable,
	stateDraining, stateIdle,
	stateAddonsFailed, stateProgressing, stateReady,
}

// registrationState checks in the order in which the registration controller sums up Ready.
func registrationState(reg *hubv1.ClusterRegistration) string {
	valid, reachable := status.Find(reg, hubv1.KubeConfigValidCondition), status.Find(reg, hubv1.ReachableCondition)
	suspended := status.Find(reg, hubv1.SuspendedCondition)
	switch {
	case status.Goes(reg), status.IsTrue(reg, hubv1.UnregisteringCondition):
		return stateUnregistering
	case reg.Status.DuplicateOf != nil:
		return stateDuplicate
	case suspended != nil && !hubv1.Tripped(suspended.Reason):
		return statePaused
	case valid == nil, valid.Reason == hubv1.KubeConfigNotReadyReason:
		return statePending
	case valid.Status != metav1.ConditionTrue:
		return stateInvalidKubeConfig
	case !reg.Status.UsesWorkloadIdentity() && (reachable == nil || reachable.Status == metav1.ConditionUnknown):
		return statePending
	case reachable != nil && reachable.Status == metav1.ConditionFalse && status.IsTrue(reg, hubv1.MaintenanceCondition):
		return stateMaintenance
	case reachable != nil && reachable.Status == metav1.ConditionFalse:
		return stateUnreachable
	case suspended != nil: // by the breaker: it answers the hub, and not Flux
		return stateUnreachable
	case status.IsTrue(reg, hubv1.DrainingCondition):
		return stateDraining
	}
	switch reason := status.Reason(reg, hubv1.ReadyCondition); {
	case reason == hubv1.NoAddonSetReason:
		return stateIdle
	case reason == hubv1.AddonsFailedReason:
		return stateAddonsFailed
	case status.IsTrue(reg, hubv1.ReadyCondition):
		return stateReady
	}
	return stateProgressing
}

var setStates = []string{
	stateTerminating, stateStalled, hubv1.NoClusterMatchesReason, stateReady, stateProgressing, stateAddonsFailed, hubv1.AddonsLostReason,
	hubv1.RolloutFailedReason,
}

var rolloutPhases = []hubv1.RolloutPhase{
	hubv1.RolloutProgressing, hubv1.RolloutSoaking, hubv1.RolloutWaitingForApproval, hubv1.RolloutWaitingForWindow, hubv1.RolloutPaused,
	hubv1.RolloutFailed, hubv1.RolloutRollingBack, hubv1.RolloutRolledBack, hubv1.RolloutDone,
}

func setState(set *hubv1.AddonSet) string {
	switch {
	case set.DeletionTimestamp != nil:
		return stateTerminating
	case status.IsTrue(set, hubv1.StalledCondition):
		return stateStalled
	case status.Reason(set, hubv1.ReadyCondition) == hubv1.NoClusterMatchesReason:
		return hubv1.NoClusterMatchesReason
	case status.IsTrue(set, hubv1.ReadyCondition):
		return stateReady
	case status.Reason(set, hubv1.ReadyCondition) == hubv1.AddonsFailedReason:
		return stateAddonsFailed
	case status.Reason(set, hubv1.ReadyCondition) == hubv1.AddonsLostReason:
		return hubv1.AddonsLostReason
	case status.Reason(set, hubv1.ReadyCondition) == hubv1.RolloutFailedReason:
		return hubv1.RolloutFailedReason
	}
	return stateProgressing
}

// deliveryStates are the reasons of an AddonDelivery's Ready.
var deliveryStates = []string{
	hubv1.AddonsReadyReason, hubv1.ProgressingReason, hubv1.AddonsFailedReason, hubv1.RenderFailedReason, hubv1.ReadFailedReason,
	hubv1.FactUnknownReason, hubv1.SourceNotFoundReason, hubv1.OriginMissingReason,
	hubv1.FluxObjectsInFolderReason, hubv1.TeamForbiddenReason, hubv1.DefaultServiceAccountReason,
	hubv1.IdentityForbiddenReason, hubv1.InvalidSpecReason, hubv1.RegistrationNotFoundReason, hubv1.RevisionNotFoundReason, hubv1.FrozenReason,
	hubv1.AddonsLostReason, hubv1.SuspendedReason, hubv1.RemovalsHeldReason, hubv1.WaitingForClusterReason,
	hubv1.TerminatingReason, hubv1.ClusterUnreachableReason, hubv1.CredentialRefusedReason, hubv1.FluxHangsReason, hubv1.PausedReason,
	hubv1.ClusterSleepingReason, hubv1.ClusterWriteLimitedReason, hubv1.ClusterMigratingReason, hubv1.DuplicateReason,
}

func deliveryState(d *hubv1.AddonDelivery) string {
	reason := status.Reason(d, hubv1.ReadyCondition)
	switch {
	case reason == "":
		return hubv1.ProgressingReason // it was made a moment ago
	case !slices.Contains(deliveryStates, reason):
		return stateOther
	}
	return reason
}

var addonStates = func() []string {
	var out []string
	for _, s := range []hubv1.AddonState{
		hubv1.AddonReady, hubv1.AddonProgressing, hubv1.AddonWaitingForDependency, hubv1.AddonWaitingForCluster, hubv1.AddonWaitingForNodes,
		hubv1.AddonPaused, hubv1.AddonUnreachable, hubv1.AddonExcluded, hubv1.AddonFailed, hubv1.AddonSuspended, hubv1.AddonLostTo,
		hubv1.AddonNotOwned, hubv1.AddonHeld, hubv1.AddonRemoving, hubv1.AddonOrphaned,
	} {
		out = append(out, string(s))
	}
	return out
}()
