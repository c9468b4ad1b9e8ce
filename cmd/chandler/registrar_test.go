// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/chandler-hub/chandler/internal/cli/exit"
	"github.com/chandler-hub/chandler/internal/must"
)

// What is wrong with a command is said before anybody is asked, with the exit code of a wrong command.
func TestRegisterRefuses(t *testing.T) {
	t.Setenv("KUBECONFIG", "/nowhere")
	for args, want := range map[string]string{
		"register":                             "write the name that the cluster gets",
		"register a b":                         "write the name that the cluster gets",
		"register Edge -n fleet":               `name "Edge"`,
		"register fleet/a/b":                   "write NAME or NAMESPACE/NAME",
		"register fleet/a -n other":            "leave out -n",
		"register a -n fleet --token-ttl 1s":   "--token-ttl 1s",
		"register a -n fleet --labels tier":    "tier",
		"register a -n fleet --context nobody": "find the hub",
		"unregister clusterregistration.chandler.dev/a -n fleet --context nobody": "find the hub",
		"unregister":        "write the name of a cluster",
		"unregister fleet/": "write NAME or NAMESPACE/NAME",
	} {
		_, err := run(strings.Fields(args)...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", args, err)
		}
		var code *exit.Error
		if errors.As(err, &code) && code.Code != exit.Uncertain {
			t.Errorf("%s: exit code %d", args, code.Code)
		}
	}
}

// What is exported is for Git: nothing secret is in it, and it does not depend on a hub that is there.
func TestRegisterExport(t *testing.T) {
	t.Setenv("KUBECONFIG", "/nowhere")
	out := must.Get(run("register", "edge1", "-n", "fleet", "--labels", "tier=prod", "--export", "--hub-id", "east")).Or(t)
	for _, want := range []string{"kind: ClusterRoleBinding", "name: cluster-admin", "chandler.dev/renew-token: 720h", "tier: prod"} {
		if !strings.Contains(out, want) {
			t.Errorf("there is no %q in\n%s", want, out)
		}
	}
	if strings.Contains(out, "\ndata:") || strings.Contains(out, "ownerReferences") {
		t.Errorf("it prints\n%s", out)
	}
}
