// SPDX-License-Identifier: Apache-2.0

package fluxstate

import (
	"regexp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reach is what Flux's results say of a cluster that the hub itself cannot probe.
type Reach int

const (
	// ReachUnchanged: nothing new is known.
	ReachUnchanged Reach = iota
	// ReachNone: there is no Flux object to tell.
	ReachNone
	// ReachSucceeds: at least one object is Ready at its generation.
	ReachSucceeds
	// ReachFails: none of the objects gets through to the cluster.
	ReachFails
)

// Reachability draws the conclusion from all Flux objects of a cluster. One success outweighs all failures, and an object that is
// being reconciled, or fails for another reason, leaves things as they were: so nothing flaps while Flux tries again.
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

// noWay are the reasons for which Flux objects fail before Flux has got through to a cluster, and what their messages must say.
// kustomize-controller has one reason for many things; a webhook that cannot be called is the cluster answering.
var noWay = map[string]*regexp.Regexp{
	"RESTClientError":      regexp.MustCompile(``), // helm-controller: no way to build a client
	"ResourceManagerError": connection,
	"StateError":           connection,
	"ReconciliationFailed": connection,
	"UninstallFailed":      connection,
}

var (
	// An error of Go's HTTP client names method and URL: there was no answer at all. The others are an answer to no purpose, and Flux's
	// own words for what comes before the first request.
	connection = regexp.MustCompile(`(?i)(get|head|post|put|patch|delete) "https://[^"]+": |cluster unreachable|` +
		`failed to get (server groups|api group resources|access token|configmap|service account)|failed to describe \w+ cluster|` +
		`unable to retrieve the complete list of server APIs|asked for the client to provide credentials|: Unauthorized$`)
	webhook = regexp.MustCompile(`(?i)\bwebhook\b`)
)

// Unreachable returns whether a Flux object failed since Flux did not get through to the cluster, or was not let in.
func Unreachable(s State) bool {
	says := noWay[s.Reason]
	return s.Ready == metav1.ConditionFalse && says != nil && says.MatchString(s.Message) && !webhook.MatchString(s.Message)
}
