// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/assembly"
	"github.com/chandler-hub/chandler/internal/fluxstate"
	"github.com/chandler-hub/chandler/internal/guard"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/report"
	"github.com/chandler-hub/chandler/internal/teardown"
)

// TestAddonArrives: the status of an add-on that its delivery wants, by the step, its outcome and the object.
func TestAddonArrives(t *testing.T) {
	const noFlux = `no matches for kind "HelmRelease" in version "helm.toolkit.fluxcd.io/v2"`
	failing := func(reason, message string) func(*report.Object) {
		return func(o *report.Object) {
			o.State.Ready, o.State.Reason, o.State.Message = metav1.ConditionFalse, reason, message
		}
	}
	progressing := func(o *report.Object) { o.State.Ready, o.State.Begun = metav1.ConditionUnknown, true }
	noVersion := fluxstate.Refusal{Source: "HelmChart a/web", Reason: "InvalidChartReference", Message: "no chart with version 9.9.9"}
	refused := func(o *report.Object) {
		failing("SourceNotReady", "HelmChart 'a/web' is not ready")(o)
		o.Refusal = noVersion
	}
	const noVersionMessage = "Flux could not fetch HelmChart a/web: no chart with version 9.9.9"
	began := func(ago time.Duration) *hubv1.AddonStatus {
		since := metav1.NewTime(clusterOf().Now.Add(-ago))
		return &hubv1.AddonStatus{Name: "a", State: hubv1.AddonProgressing, Since: &since}
	}
	for name, tc := range map[string]struct {
		verb plan.Verb
		out  report.Outcome
		// none is true if there is no object; change changes it.
		none      bool
		change    func(*report.Object)
		suspended string
		noNodes   bool
		unprobed  bool
		before    *hubv1.AddonStatus
		// want has no Name, Kind and Object, which are the step's.
		want hubv1.AddonStatus
	}{
		"Created": {
			verb: plan.Create, out: report.Outcome{Applied: 1}, none: true,
			want: hubv1.AddonStatus{State: hubv1.AddonProgressing, AppliedGeneration: 1, Message: "why"},
		},
		"Ready": {
			verb: plan.Keep, out: report.Outcome{Applied: 3},
			want: hubv1.AddonStatus{State: hubv1.AddonReady, AppliedGeneration: 3, Version: "1.0.0"},
		},
		"Updated": {
			verb: plan.Update, out: report.Outcome{Applied: 4},
			want: hubv1.AddonStatus{State: hubv1.AddonProgressing, AppliedGeneration: 4, Version: "1.0.0"},
		},
		"DeletedWhileItIsSuspended": { // with its namespace, for example
			verb: plan.AwaitResume, none: true,
			before: &hubv1.AddonStatus{Name: "a", Kind: addonKey.Kind, Object: addonKey.Name, State: hubv1.AddonPaused, Version: "1.0.0", AppliedGeneration: 3},
			want:   hubv1.AddonStatus{State: hubv1.AddonOrphaned, Reason: hubv1.SuspendedReason, Version: "1.0.0", Message: teardown.DeletedSuspended},
		},
		"StillGone": {
			verb: plan.AwaitResume, none: true,
			before: &hubv1.AddonStatus{Name: "a", Kind: addonKey.Kind, Object: addonKey.Name, State: hubv1.AddonOrphaned, Reason: hubv1.SuspendedReason, Version: "1.0.0", Message: "told"},
			want:   hubv1.AddonStatus{State: hubv1.AddonOrphaned, Reason: hubv1.SuspendedReason, Version: "1.0.0", Message: "told"},
		},
		"FluxFails": {
			verb: plan.Keep, out: report.Outcome{Applied: 3}, change: failing("InstallFailed", "no"),
			want: hubv1.AddonStatus{State: hubv1.AddonFailed, Reason: "InstallFailed", AppliedGeneration: 3, LastAttempt: hubv1.AttemptFailed, Message: `InstallFailed: Flux says, perhaps in the cluster's words: "no"`, Version: "1.0.0"},
		},
		"FluxTriesAgainAfterARestart": {
			verb: plan.Keep, out: report.Outcome{Applied: 3}, change: progressing,
			before: &hubv1.AddonStatus{Name: "a", State: hubv1.AddonFailed, Reason: "HealthCheckFailed", AppliedGeneration: 3, LastAttempt: hubv1.AttemptFailed, Message: `HealthCheckFailed: Flux says, perhaps in the cluster's words: "no"`},
			want:   hubv1.AddonStatus{State: hubv1.AddonFailed, Reason: "HealthCheckFailed", AppliedGeneration: 3, LastAttempt: hubv1.AttemptFailed, Message: `HealthCheckFailed: Flux says, perhaps in the cluster's words: "no"`, Version: "1.0.0"},
		},
		"FluxTriesAgainAfterARestartForAReasonToMend": {
			verb: plan.Keep, out: report.Outcome{Applied: 3}, change: progressing,
			before: &hubv1.AddonStatus{Name: "a", State: hubv1.AddonFailed, Reason: hubv1.FluxObjectsInFolderReason, AppliedGeneration: 3, LastAttempt: hubv1.AttemptFailed, Message: "the folder holds a HelmRelease"},
			want:   hubv1.AddonStatus{State: hubv1.AddonFailed, Reason: hubv1.FluxObjectsInFolderReason, AppliedGeneration: 3, LastAttempt: hubv1.AttemptFailed, Message: "the folder holds a HelmRelease", Version: "1.0.0"},
		},
		"FluxFailsForAReasonToMend": {
			verb: plan.Keep, out: report.Outcome{Applied: 3}, change: failing("ReconciliationFailed", noFlux),
			want: hubv1.AddonStatus{State: hubv1.AddonFailed, Reason: hubv1.FluxObjectsInFolderReason, AppliedGeneration: 3, LastAttempt: hubv1.AttemptFailed, Version: "1.0.0",
				Message: "the folder holds a HelmRelease, which only Flux understands, and there is no Flux on the cluster: " +
					"write it as an add-on of the AddonSet instead, and let the path name plain manifests; or bring the cluster a Flux of its own, " +
					"as an add-on that this one depends on (examples/hub-spoke)"},
		},
		"FluxDoesNotReachTheCluster": {
			verb: plan.Keep, out: report.Outcome{Applied: 3}, change: failing("StateError", "cluster unreachable"), unprobed: true,
			want: hubv1.AddonStatus{State: hubv1.AddonUnreachable, AppliedGeneration: 3, Version: "1.0.0",
				Message: `StateError: Flux says, perhaps in the cluster's words: "cluster unreachable"`},
		},
		// The URL may stand far behind what a status has controller for.
		"FluxDoesNotReachTheClusterAndSaysMore": {
			verb: plan.Keep, out: report.Outcome{Applied: 3},
			change: failing("ReconciliationFailed", strings.Repeat("x", 400)+` Get "https://one/version": dial tcp: connection refused`),
			want: hubv1.AddonStatus{State: hubv1.AddonFailed, Reason: "ReconciliationFailed", AppliedGeneration: 3, Version: "1.0.0", LastAttempt: hubv1.AttemptUnreached,
				Message: `ReconciliationFailed: Flux says, perhaps in the cluster's words: "` + strings.Repeat("x", 232) + `…"`},
		},
		"FluxTriesAgainToReachTheCluster": {
			verb: plan.Keep, out: report.Outcome{Applied: 3}, change: progressing,
			before: &hubv1.AddonStatus{Name: "a", State: hubv1.AddonFailed, Reason: "StateError", AppliedGeneration: 3, Message: `StateError: Flux says, perhaps in the cluster's words: "no"`, LastAttempt: hubv1.AttemptUnreached},
			want:   hubv1.AddonStatus{State: hubv1.AddonFailed, Reason: "StateError", AppliedGeneration: 3, Message: `StateError: Flux says, perhaps in the cluster's words: "no"`, Version: "1.0.0", LastAttempt: hubv1.AttemptUnreached},
		},
		"SourceIsMissing": { // whether or not there is a node
			verb: plan.Keep, out: report.Outcome{Applied: 3}, noNodes: true, before: began(29 * time.Second),
			change: func(o *report.Object) {
				failing("ArtifactFailed", `could not get Source object: HelmChart.source.toolkit.fluxcd.io "web" not found`)(o)
				o.Lacks = true
			},
			want: hubv1.AddonStatus{State: hubv1.AddonProgressing, Reason: hubv1.SourceNotFoundReason, AppliedGeneration: 3, Version: "1.0.0",
				Message: `Flux waits for HelmChart "web", which does not exist, and which the hub does not make: make it, or have the AddonSet ` +
					`refer to one that exists`},
		},
		"SourceIsMissingForLong": {
			verb: plan.Keep, out: report.Outcome{Applied: 3}, before: began(30 * time.Second),
			change: func(o *report.Object) {
				failing("ArtifactFailed", `could not get Source object: HelmChart.source.toolkit.fluxcd.io "web" not found`)(o)
				o.Lacks = true
			},
			want: hubv1.AddonStatus{State: hubv1.AddonFailed, Reason: hubv1.SourceNotFoundReason, AppliedGeneration: 3, Version: "1.0.0",
				Message: `Flux waits for HelmChart "web", which does not exist, and which the hub does not make: make it, or have the AddonSet ` +
					`refer to one that exists`},
		},
		"SourceIsRefused": {
			verb: plan.Keep, out: report.Outcome{Applied: 3}, before: began(29 * time.Second), change: refused,
			want: hubv1.AddonStatus{State: hubv1.AddonProgressing, Reason: "InvalidChartReference", AppliedGeneration: 3, Version: "1.0.0",
				Message: noVersionMessage},
		},
		"SourceIsRefusedForLong": {
			verb: plan.Keep, out: report.Outcome{Applied: 3}, before: began(30 * time.Second), change: refused,
			want: hubv1.AddonStatus{State: hubv1.AddonFailed, Reason: "InvalidChartReference", AppliedGeneration: 3, Version: "1.0.0",
				Message: noVersionMessage},
		},
		"SourceIsRefusedStill": {
			verb: plan.Keep, out: report.Outcome{Applied: 3}, change: refused,
			before: &hubv1.AddonStatus{Name: "a", State: hubv1.AddonFailed, Reason: "InvalidChartReference", AppliedGeneration: 3, Message: noVersionMessage},
			want: hubv1.AddonStatus{State: hubv1.AddonFailed, Reason: "InvalidChartReference", AppliedGeneration: 3, Version: "1.0.0",
				Message: noVersionMessage},
		},
		"SourceIsRefusedOnAClusterWithoutNodes": {
			verb: plan.Keep, out: report.Outcome{Applied: 3}, noNodes: true, before: began(30 * time.Second), change: refused,
			want: hubv1.AddonStatus{State: hubv1.AddonFailed, Reason: "InvalidChartReference", AppliedGeneration: 3, Version: "1.0.0",
				Message: noVersionMessage},
		},
		"SourceWasRefused": { // and Flux has it now
			verb: plan.Keep, out: report.Outcome{Applied: 3}, change: progressing,
			before: &hubv1.AddonStatus{Name: "a", State: hubv1.AddonFailed, Reason: "InvalidChartReference", AppliedGeneration: 3, Message: noVersionMessage},
			want:   hubv1.AddonStatus{State: hubv1.AddonProgressing, AppliedGeneration: 3, Version: "1.0.0"},
		},
		"SourceOfWhatIsReplacedWasRefused": {
			verb: plan.Update, out: report.Outcome{Applied: 4}, change: refused, before: began(time.Hour),
			want: hubv1.AddonStatus{State: hubv1.AddonProgressing, AppliedGeneration: 4, Version: "1.0.0"},
		},
		"SourceIsMadeAgain": {
			verb: plan.Keep, out: report.Outcome{Applied: 3},
			change: failing("ArtifactFailed", `HelmChart.source.toolkit.fluxcd.io "web" not found`),
			want: hubv1.AddonStatus{State: hubv1.AddonProgressing, AppliedGeneration: 3, Version: "1.0.0",
				Message: `ArtifactFailed: HelmChart.source.toolkit.fluxcd.io "web" not found`},
		},
		"SourceIsNotReady": { // the hub knows only the sources that it made
			verb: plan.Keep, out: report.Outcome{Applied: 3},
			change: func(o *report.Object) {
				failing("SourceNotReady", "GitRepository 'a/b' is not ready: no artifact")(o)
				o.Lacks = true
			},
			want: hubv1.AddonStatus{State: hubv1.AddonProgressing, AppliedGeneration: 3, Version: "1.0.0",
				Message: "SourceNotReady: GitRepository 'a/b' is not ready: no artifact"},
		},
		"SourceIsMissingOfWhatIsReplaced": { // Flux's word is of the spec before
			verb: plan.Update, out: report.Outcome{Applied: 4},
			change: func(o *report.Object) {
				failing("ArtifactFailed", `HelmChart.source.toolkit.fluxcd.io "web" not found`)(o)
				o.Lacks = true
			},
			want: hubv1.AddonStatus{State: hubv1.AddonProgressing, AppliedGeneration: 4, Version: "1.0.0"},
		},
		"NoNodeAndFluxHasJustBegun": {
			verb: plan.Keep, out: report.Outcome{Applied: 3}, change: progressing, noNodes: true, before: began(29 * time.Second),
			want: hubv1.AddonStatus{State: hubv1.AddonProgressing, AppliedGeneration: 3, Version: "1.0.0"},
		},
		"NoNode": {
			verb: plan.Keep, out: report.Outcome{Applied: 3}, change: progressing, noNodes: true, before: began(30 * time.Second),
			want: hubv1.AddonStatus{State: hubv1.AddonWaitingForNodes, AppliedGeneration: 3, Message: "the cluster has no node yet", Version: "1.0.0"},
		},
		"NoNodeAndFluxHasNotBegun": {
			verb: plan.Keep, out: report.Outcome{Applied: 3}, noNodes: true, before: began(time.Hour),
			change: failing("SourceNotReady", "GitRepository 'a/b' is not ready"),
			want: hubv1.AddonStatus{State: hubv1.AddonProgressing, AppliedGeneration: 3, Version: "1.0.0",
				Message: "SourceNotReady: GitRepository 'a/b' is not ready"},
		},
		"NoNodeAndTheTemplatesFail": {
			verb: plan.Keep, out: report.Outcome{Applied: 3}, noNodes: true,
			change: failing("InstallFailed", "execution error at (web/templates/a.yaml:1): not ready for this"),
			want: hubv1.AddonStatus{State: hubv1.AddonFailed, Reason: "InstallFailed", AppliedGeneration: 3, LastAttempt: hubv1.AttemptFailed, Version: "1.0.0",
				Message: `InstallFailed: Flux says, perhaps in the cluster's words: "execution error at (web/templates/a.yaml:1): not ready for this"`},
		},
		"NoNodeStill": {
			verb: plan.Keep, out: report.Outcome{Applied: 3}, change: progressing, noNodes: true,
			before: &hubv1.AddonStatus{Name: "a", State: hubv1.AddonWaitingForNodes},
			want:   hubv1.AddonStatus{State: hubv1.AddonWaitingForNodes, AppliedGeneration: 3, Message: "the cluster has no node yet", Version: "1.0.0"},
		},
		"NoNodeAndATimeout": {
			verb: plan.Keep, out: report.Outcome{Applied: 3}, noNodes: true,
			change: func(o *report.Object) { failing("InstallFailed", "context deadline exceeded")(o); o.State.Begun = true },
			want: hubv1.AddonStatus{State: hubv1.AddonWaitingForNodes, AppliedGeneration: 3, Version: "1.0.0",
				Message: `the cluster has no node yet; InstallFailed: Flux says, perhaps in the cluster's words: "context deadline exceeded"`},
		},
		"Resumed": {
			verb: plan.Resume, out: report.Outcome{Applied: 3}, change: func(o *report.Object) { o.Held, o.State.Suspended = true, true },
			want: hubv1.AddonStatus{State: hubv1.AddonProgressing, AppliedGeneration: 3, Message: "it is being resumed", Version: "1.0.0"},
		},
		"Paused": {
			verb: plan.Suspend, out: report.Outcome{Applied: 3}, suspended: hubv1.PausedReason,
			want: hubv1.AddonStatus{State: hubv1.AddonPaused, AppliedGeneration: 3, Message: "why", Version: "1.0.0"},
		},
		"Silent": {
			verb: plan.AwaitResume, out: report.Outcome{Applied: 3}, suspended: hubv1.ClusterUnreachableReason,
			want: hubv1.AddonStatus{State: hubv1.AddonUnreachable, AppliedGeneration: 3, Message: "why", Version: "1.0.0"},
		},
		"ClusterHasNotAnswered": {
			verb: plan.AwaitCluster, none: true,
			want: hubv1.AddonStatus{State: hubv1.AddonWaitingForCluster, Message: "why"},
		},
		"Dependency": {
			verb: plan.AwaitDependency, none: true,
			want: hubv1.AddonStatus{State: hubv1.AddonWaitingForDependency, Message: "why"},
		},
		"DependencyOfAChange": {
			verb: plan.AwaitDependency,
			want: hubv1.AddonStatus{State: hubv1.AddonWaitingForDependency, AppliedGeneration: 3, Message: "why", Version: "1.0.0"},
		},
		"ReleaseIsTaken": {
			verb: plan.AwaitRemoval,
			want: hubv1.AddonStatus{State: hubv1.AddonProgressing, AppliedGeneration: 3, Message: "why", Version: "1.0.0"},
		},
		"SomebodyDeletesIt": {
			verb: plan.AwaitRemoval, change: func(o *report.Object) { o.Deleting = true },
			want: hubv1.AddonStatus{State: hubv1.AddonProgressing, Message: "why", Version: "1.0.0"},
		},
		"AnotherDeliveryHasTheName": {
			verb: plan.AwaitRemoval, change: func(o *report.Object) { o.Delivery = other.Name },
			want: hubv1.AddonStatus{State: hubv1.AddonProgressing, Message: "why"},
		},
		"ReinstallIsHeld": {
			verb: plan.Ask,
			want: hubv1.AddonStatus{State: hubv1.AddonHeld, Reason: hubv1.ReinstallReason, AppliedGeneration: 3, Message: "why", Version: "1.0.0",
				Removal: guard.Reinstalled("uid", plan.Place{Namespace: "new"}.String())},
		},
		"NotOwned": {
			verb: plan.Create, out: report.Outcome{Err: errBoom, NotOwned: true}, none: true,
			want: hubv1.AddonStatus{State: hubv1.AddonNotOwned, Message: "boom; it is left alone. Rename the add-on, or remove that object"},
		},
		"NoCopy": {
			verb: plan.Create, out: report.Outcome{Err: errBoom, NoCopy: true}, none: true,
			want: hubv1.AddonStatus{State: hubv1.AddonWaitingForCluster, Message: "boom"},
		},
		"NotCreated": {
			verb: plan.Create, out: report.Outcome{Err: errBoom}, none: true,
			want: hubv1.AddonStatus{State: hubv1.AddonFailed, Message: "boom"},
		},
		"NotTakenThisTime": {
			verb: plan.Update, out: report.Outcome{Err: errBoom, Passes: true},
			want: hubv1.AddonStatus{State: hubv1.AddonFailed, Reason: hubv1.NotWrittenReason, AppliedGeneration: 3, Message: "boom", Version: "1.0.0"},
		},
		"NotTakenSinceItHasChanged": { // the next try comes at once, and nobody has to know
			verb: plan.Update, out: report.Outcome{Err: errBoom, Passes: true, Conflict: true},
			want: hubv1.AddonStatus{State: hubv1.AddonProgressing, AppliedGeneration: 3, Message: "boom", Version: "1.0.0"},
		},
		"NotUpdated": {
			verb: plan.Update, out: report.Outcome{Err: errBoom},
			want: hubv1.AddonStatus{State: hubv1.AddonFailed, AppliedGeneration: 3, Message: "boom", Version: "1.0.0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, s := clusterOf(), stepOf(tc.verb, tc.out)
			if !tc.none {
				c = clusterOf(objectOf(tc.change))
			}
			if tc.verb == plan.Ask {
				s.Reinstall = &plan.Place{Namespace: "new"}
			}
			if tc.noNodes {
				c.Nodes = new(int32)
			}
			if tc.unprobed {
				c.Unprobed, c.Reachable = true, false
			}
			s.Wanted.DefaultRelease = true
			suspend(c, tc.suspended)
			d := deliveryOf()
			if tc.before != nil {
				d.Before = []hubv1.AddonStatus{*tc.before}
			}
			got, ok := report.Addon(c, d, s)
			tc.want.Name, tc.want.Kind, tc.want.Object = "a", addonKey.Kind, addonKey.Name
			if diff := cmp.Diff(tc.want, got); diff != "" || !ok {
				t.Errorf("%t, -want +got:\n%s", ok, diff)
			}
		})
	}
}

