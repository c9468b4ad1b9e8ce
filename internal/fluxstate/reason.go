// SPDX-License-Identifier: Apache-2.0

package fluxstate

import (
	"fmt"
	"regexp"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// Reason returns a word for a failure that people can fix, and the remedy; "" if there is none. Of the cluster's words the remedy has
// names alone, and short ones.
func Reason(s State) (reason, remedy string) {
	if s.DefaultAccount != "" {
		return hubv1.DefaultServiceAccountReason, fmt.Sprintf("Flux runs with --default-service-account, and acts on the cluster as "+
			"%s, which lacks the rights or may not be impersonated there: take the flag off the Flux that serves the hub, or "+
			"name a ServiceAccount in the add-on or the ClusterRegistration", s.DefaultAccount)
	}
	if remedy := teamMay(s.Message); remedy != "" {
		return hubv1.TeamForbiddenReason, remedy
	}
	if m := noFlux.FindStringSubmatch(s.Message); m != nil {
		return hubv1.FluxObjectsInFolderReason,
			fmt.Sprintf("the folder holds a %s, which only Flux understands, and there is no Flux on the cluster: "+
				"write it as an add-on of the AddonSet instead, and let the path name plain manifests; or bring the cluster a Flux of "+
				"its own, as an add-on that this one depends on (examples/hub-spoke)", m[1])
	}
	return "", ""
}

// notFound matches what a client says of a source or chart that does not exist.
var notFound = regexp.MustCompile(`(\w+)\.source\.toolkit\.fluxcd\.io \\?"([^"\\]+)\\?" not found`)

// NotFound returns the source or chart that Flux waits for because it does not exist, in words; "" if it waits for nothing, or for one
// that is there.
func NotFound(s State) string {
	m := notFound.FindStringSubmatch(s.Message)
	if m == nil || !Waits(s) {
		return ""
	}
	return fmt.Sprintf("%s %q", m[1], m[2])
}

// noFlux matches kustomize-controller's error when a folder holds Flux objects and the cluster has no Flux.
var noFlux = regexp.MustCompile(`no matches for kind "(\w{1,63})" in version "\w+\.toolkit\.fluxcd\.io/\w+"`)

// What an API server says when a team's ServiceAccount lacks a right (Kubernetes, authorization/rbac and
// rbac/escalation_check.go): the verb, the resource with its group, and the namespace, or that it wants to grant more
// than it has. The names of the account and its namespace are internal/team's.
var (
	teamForbidden = regexp.MustCompile(teamUser + ` cannot (\w{1,63}) resource \\?"([\w./-]{1,100})\\?" in ` +
		`API group \\?"([\w.-]{0,100})\\?" (?:at the cluster scope|in the namespace \\?"([a-z0-9-]{1,63})\\?")`)
	teamEscalates = regexp.MustCompile(teamUser + `.* attempting to grant RBAC permissions not currently held`)
)

const teamUser = `(?i)user \\?"system:serviceaccount:chandler-([a-z0-9-]{1,63}):([a-z0-9-]{1,63})\\?"`

// What it says if Flux impersonates a ServiceAccount: that this one lacks a right, or that Flux may not impersonate it.
// Flux takes the namespace of its own object (fluxcd/pkg/runtime/client, setImpersonationConfig). A right may also be
// lacking because the kubeconfig is that of a ServiceAccount. No controller makes one for "default", which is what Flux's
// documentation has the flag say.
var (
	accountForbidden = regexp.MustCompile(`(?i)user \\?"system:serviceaccount:([a-z0-9-]{1,63}):(default)\\?" cannot `)
	noImpersonation  = regexp.MustCompile(`(?i)serviceaccounts \\?"([a-z0-9.-]{1,100})\\?" is forbidden: .* cannot impersonate resource ` +
		`\\?"serviceaccounts\\?" in API group \\?"\\?" in the namespace \\?"([a-z0-9-]+)\\?"`)
	// From Kubernetes 1.36 on, where the right to impersonate may be bound to what is done then (KEP-5284).
	noImpersonationOn = regexp.MustCompile(`(?i) is forbidden: .* cannot impersonate-on:serviceaccount:`)
)

// defaultAccount returns the ServiceAccount of the Flux object's own namespace that a failure is about, in words; "" if
// it is about none.
func defaultAccount(namespace, message string) string {
	if m := noImpersonation.FindStringSubmatch(message); m != nil && m[2] == namespace {
		return "ServiceAccount " + m[2] + "/" + m[1]
	}
	if noImpersonationOn.MatchString(message) {
		return "a ServiceAccount of namespace " + namespace
	}
	if m := accountForbidden.FindStringSubmatch(message); m != nil && m[1] == namespace {
		return "ServiceAccount " + m[1] + "/" + m[2]
	}
	return ""
}

// teamMay returns what a team lacked a right for, with whom to ask; "" if that was not the failure.
func teamMay(message string) string {
	if m := teamForbidden.FindStringSubmatch(message); m != nil && m[1] == m[2] {
		resource, where := m[4], "at the cluster scope"
		if m[5] != "" {
			resource += "." + m[5]
		}
		if m[6] != "" {
			where = fmt.Sprintf("in namespace %q", m[6])
		}
		return fmt.Sprintf("Team %q may not %s %s %s on this cluster: leave that out, or ask who keeps the Team", m[1], m[3], resource, where)
	}
	if m := teamEscalates.FindStringSubmatch(message); m != nil && m[1] == m[2] {
		return fmt.Sprintf("Team %q may not grant rights that it does not have itself on this cluster: leave them out, or ask who keeps "+
			"the Team", m[1])
	}
	return ""
}
