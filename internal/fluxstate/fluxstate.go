// SPDX-License-Identifier: Apache-2.0

// Package fluxstate reads the state of a Flux object, and reduces it to the few words that an AddonDelivery needs. It
// is pure.
package fluxstate

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client" //nolint:depguard // the Object interface

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// State is the state of a Flux object. States are comparable: if two are equal, nothing of substance has changed.
type State struct {
	Generation int64
	// Ready is the status of the Ready condition, Unknown if there is none.
	Ready metav1.ConditionStatus
	// ReadyGeneration is the generation that Ready describes. Flux's condition may name a newer one: if the spec changes
	// while Flux is at work on the one before, the patch of the conditions takes the generation of the latest object
	// (fluxcd/pkg/runtime/patch, patchStatusConditions).
	ReadyGeneration int64
	// Observed is true if Flux has finished with Generation once: status.observedGeneration. A new object has none.
	Observed bool
	Reason   string
	Message  string
	// Begun is true if Flux has had what Generation refers to, and has begun to apply it. If that failed, it is true if Flux had applied
	// it, and waited for what it has applied: a chart whose templates fail, and a folder that does not build, have not begun.
	Begun bool
	// Version is the chart version or source revision that Flux last applied.
	Version   string
	Suspended bool
	Deleting  bool
	// DefaultAccount says, in words, which ServiceAccount Flux impersonates that the object does not name, and that the
	// cluster refuses: Flux's flag --default-service-account. Empty for none.
	DefaultAccount string
}

// Of returns the state of a HelmRelease or Kustomization.
func Of(obj client.Object) State {
	s := State{Generation: obj.GetGeneration(), Deleting: !obj.GetDeletionTimestamp().IsZero(), Ready: metav1.ConditionUnknown}
	var conditions []metav1.Condition
	// Success is of the generation that Flux has read, and failure of an action of the one that it has tried.
	observed, tried := int64(0), int64(math.MaxInt64)
	named := false // a ServiceAccount
	switch o := obj.(type) {
	case *helmv2.HelmRelease:
		conditions, s.Suspended, named = o.Status.Conditions, o.Spec.Suspend, o.Spec.ServiceAccountName != ""
		observed, tried = o.Status.ObservedGeneration, triedGeneration(o)
		if latest := o.Status.History.Latest(); latest != nil {
			s.Version = latest.ChartVersion
		}
	case *kustomizev1.Kustomization:
		conditions, s.Suspended, named = o.Status.Conditions, o.Spec.Suspend, o.Spec.ServiceAccountName != ""
		observed = o.Status.ObservedGeneration
		s.Version = o.Status.LastAppliedRevision
	}
	s.Observed = observed == s.Generation
	if c := meta.FindStatusCondition(conditions, hubv1.ReadyCondition); c != nil {
		s.take(c)
		switch {
		case c.Status == metav1.ConditionFalse && atWork[c.Reason]:
			s.Ready = metav1.ConditionUnknown
		case c.Status == metav1.ConditionFalse && ofAction(conditions, c):
			s.ReadyGeneration = min(s.ReadyGeneration, tried)
		case c.Status == metav1.ConditionTrue:
			s.ReadyGeneration = min(s.ReadyGeneration, observed)
		}
	}
	if s.Ready == metav1.ConditionUnknown {
		// Flux sets Unknown at the start of every reconcile, also of a routine one, with a text that changes.
		s.Reason, s.Message = "", ""
		failure, success := lastFailure(conditions, s.Generation), released(conditions, s.Generation)
		switch {
		case failure != nil && tried >= s.Generation:
			s.take(failure)
			s.Ready = metav1.ConditionFalse // a successful rollback is True
		case success != nil && s.Observed:
			s.take(success)
		}
	}
	s.Begun = hasBegun(obj, &s)
	if !named {
		s.DefaultAccount = defaultAccount(obj.GetNamespace(), s.Message)
	}
	return s
}

// Finalizer is Flux's own, the same for both kinds.
const Finalizer = kustomizev1.KustomizationFinalizer

// take copies the reason and message of a condition.
func (s *State) take(c *metav1.Condition) {
	s.Ready, s.Reason, s.ReadyGeneration = c.Status, c.Reason, c.ObservedGeneration
	s.Message = fleeting.ReplaceAllString(buildFolder.ReplaceAllString(c.Message, ""), "")
}

