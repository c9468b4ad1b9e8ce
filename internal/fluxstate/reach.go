// SPDX-License-Identifier: Apache-2.0

package fluxstate

import (
	"regexp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reach is what Flux's results tell about a cluster that the hub itself cannot probe.
type Reach int

const (
	// ReachUnchanged: nothing new is known.
	ReachUnchanged Reach = iota
	// ReachNone: the cluster has no Flux object.
	ReachNone
	// ReachSucceeds: at least one object is Ready at its generation.
	ReachSucceeds
	// ReachFails: none of the objects can reach the cluster.
	ReachFails
)

// Reachability sums up the states of all Flux objects of a cluster. One success outweighs all failures. An object
// that Flux is reconciling, or that fails for another reason, changes nothing, so that the result does not flap while
// Flux retries.
func Reachability(states []State) Reach {
	failed, told := 0, 0
	for _, s := range states {
		if s.Suspended || s.Deleting {
			continue // what it says is of the past
		}
		told++
		switch {
		case s.Ready == metav1.ConditionTrue && s.ReadyGeneration == s.Generation:
			return ReachSucceeds
		case Unreachable(s):
			failed++
		}
	}
	switch {
	case len(states) == 0:
		return ReachNone
	case told > 0 && failed == told:
		return ReachFails
	}
	return ReachUnchanged
}

// noWay maps the reasons with which a Flux object fails when Flux does not reach a cluster, or loses it in the middle, to a pattern that
// its message must match. kustomize-controller has one reason for many failures, and helm-controller one for each action of Helm. If a
// webhook cannot be called, the cluster has answered.
var noWay = map[string]*regexp.Regexp{
	"RESTClientError":      regexp.MustCompile(``), // helm-controller: no way to build a client
	"ResourceManagerError": connection,
	"StateError":           connection,
	"ReconciliationFailed": connection,
	"UninstallFailed":      connection,
	"InstallFailed":        connection,
	"UpgradeFailed":        connection,
	"RollbackFailed":       connection,
}

var (
	// An error of Go's HTTP client names method and URL: no answer arrived at all. The others are answers that reject
	// the request, and Flux's own errors before the first request.
	connection = regexp.MustCompile(`(?i)(get|head|post|put|patch|delete) "https://[^"]+": |cluster unreachable|` +
		`failed to get (server groups|api group resources|access token|configmap|service account)|failed to describe \w+ cluster|` +
		`unable to retrieve the complete list of server APIs|asked for the client to provide credentials|: Unauthorized$`)
	webhook = regexp.MustCompile(`(?i)\bwebhook\b`)
)

// Blameless returns whether a Flux object failed before anything of its spec mattered: Flux did not reach the cluster, or helm-controller
// could not read which release is there. An API server that has just started denies that for a moment, until it knows its roles.
func Blameless(s State) bool {
	return Unreachable(s) || s.Ready == metav1.ConditionFalse && s.Reason == "StateError"
}

// Unreachable returns whether a Flux object failed because Flux did not reach the cluster, or the cluster did not
// authorize it.
func Unreachable(s State) bool {
	says := noWay[s.Reason]
	return s.Ready == metav1.ConditionFalse && says != nil && says.MatchString(s.Message) && !webhook.MatchString(s.Message)
}
