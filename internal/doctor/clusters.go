// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"
	"strings"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/status"
)

// Codes of what a fleet may have.
const (
	clusterUnseen      = "ClusterNotSeen"
	clusterDuplicate   = "ClusterDuplicate"
	clusterKubeConfig  = "KubeConfigInvalid"
	clusterUnreachable = "ClusterUnreachable"
	clusterNotReady    = "ClusterNotReady"
	clusterSlow        = "ClusterSlow"
	clusterUnderWay    = "ClusterUnderWay"
	credentialExpires  = "CredentialExpires"
	overrideOver       = "OverrideOver"
	overrideRefused    = "OverrideRefused"
	pauseOver          = "PauseOver"
	setUnseen          = "SetNotSeen"
	setStalled         = "SetStalled"
	setMatchesNothing  = "SetMatchesNothing"
	setSources         = "SetSourcesNotReady"
	setNothing         = "SetDeliversNothing"
	setHeld            = "RemovalsHeld"
	setFailed          = "RolloutFailed"
	setEpoch           = "EpochOfHub"
	objectLeft         = "FluxObjectsLeft"
)

// remedies say what to do about a reason of a registration; docs/conditions.md has them all.
var remedies = map[string]string{
	"ConnectionRefused": isItUp, "DialFailed": isItUp, "DialTimeout": isItUp, "TimedOut": isItUp, "ConnectionLost": isItUp,
	"TLSFailed":      "after a CA was rotated you need a new kubeconfig; the condition says which certificate it is",
	"Unauthorized":   "renew the credential: it is not accepted, and may have expired",
	"Forbidden":      "let the user of the kubeconfig read /version and the namespace kube-system",
	"NameNotFound":   "correct DNS, or the server's name in the kubeconfig",
	"SecretNotFound": lost, "KeyNotFound": lost,
	hubv1.FluxHangsReason:             "restart Flux's controllers to free their workers (docs/runbooks.md#flux-hangs-on-a-cluster)",
	hubv1.HubItselfReason:             "take the registration away: its kubeconfig points at the management cluster",
	hubv1.DefaultServiceAccountReason: "take --default-service-account off the Flux that serves the hub",
	hubv1.AddonsFailedReason:          "chandler explain CLUSTER says which add-on failed, and quotes Flux",
	hubv1.RenderFailedReason:          "chandler explain CLUSTER says which expression failed",
	hubv1.RemovalsHeldReason:          "chandler removals list says what is held; approve it, or undo the edit (docs/teardown.md)",
}

const (
	isItUp  = "is the API server up? Does the hub's network reach it (NetworkPolicy, firewall, address)?"
	lost    = "make the Secret with the kubeconfig again; what runs goes on with the hub's copy"
	explain = "chandler explain CLUSTER says more; docs/conditions.md has every reason"
)

func remedyFor(reason string) string {
	if r := remedies[reason]; r != "" {
		return r
	}
	return explain
}

func clustersSummary(f *Facts) string {
	out := fmt.Sprintf("%d of %s Ready", f.Fleet.Ready, status.Are(f.Fleet.Clusters, "cluster"))
	for _, what := range []string{paused, suspended, maintained, deleted} {
		switch n := f.Fleet.Aside[what]; n {
		case 0:
		case 1:
			out += ", 1 is " + what
		default:
			out += fmt.Sprintf(", %d are %s", n, what)
		}
	}
	return out
}

// each is a finding for each reason of a code.
func (f *Fleet) each(code string, s Severity, what func(n int, reason string) string) (out []Finding) {
	for _, c := range f.of(code) {
		out = append(out, f.counts[c].about(Finding{Severity: s, Code: code, What: what(f.counts[c].Count, c.Reason),
			Remedy: remedyFor(c.Reason)}))
	}
	return out
}

