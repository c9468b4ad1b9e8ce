// SPDX-License-Identifier: Apache-2.0

package fluxstate_test

import (
	"strings"
	"testing"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/fluxstate"
)

// What a cluster refuses to a team is said in words that a developer understands: which right, where, and whom to ask.
func TestTeamForbidden(t *testing.T) {
	const user = `User "system:serviceaccount:chandler-shop:shop" cannot `
	for message, want := range map[string]string{
		`ConfigMap/default/x dry-run failed (Forbidden): configmaps "x" is forbidden: ` + user + `patch resource "configmaps" in API group "" in the namespace "default"`:                                        `Team "shop" may not patch configmaps in namespace "default"`,
		`clusterroles.rbac.authorization.k8s.io "x" is forbidden: ` + user + `patch resource "clusterroles" in API group "rbac.authorization.k8s.io" at the cluster scope`:                                       `Team "shop" may not patch clusterroles.rbac.authorization.k8s.io at the cluster scope`,
		`rolebindings.rbac.authorization.k8s.io "x" is forbidden: user "system:serviceaccount:chandler-shop:shop" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:`: `Team "shop" may not grant rights`,
		`User "system:serviceaccount:chandler-shop:other" cannot patch resource "x" in API group "" at the cluster scope`:                                                                                        "",
		`User "mallory" cannot patch resource "x" in API group "" at the cluster scope`:                                                                                                                          "",
		"timed out": "",
	} {
		reason, remedy := fluxstate.Reason(fluxstate.State{Message: message})
		if !strings.HasPrefix(remedy, want) || (reason == hubv1.TeamForbiddenReason) != (want != "") {
			t.Errorf("%s: %s %q", message, reason, remedy)
		}
	}
}
