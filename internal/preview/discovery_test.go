// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"testing"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/origin"
)

// TestRegisteredByRule: files are judged by the hub's rules, as the hub does it.
func TestRegisteredByRule(t *testing.T) {
	objects, _, err := ParseWith("fleet.yaml", []byte(`
apiVersion: v1
kind: Secret
metadata: {name: vc-one, namespace: flux-system, labels: {app: vcluster, tier: prod}}
---
apiVersion: v1
kind: Secret
metadata: {name: vc-two, namespace: flux-system, labels: {app: vcluster, chandler.dev/register: "false"}}
---
apiVersion: v1
kind: Secret
metadata: {name: vc-three, namespace: other, labels: {app: vcluster}}
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	rules, err := origin.ParseRules("rules.yaml", []byte(
		"rules: [{name: vcluster, match: {kind: Secret, namespaces: ['*'], names: vc-*}, register: {name: '*', labels: {tier: dev}}}]"))
	if err != nil {
		t.Fatal(err)
	}
	fleet := must.Get(NewFleet(objects, origin.Policy{SecretNamespaces: []string{"flux-system"}, Rules: rules})).Or(t)
	regs := fleet.registrations()
	if len(regs) != 1 || regs[0].Name != "one" {
		t.Fatalf("registered: %+v", regs)
	}
	want := map[string]string{"app": "vcluster", "tier": "dev", hubv1.NameLabel: "one", hubv1.ProviderLabel: "Secret"}
	must.Equal(t, want, regs[0].Labels)
}