// clustersFail finds clusters that do not have what they should, by the reason.
func clustersFail(f *Facts) []Finding {
	return slices.Concat(
		f.Fleet.each(clusterKubeConfig, Error, func(n int, reason string) string {
			return status.Count(n, "cluster") + " without a kubeconfig that can be used: " + reason
		}),
		f.Fleet.each(clusterUnreachable, Error, func(n int, reason string) string {
			return status.Count(n, "cluster") + " out of reach: " + reason
		}),
		f.Fleet.each(clusterNotReady, Error, func(n int, reason string) string { return status.Are(n, "cluster") + " not Ready: " + reason }),
		f.Fleet.each(clusterSlow, Warning, func(n int, reason string) string {
			return status.Are(n, "cluster") + " on the way for more than ten minutes: " + reason
		}),
		f.Fleet.each(clusterUnderWay, Warning, func(n int, reason string) string {
			return status.Are(n, "cluster") + " on the way, and not Ready yet: " + reason
		}))
}

// clustersUnseen finds registrations that no hub has looked at.
func clustersUnseen(f *Facts) []Finding {
	return some(f.Fleet.all(clusterUnseen), Finding{Severity: Error, Code: clusterUnseen,
		What:   "the hub has not looked at registrations for more than ten minutes after they were made",
		Remedy: "see check Hub: it may not run, or not keep up"})
}

// clustersDuplicate finds clusters that are registered twice.
func clustersDuplicate(f *Facts) []Finding {
	return some(f.Fleet.all(clusterDuplicate), Finding{Severity: Warning, Code: clusterDuplicate,
		What:   "clusters are registered more than once, and nothing is delivered through these registrations",
		Remedy: "remove one of the two (docs/sources.md#one-cluster-registered-twice)"})
}

func credentialsSummary(f *Facts) string { return "of " + status.Count(f.Fleet.Clusters, "cluster") }

// credentialsExpire finds credentials that end soon, and that no controller replaces in time.
func credentialsExpire(f *Facts) []Finding {
	var out []Finding
	for _, reason := range []string{hubv1.ExpiredReason, hubv1.ExpiresIn1DayReason, hubv1.ExpiresIn7DaysReason, hubv1.ExpiresIn30DaysReason} {
		o := f.Fleet.counts[Class{credentialExpires, reason}]
		if o == nil {
			continue
		}
		found := Finding{Severity: Warning, Code: credentialExpires, What: status.Count(o.Count, "credential") + " not renewed: " +
			"" + reason,
			Remedy: "put a new kubeconfig into the Secret, or have the hub renew its token (docs/runbooks.md#a-credential-expires)"}
		if reason == hubv1.ExpiredReason {
			found.Severity, found.Code = Error, "CredentialExpired"
		}
		out = append(out, o.about(found))
	}
	return out
}

func setsSummary(f *Facts) string {
	text := status.Count(f.Fleet.Sets, "AddonSet")
	if f.Fleet.Cut {
		text += fmt.Sprintf(", and the first %d deliveries", f.Fleet.Deliveries)
	}
	return text
}

// setsMatchNothing finds sets without a cluster.
func setsMatchNothing(f *Facts) []Finding {
	return append(some(f.Fleet.all(setMatchesNothing), Finding{Severity: Warning, Code: setMatchesNothing, What: "AddonSets select no cluster",
		Remedy: "correct the selector, or label a cluster"}),
		some(f.Fleet.all(setNothing), Finding{Severity: Warning, Code: setNothing,
			What:   "AddonSets deliver nothing: other sets deliver their add-ons on every cluster",
			Remedy: "rename the add-ons, raise the priority of the set, or delete it (docs/addonsets.md#conflicts-moves-and-adoption)"})...)
}

// setsStalled finds sets that do not compile, or that no hub has looked at.
func setsStalled(f *Facts) []Finding {
	var out []Finding
	for _, c := range f.Fleet.of(setStalled) {
		out = append(out, f.Fleet.counts[c].about(Finding{Severity: Error, Code: setStalled,
			What: "AddonSets are stalled: " + c.Reason, Remedy: "mend the set as it says; clusters keep what they have"}))
	}
	out = append(out, some(f.Fleet.all(setUnseen), Finding{Severity: Error, Code: setUnseen,
		What:   "the hub has not looked at AddonSets for more than ten minutes after they were made",
		Remedy: "see check Hub: it may not run, or not keep up"})...)
	return append(out, some(f.Fleet.all(setSources), Finding{Severity: Error, Code: setSources,
		What:   "AddonSets wait for Flux to read what they pin, so their newest revision reaches no cluster",
		Remedy: "see check Sources"})...)
}

