// SPDX-License-Identifier: Apache-2.0

// Package runbook knows which page says what to do about a condition. It is pure.
package runbook

import (
	"regexp"
	"strings"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// DefaultDocs is where the project's pages are.
const DefaultDocs = "https://github.com/chandler-hub/chandler/blob/main/docs"

// Page is the page of all runbooks.
const Page = "runbooks.md"

// Headings of the page, as anchors.
const (
	noAnswer   = "a-cluster-does-not-answer"
	kubeConfig = "a-kubeconfig-cannot-be-used"
	credential = "a-credential-expires"
	origin     = "an-origin-is-missing"
	duplicate  = "a-cluster-is-registered-twice"
	addon      = "an-add-on-fails"
	lost       = "two-sets-deliver-the-same-add-on"
	compiles   = "a-set-does-not-compile"
	render     = "a-set-cannot-be-rendered-for-a-cluster"
	rollout    = "a-rollout-has-failed"
	removals   = "removals-are-held"
	delivery   = "a-delivery-gets-nothing"
	team       = "a-team-gets-no-namespace"
	hubErrors  = "the-hub-meets-errors"
)

// anchors has each reason that needs a person. All others pass by themselves, are chosen by a person, or are no trouble. The packages of
// probes and kubeconfigs cannot be imported here, because they report statuses; a test of the pages holds their reasons to these.
var anchors = map[string]string{
	// A cluster that is not reached.
	"NameNotFound":                 noAnswer,
	"DialFailed":                   noAnswer,
	"ConnectionRefused":            noAnswer,
	"DialTimeout":                  noAnswer,
	"TLSFailed":                    noAnswer,
	"TimedOut":                     noAnswer,
	"ConnectionLost":               noAnswer,
	"Forbidden":                    noAnswer,
	"ServerError":                  noAnswer,
	"NotKubernetes":                noAnswer,
	"ForbiddenAddress":             noAnswer,
	hubv1.HubItselfReason:          noAnswer,
	hubv1.FluxFailsReason:          noAnswer,
	hubv1.ClusterUnreachableReason: "a-cluster-stays-suspended",
	hubv1.FluxHangsReason:          "flux-hangs-on-a-cluster",

	// Its credential.
	"Unauthorized":                credential,
	hubv1.CredentialRefusedReason: credential,
	hubv1.ExpiresIn7DaysReason:    credential,
	hubv1.ExpiresIn1DayReason:     credential,
	hubv1.ExpiredReason:           credential,

	// Its kubeconfig.
	hubv1.SecretNotFoundReason:          kubeConfig,
	hubv1.KubeConfigSourceMissingReason: kubeConfig,
	hubv1.NamespaceNotAllowedReason:     "a-namespace-is-not-allowed",
	hubv1.WorkloadIdentityInvalidReason: kubeConfig,
	"KeyNotFound":                       kubeConfig,
	"KubeConfigEmpty":                   kubeConfig,
	"KubeConfigTooLarge":                kubeConfig,
	"KeyTooLarge":                       kubeConfig,
	"KubeConfigMalformed":               kubeConfig,
	"KubeConfigAmbiguous":               kubeConfig,
	"UnknownField":                      kubeConfig,
	"ContextNotFound":                   kubeConfig,
	"ExecForbidden":                     kubeConfig,
	"FileReferenceForbidden":            kubeConfig,
	"ImpersonationForbidden":            kubeConfig,
	"InsecureTLSForbidden":              kubeConfig,
	"ProxyForbidden":                    kubeConfig,
	"PlainHTTPForbidden":                kubeConfig,
	"ServerInvalid":                     kubeConfig,
	"TLSServerNameForbidden":            kubeConfig,
	"CAMissing":                         kubeConfig,
	"CAInvalid":                         kubeConfig,
	"AddressForbidden":                  kubeConfig,
	"TargetIsHub":                       kubeConfig,
	"CredentialMissing":                 kubeConfig,
	"CredentialInvalid":                 kubeConfig,

	// Where it comes from.
	hubv1.OriginNotFoundReason:         origin,
	hubv1.OriginKindNotInstalledReason: origin,
	hubv1.OriginMissingReason:          origin,
	hubv1.OriginLostReason:             origin,
	hubv1.DuplicateReason:              duplicate,
	hubv1.SameClusterReason:            duplicate,
	hubv1.DrainTimedOutReason:          "a-drain-is-out-of-time",

	// Add-ons.
	hubv1.AddonsFailedReason:          addon,
	hubv1.TeamForbiddenReason:         addon,
	hubv1.DefaultServiceAccountReason: addon,
	hubv1.FluxObjectsInFolderReason:   addon,
	hubv1.SourceNotFoundReason:        "an-add-on-does-not-become-ready",
	hubv1.SourcesNotReadyReason:       "an-add-on-does-not-become-ready",
	hubv1.AddonsLostReason:            lost,
	hubv1.OverrideRefusedReason:       "an-override-is-refused",

	// Sets.
	hubv1.InvalidSpecReason:                 compiles,
	hubv1.RenderFailedReason:                render,
	hubv1.RolloutFailedReason:               rollout,
	string(hubv1.RolloutFailed):             rollout,
	string(hubv1.RolloutRollingBack):        rollout,
	string(hubv1.RolloutRolledBack):         rollout,
	string(hubv1.RolloutWaitingForApproval): "a-rollout-waits-for-approval",
	hubv1.TooManyRemovalsReason:             removals,
	hubv1.RemovalsHeldReason:                removals,
	hubv1.NoClusterMatchesReason:            "a-set-selects-no-cluster",

	// Deliveries.
	hubv1.IdentityForbiddenReason:    delivery,
	hubv1.NotFromAddonSetReason:      delivery,
	hubv1.OutOfReachReason:           delivery,
	hubv1.AddonSetNotFoundReason:     delivery,
	hubv1.RegistrationNotFoundReason: delivery,
	hubv1.RevisionNotFoundReason:     delivery,

	// Teams.
	hubv1.NamespaceTakenReason: team,
	hubv1.NotOwnedReason:       team,

	// The hub itself.
	hubv1.FailedReason:     hubErrors,
	hubv1.ReadFailedReason: hubErrors,
	hubv1.NotWrittenReason: hubErrors,
}

// Of returns the heading of the page that says what to do about a reason, as an anchor; "" if a reason needs no person.
func Of(reason string) string { return anchors[reason] }

// Reasons returns the reasons that need a person, each with its anchor.
func Reasons() map[string]string {
	out := make(map[string]string, len(anchors))
	for reason, anchor := range anchors {
		out[reason] = anchor
	}
	return out
}

const introduction = "; runbook: "

var addressed = regexp.MustCompile(introduction + `[^\s;]*`)

// Plain returns a message without the addresses that Add has put into it, or into a message that it quotes.
func Plain(message string) string {
	if !strings.Contains(message, introduction) {
		return message
	}
	return addressed.ReplaceAllString(message, "")
}

// Add returns a message that ends with the address of the runbook for a reason, and has no other one. docs is where the pages are; if it
// is empty, or the reason needs no person, there is no address.
func Add(docs, reason, message string) string {
	message = Plain(message)
	anchor := Of(reason)
	if docs == "" || anchor == "" {
		return message
	}
	return message + introduction + strings.TrimSuffix(docs, "/") + "/" + Page + "#" + anchor
}