// TestAddonLeaves: the status of an add-on whose object is to go.
func TestAddonLeaves(t *testing.T) {
	granted := []string{guard.Dropped("uid")}
	for name, tc := range map[string]struct {
		verb     plan.Verb
		out      report.Outcome
		silently bool
		grants   []string
		leaving  bool
		change   func(*report.Object)
		// others is true if this delivery does not report on it.
		others bool
		want   hubv1.AddonStatus
	}{
		"Uninstalled": {
			verb: plan.Uninstall, silently: true,
			want: hubv1.AddonStatus{State: hubv1.AddonRemoving, Message: "Flux is uninstalling it"},
		},
		"UninstalledForAReason": {
			verb: plan.Uninstall,
			want: hubv1.AddonStatus{State: hubv1.AddonRemoving, Message: "why"},
		},
		"UninstalledByAGrant": {
			verb: plan.Uninstall, grants: granted,
			want: hubv1.AddonStatus{State: hubv1.AddonRemoving, Message: "why", Removal: granted[0]},
		},
		"WithdrawnByAGrant": {
			verb: plan.Uninstall, grants: granted, leaving: true,
			want: hubv1.AddonStatus{State: hubv1.AddonRemoving, Message: "why"},
		},
		"NotDeleted": {
			verb: plan.Uninstall, out: report.Outcome{Err: errBoom},
			want: hubv1.AddonStatus{State: hubv1.AddonRemoving, Message: "boom"},
		},
		"Orphaned": {
			verb: plan.Orphan, out: report.Outcome{Left: "left"},
			want: hubv1.AddonStatus{State: hubv1.AddonOrphaned, Message: "left"},
		},
		"NotOrphaned": {
			verb: plan.Orphan, out: report.Outcome{Left: "left", Err: errBoom},
			want: hubv1.AddonStatus{State: hubv1.AddonRemoving, Message: "boom"},
		},
		"HeldByTheGuard": {
			verb: plan.Ask, out: report.Outcome{Applied: 3},
			want: hubv1.AddonStatus{State: hubv1.AddonHeld, Reason: hubv1.DroppedReason, AppliedGeneration: 3, Message: "why", Removal: granted[0]},
		},
		"Waits":              {verb: plan.Hold, want: hubv1.AddonStatus{State: hubv1.AddonRemoving, Message: "why"}},
		"WaitsForDependants": {verb: plan.AwaitDependants, want: hubv1.AddonStatus{State: hubv1.AddonRemoving, Message: "why"}},
		"HandedOver": {
			verb: plan.HandOver, out: report.Outcome{Left: "left"},
			want: hubv1.AddonStatus{State: hubv1.AddonOrphaned, Message: "left", TakenOverBy: &hubv1.FluxObjectReference{}},
		},
		"AnotherDeliverys":            {verb: plan.Uninstall, change: func(o *report.Object) { o.Delivery = other.Name }, others: true},
		"OfTheNameInAnotherNamespace": {verb: plan.Uninstall, change: func(o *report.Object) { o.Key.Namespace = "team" }, others: true},
		"SomebodyWroteItByHand":       {verb: plan.HandOver, change: func(o *report.Object) { o.Foreign = true }, others: true},
	} {
		t.Run(name, func(t *testing.T) {
			o, s, d := objectOf(tc.change), stepOf(tc.verb, tc.out), deliveryOf()
			s.Key, s.By, s.Wanted = o.Key, other, nil
			if tc.silently {
				s.Reason = ""
			}
			d.Spec.Removals, d.Leaving = tc.grants, tc.leaving
			got, ok := report.Addon(clusterOf(o), d, s)
			if ok == tc.others {
				t.Fatalf("reports on it: %t", ok)
			}
			tc.want.Name, tc.want.Kind, tc.want.Object = "a", addonKey.Kind, addonKey.Name
			if diff := cmp.Diff(tc.want, got); ok && diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestAddonOfAnother: a delivery does not report on what another one wants, or nobody.
func TestAddonOfAnother(t *testing.T) {
	for name, change := range map[string]func(*report.Step){
		"AnotherWantsIt": func(s *report.Step) { s.By = other },
		"NobodyWantsIt":  func(s *report.Step) { s.Wanted = nil },
	} {
		s := stepOf(plan.Suspend, report.Outcome{})
		change(&s)
		if a, ok := report.Addon(clusterOf(objectOf(nil)), deliveryOf(), s); ok {
			t.Errorf("%s: %+v", name, a)
		}
	}
}

// TestReleaseIsRecorded: the status says which release an add-on goes on with, if its name does not say so.
func TestReleaseIsRecorded(t *testing.T) {
	release := hubv1.HelmReleaseIdentity{Name: "old", Namespace: "apps", StorageNamespace: "apps"}
	for name, tc := range map[string]struct {
		kind      string
		byDefault bool
		want      *hubv1.HelmReleaseIdentity
	}{
		"ByItsName":       {kind: "HelmRelease", byDefault: true},
		"ByAnotherName":   {kind: "HelmRelease", want: &release},
		"OfKustomization": {kind: "Kustomization"},
	} {
		s := stepOf(plan.Create, report.Outcome{Applied: 1})
		s.Wanted = &assembly.Wanted{Object: s.Wanted.Object}
		s.Wanted.Kind, s.Wanted.Release, s.Wanted.DefaultRelease = tc.kind, release, tc.byDefault
		if a, _ := report.Addon(clusterOf(), deliveryOf(), s); !cmp.Equal(a.Release, tc.want) {
			t.Errorf("%s: %v", name, a.Release)
		}
	}
}

// TestReinstallCounts: an add-on that the guard lets be reinstalled counts as going until it is Ready in its new place.
func TestReinstallCounts(t *testing.T) {
	const grant = "uid elsewhere"
	for name, tc := range map[string]struct {
		state  fluxstate.State
		grants []string
		before string
		want   string
	}{
		"OnItsWay":   {state: fluxstate.State{Generation: 3}, grants: []string{grant}, before: grant, want: grant},
		"Ready":      {state: fluxstate.State{Generation: 3, Ready: "True", ReadyGeneration: 3}, grants: []string{grant}, before: grant},
		"NotGranted": {state: fluxstate.State{Generation: 3}, before: grant},
		"NotAsked":   {state: fluxstate.State{Generation: 3}, grants: []string{grant}},
		"OfARemoval": {state: fluxstate.State{Generation: 3}, grants: []string{guard.Dropped("uid")}, before: guard.Dropped("uid")},
	} {
		o := objectOf(func(o *report.Object) { o.State = tc.state })
		d := deliveryOf(hubv1.AddonStatus{Name: "a", Removal: tc.before})
		d.Spec.Removals = tc.grants
		if a, _ := report.Addon(clusterOf(o), d, stepOf(plan.Keep, report.Outcome{Applied: 3})); a.Removal != tc.want {
			t.Errorf("%s: %q, want %q", name, a.Removal, tc.want)
		}
	}
}