// setsHeld finds removals that wait for a person.
func setsHeld(f *Facts) []Finding {
	return some(f.Fleet.all(setHeld), Finding{Severity: Warning, Code: setHeld, What: "the removal guard holds removals of AddonSets",
		Remedy: "chandler removals list SET says what; approve or undo them (docs/runbooks.md#removals-are-held)"})
}

// setsFailed finds rollouts that have stopped.
func setsFailed(f *Facts) []Finding {
	var out []Finding
	for _, c := range f.Fleet.of(setFailed) {
		out = append(out, f.Fleet.counts[c].about(Finding{Severity: Error, Code: setFailed, What: "rollouts have stopped: " + c.Reason,
			Remedy: "chandler rollout status SET says why, and by which command it goes on"}))
	}
	return out
}

// setsBehind finds what a hub of another version has made.
func setsBehind(f *Facts) []Finding {
	return some(f.Fleet.all(setEpoch), Finding{Severity: Warning, Code: setEpoch,
		What:   fmt.Sprintf("the hub renders otherwise than this command line, which has epoch %d", f.Epoch),
		Remedy: "take the command line of the hub's version, or upgrade the hub: what chandler render and diff show may not be what it makes"})
}

// setsLeft finds what nothing removes: its set does not want the cluster any more, and a member of the break-glass group has deleted the
// delivery, or what a hub had sent before it stood still arrived after the delivery had gone.
func setsLeft(f *Facts) []Finding {
	return some(f.Fleet.all(objectLeft), Finding{Severity: Warning, Code: objectLeft,
		What:   "Flux objects of the hub have no AddonDelivery, and no set makes it again: Flux goes on with them, and nothing removes them",
		Remedy: "delete them to uninstall what they brought; suspend them first to leave it on the cluster"})
}

func overridesSummary(f *Facts) string {
	return "of " + status.Count(f.Fleet.Clusters, "cluster") + ", and pauses"
}

// overridesOver finds overrides that do not count any more.
func overridesOver(f *Facts) []Finding {
	return some(f.Fleet.all(overrideOver), Finding{Severity: Warning, Code: overrideOver, What: "overrides of clusters have run out, and " +
		"do not count",
		Remedy: "take them out of spec.overrides, or write a later until"})
}

// overridesRefused finds overrides that the hub does not apply.
func overridesRefused(f *Facts) []Finding {
	return some(f.Fleet.all(overrideRefused), Finding{Severity: Warning, Code: overrideRefused,
		What:   "the hub refuses overrides or variables of clusters, and delivers without them",
		Remedy: "mend or take out what it names"})
}

// pausesOver finds pauses that are left over.
func pausesOver(f *Facts) []Finding {
	return some(f.Fleet.all(pauseOver), Finding{Severity: Warning, Code: pauseOver, What: "pauses of clusters have run out, and do not count",
		Remedy: "take spec.pause away, or write a later until"})
}

func sourcesSummary(f *Facts) string {
	return status.Count(f.SourcesRead, "Flux source") + " in namespaces with sets"
}

// sourcesFail finds sources that Flux cannot read.
func sourcesFail(f *Facts) []Finding {
	var o Objects
	remedy := "mend the address, the version or the credential of the source; clusters keep what they have"
	for _, s := range f.Sources {
		name := s.Name
		if len(s.Users) > 0 {
			name += " (" + list(s.Users) + ")"
		}
		o.Add(strings.TrimSuffix(fmt.Sprintf("%s: %s: %s", name, s.Reason, s.Message), ": "))
		if strings.HasPrefix(s.Name, "HelmChart ") {
			remedy = "mend the chart's name or version in the add-on, or the address or the credential of the source; clusters keep what they have"
		}
	}
	return some(o, Finding{Severity: Error, Code: "SourceFails", What: status.Count(o.Count, "Flux source") + " that Flux cannot read",
		Remedy: remedy})
}