// atWork are reasons of Ready=False that are no failure: Flux is still working, or starts again.
var atWork = map[string]bool{
	"HealthCheckCanceled": true, // something newer has come
	"PendingRelease":      true, // helm-controller was restarted in the middle of an action
	"UninstallSucceeded":  true, // the first half of a reinstall
}

// Remediated and Released are the conditions of a HelmRelease that Ready sums up, in the order in which
// helm-controller reads them.
const (
	Remediated = helmv2.RemediatedCondition
	Released   = helmv2.ReleasedCondition
)

// triedGeneration returns the generation at which the last action of a HelmRelease failed, if one has. helm-controller
// sets lastAttemptedGeneration and forgets its failures before the first action for a generation, in one write, and
// counts the failure with the action (reconcileRelease, MustResetFailures).
func triedGeneration(o *helmv2.HelmRelease) int64 {
	switch {
	case o.Status.LastAttemptedGeneration == 0:
		return math.MaxInt64 // it has tried nothing, and what failed is no action
	case o.Status.Failures == 0:
		return o.Status.LastAttemptedGeneration - 1
	}
	return o.Status.LastAttemptedGeneration
}

// ofAction returns whether Ready sums up a failed action of Helm.
func ofAction(conditions []metav1.Condition, ready *metav1.Condition) bool {
	return slices.ContainsFunc(conditions, func(c metav1.Condition) bool {
		return (c.Type == Remediated || c.Type == Released) && c.Reason == ready.Reason
	})
}

// hasBegun returns Begun. kustomize-controller sets Ready=Unknown when it has the artifact. helm-controller sets lastAttemptedGeneration
// before the first action, and its history names what it has stored on the cluster, which is nothing if the templates fail.
func hasBegun(obj client.Object, s *State) bool {
	switch o := obj.(type) {
	case *helmv2.HelmRelease:
		latest, tried := o.Status.History.Latest(), o.Status.LastAttemptedGeneration == s.Generation
		return tried && (s.Ready != metav1.ConditionFalse || latest != nil &&
			latest.ChartVersion == o.Status.LastAttemptedRevision && latest.ConfigDigest == o.Status.LastAttemptedConfigDigest)
	case *kustomizev1.Kustomization:
		return s.ReadyGeneration == s.Generation && (s.Ready != metav1.ConditionFalse ||
			s.Reason == fluxmeta.HealthCheckFailedReason || s.Reason == fluxmeta.ReconciliationFailedReason)
	}
	return false
}

// released returns the condition of a HelmRelease that has been released at a generation; nil if it has not. If something on the
// cluster changes back what Helm has applied, helm-controller corrects that at each look, and Ready is Unknown for good.
func released(conditions []metav1.Condition, generation int64) *metav1.Condition {
	c := meta.FindStatusCondition(conditions, Released)
	if c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration != generation {
		return nil
	}
	return c
}

// lastFailure returns the condition of the failure of the last attempt at a generation of a HelmRelease, nil if it
// did not fail. helm-controller leaves these conditions as they are until the next attempt is over, and copies them
// into Ready at the end of each attempt. While it tries again, Ready is Unknown, and these conditions still say why
// it has to try again.
func lastFailure(conditions []metav1.Condition, generation int64) *metav1.Condition {
	if c := meta.FindStatusCondition(conditions, Remediated); c != nil && c.ObservedGeneration == generation {
		return c
	}
	c := meta.FindStatusCondition(conditions, Released)
	if c == nil || c.ObservedGeneration != generation || c.Status != metav1.ConditionFalse || atWork[c.Reason] {
		return nil
	}
	return c
}

// OfAttempt returns whether a Kustomization failed in an attempt that Flux began with Ready=Unknown. Before it begins, it fails for
// want of its source or of a dependency (kustomize-controller, Reconcile and reconcile).
func OfAttempt(s State) bool { return s.Ready == metav1.ConditionFalse && attempted[s.Reason] }

var attempted = map[string]bool{fluxmeta.ReconciliationFailedReason: true, fluxmeta.HealthCheckFailedReason: true,
	fluxmeta.BuildFailedReason: true, fluxmeta.PruneFailedReason: true}

// Failing returns whether Flux reports a failure for the present generation.
func Failing(s State) bool {
	if s.Ready != metav1.ConditionFalse || s.ReadyGeneration != s.Generation || s.Suspended || s.Deleting {
		return false
	}
	state, _ := failure(s)
	return state == hubv1.AddonFailed
}

