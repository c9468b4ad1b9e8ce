// SPDX-License-Identifier: Apache-2.0

package fluxstate_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandler-hub/chandler/internal/fluxstate"
)

// What Flux says, with the reasons and in the words of kustomize-controller 1.9.5 and helm-controller 1.6.4.
var (
	ready     = fluxstate.State{Generation: 2, Ready: metav1.ConditionTrue, ReadyGeneration: 2, Reason: "ReconciliationSucceeded"}
	outdated  = fluxstate.State{Generation: 3, Ready: metav1.ConditionTrue, ReadyGeneration: 2, Reason: "ReconciliationSucceeded"}
	trying    = fluxstate.State{Generation: 2, Ready: metav1.ConditionUnknown, ReadyGeneration: 2}
	building  = failing("BuildFailed", "kustomization path not found")
	unhealthy = failing("HealthCheckFailed", "timeout waiting for: [Deployment/a/b status: 'InProgress']")
	refused   = failing("ReconciliationFailed", `ConfigMap/default/a dry-run failed: failed to get server groups: Get "https://127.0.0.1:1/api": dial tcp 127.0.0.1:1: connect: connection refused`)
	stateless = failing("StateError", "Could not determine release state: kubernetes cluster unreachable: the server has asked for the client to provide credentials")
)

func failing(reason, message string) fluxstate.State {
	return fluxstate.State{Generation: 2, Ready: metav1.ConditionFalse, ReadyGeneration: 2, Reason: reason, Message: message}
}

func TestReachability(t *testing.T) {
	suspended, leaving := refused, refused
	suspended.Suspended, leaving.Deleting = true, true
	gone := ready
	gone.Deleting = true
	for name, tc := range map[string]struct {
		in   []fluxstate.State
		want fluxstate.Reach
	}{
		"Nothing":            {nil, fluxstate.ReachNone},
		"Ready":              {[]fluxstate.State{ready}, fluxstate.ReachSucceeds},
		"ReadyBefore":        {[]fluxstate.State{outdated}, fluxstate.ReachUnchanged},
		"OneOfTwo":           {[]fluxstate.State{refused, ready}, fluxstate.ReachSucceeds},
		"All":                {[]fluxstate.State{refused, stateless}, fluxstate.ReachFails},
		"TriesAgain":         {[]fluxstate.State{refused, trying}, fluxstate.ReachUnchanged},
		"FailsForItself":     {[]fluxstate.State{refused, building}, fluxstate.ReachUnchanged},
		"Unhealthy":          {[]fluxstate.State{unhealthy}, fluxstate.ReachUnchanged},
		"Suspended":          {[]fluxstate.State{suspended}, fluxstate.ReachUnchanged},
		"SuspendedAndFailed": {[]fluxstate.State{suspended, refused}, fluxstate.ReachFails},
		"Leaving":            {[]fluxstate.State{leaving, gone}, fluxstate.ReachUnchanged},
	} {
		t.Run(name, func(t *testing.T) {
			if got := fluxstate.Reachability(tc.in); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

// TestBlameless: a revision is not to blame for what keeps Flux from looking at the cluster, and for all else it may be.
func TestBlameless(t *testing.T) {
	denied := failing("StateError", `Could not determine release state: failed to retrieve last release from storage: query: failed to query with labels: secrets is forbidden: User "kubernetes-admin" cannot list resource "secrets"`)
	rejected := failing("UpgradeFailed", `Helm upgrade failed: secrets is forbidden: User "kubernetes-admin" cannot create resource "secrets"`)
	for name, tc := range map[string]struct {
		in   fluxstate.State
		want bool
	}{"NotReached": {refused, true}, "StateDenied": {denied, true}, "Rejected": {rejected, false}, "Unhealthy": {unhealthy, false}, "Ready": {ready, false}} {
		if got := fluxstate.Blameless(tc.in); got != tc.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

func TestUnreachable(t *testing.T) {
	for name, tc := range map[string]struct {
		in   fluxstate.State
		want bool
	}{
		"Refused":       {refused, true},
		"NoState":       {failing("StateError", `Could not determine release state: failed to retrieve last release from storage: query: failed to query with labels: Get "https://127.0.0.1:22174/api/v1/namespaces/a/secrets?labelSelector=name%3Da%2Cowner%3Dhelm": dial tcp 127.0.0.1:22174: connect: connection refused`), true},
		"NotAllowed":    {failing("StateError", "Could not determine release state: failed to retrieve last release from storage: query: failed to query with labels: secrets is forbidden: User \"hub:a\" cannot list resource"), false},
		"Converted":     {failing("ReconciliationFailed", `A/b/c dry-run failed: conversion webhook for a.b/v1, Kind=A failed: Post "https://a.b.svc:443/convert": dial tcp 10.0.0.1:443: connect: connection refused`), false},
		"NotLetIn":      {stateless, true},
		"Unauthorized":  {failing("ReconciliationFailed", "ConfigMap/default/a dry-run failed (Unauthorized): failed to get server groups: the server has asked for the client to provide credentials"), true},
		"NoToken":       {failing("ReconciliationFailed", "failed to get access token for cluster: failed to get service account 'flux-system/a': serviceaccounts \"a\" not found"), true},
		"NoGate":        {failing("RESTClientError", "failed to get access token for cluster: object-level workload identity is not enabled"), true},
		"NoSuchCluster": {failing("ReconciliationFailed", "failed to describe EKS cluster 'x': operation error"), true},
		"Webhook":       {failing("ReconciliationFailed", `a dry-run failed: failed to get server groups: failed calling webhook "a.b.c": connection refused`), false},
		"Rejected":      {failing("ReconciliationFailed", `Deployment/a/b dry-run failed (Invalid): spec.selector: field is immutable`), false},
		"Forbidden":     {failing("ReconciliationFailed", `Deployment/a/b dry-run failed (Forbidden): deployments.apps "b" is forbidden: User "x" cannot patch resource`), false},
		"Install":       {failing("InstallFailed", "Helm install failed: dial tcp 10.0.0.1:443: connect: connection refused"), false},
		"Upgrade":       {failing("UpgradeFailed", `Helm upgrade failed for release a/a with chart a@1.0.0: query: failed to query with labels: Get "https://127.0.0.1:31347/api/v1/namespaces/a/secrets": dial tcp 127.0.0.1:31347: connect: connection refused`), true},
		"UpgradeHook":   {failing("UpgradeFailed", `Helm upgrade failed for release a/a with chart a@1.0.0: admission webhook "a.b.c" denied: Get "https://127.0.0.1:31347/api": EOF`), false},
		"Source":        {failing("ArtifactFailed", "failed to download archive: connection refused"), false},
		"Succeeds":      {ready, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := fluxstate.Unreachable(tc.in); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