// TriesAgain returns whether the status of an add-on before holds for the state of its object: Flux had failed, and is trying again. An
// earlier process of the hub may have seen the failure. applied is the object's generation after the hub's last write.
func TriesAgain(s State, before *hubv1.AddonStatus, applied int64) bool {
	return s.Ready == metav1.ConditionUnknown && before.State == hubv1.AddonFailed && before.LastAttempt != "" &&
		before.AppliedGeneration == applied && s.Generation == applied && s.ReadyGeneration == s.Generation
}

// Attempt returns how Flux's last attempt failed, if the state of the add-on says that it did.
func Attempt(state hubv1.AddonState, s State) hubv1.AttemptResult {
	switch {
	case state != hubv1.AddonFailed:
		return ""
	case Blameless(s):
		return hubv1.AttemptUnreached
	}
	return hubv1.AttemptFailed
}

// buildFolder is kustomize-controller's build folder. Each attempt has a new one, which would make each failure a new
// message. The rest of the path is the author's.
var buildFolder = regexp.MustCompile(`/\S*/kustomization-[0-9]+/`)

// fleeting matches what differs between two attempts to connect: the port at our end, and a cloud's ID of the
// request.
var fleeting = regexp.MustCompile(`(?:\d+\.\d+\.\d+\.\d+|\[[0-9a-f:]+\]):\d+->|(?i:,? ?request ?id: [0-9a-f-]{36})`)

// noNodes matches signs that a pod waits to be scheduled.
var noNodes = regexp.MustCompile(`(?i)deadline exceeded|time-?d? ?out|not ready|InProgress`)

// NodesGrace is how long an add-on may be progressing before it counts as one that lacks a node. Much of what is delivered
// runs nothing, and is Ready within seconds: a tool that waits for it must not be told that there is nothing to wait for.
const NodesGrace = 30 * time.Second

// WaitsForNodes returns whether an add-on that is not Ready, and has been progressing for so long, may just lack a node to
// run on. Flux has to have begun with it: a node helps no chart that does not exist.
func WaitsForNodes(state hubv1.AddonState, s State, progressing time.Duration) bool {
	return s.Begun && (state == hubv1.AddonProgressing && progressing >= NodesGrace ||
		state == hubv1.AddonFailed && noNodes.MatchString(s.Message))
}

// Addon returns the state of an add-on and a message, from the state of its object and its status before. applied is
// the object's generation after the hub's last write.
func Addon(before hubv1.AddonStatus, s State, applied int64) (hubv1.AddonState, string) {
	current := s.ReadyGeneration == s.Generation && s.Generation == applied
	switch {
	case s.Deleting:
		return hubv1.AddonProgressing, "the Flux object is being deleted, and not by the hub; it will be made again"
	case s.Suspended:
		return hubv1.AddonSuspended, "suspended; `flux resume` lets it go on"
	case s.Ready == metav1.ConditionTrue && current:
		return hubv1.AddonReady, ""
	case s.Ready == metav1.ConditionUnknown && s.Observed && before.State == hubv1.AddonReady && before.AppliedGeneration == applied &&
		s.Generation == applied:
		return hubv1.AddonReady, "" // a routine reconcile of something that was Ready
	case s.Ready == metav1.ConditionFalse && current:
		return failure(s)
	}
	return hubv1.AddonProgressing, ""
}

// waiting are Flux's reasons for waiting: the source or chart has not been fetched.
var waiting = map[string]bool{"SourceNotReady": true, "HelmChartNotReady": true, "ArtifactFailed": true, "Progressing": true,
	"ProgressingWithRetry": true}

// Waits returns whether Flux waits for the source or chart of an object, which may not exist.
func Waits(s State) bool { return s.Ready == metav1.ConditionFalse && waiting[s.Reason] }

// noPath is kustomize-controller's message when the source has no such folder. It has the same reason as a source
// that was not fetched, but waiting does not help.
const noPath = "kustomization path not found"

func failure(s State) (hubv1.AddonState, string) {
	message := Words(s.Reason, s.Message)
	switch {
	case s.Reason == "DependencyNotReady":
		return hubv1.AddonWaitingForDependency, message
	case waiting[s.Reason] && !strings.HasPrefix(s.Message, noPath):
		return hubv1.AddonProgressing, message
	}
	return hubv1.AddonFailed, message
}
