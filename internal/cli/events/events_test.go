// SPDX-License-Identifier: Apache-2.0

package events_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandler-hub/chandler/internal/cli/clitest"
	"github.com/chandler-hub/chandler/internal/cli/events"
	"github.com/chandler-hub/chandler/internal/identity"
)

// run runs `chandler events`.
func run(args string) (out, errs string, code int) {
	return clitest.Ends(root(), strings.Fields(args)...)
}

func root() *cobra.Command { return clitest.Root(events.New(clitest.At(time.Time{}), nil)) }

// TestEvents: which events are shown, in the order in which they came.
func TestEvents(t *testing.T) {
	for _, c := range []struct {
		args, reasons, errs string
		code                int
	}{
		{"events", "RolloutStarted Registered AddonFailed", "", 0},
		{"events -n fleet", "Registered", "", 0},
		{"events edge1", "Registered", "", 0},
		{"events edge3", "AddonFailed InstallFailed", "", 0},
		{"events set base", "RolloutStarted AddonFailed", "", 0},
		{"events edge2", "", "No events found.\n", 0},
		{"events nobody", "", `there is no cluster "nobody"`, 1},
		{"events a b c", "", "chandler events CLUSTER ADDON", 2},
	} {
		clitest.NewSmallHub(t, clitest.SmallFleet())
		out, errs, code := run(c.args)
		var reasons []string
		for i, line := range strings.Split(strings.TrimSpace(out), "\n") {
			if f := strings.Fields(line); i > 0 {
				reasons = append(reasons, f[2])
			}
		}
		if got := strings.Join(reasons, " "); got != c.reasons || code != c.code || !strings.Contains(errs, c.errs) {
			t.Errorf("%s: exit code %d, %s, and it shows\n%s", c.args, code, errs, out)
		}
	}
}

// TestEventsOfWhatIsGone: what happened to a cluster's delivery is told when the delivery is gone, wherever it was.
func TestEventsOfWhatIsGone(t *testing.T) {
	gone := func(cluster string) string {
		name := identity.Delivery("shop", types.NamespacedName{Namespace: "fleet", Name: cluster})
		return `
---
apiVersion: v1
kind: Event
metadata: {name: ` + name + `, namespace: shop, uid: gone-` + cluster + `, creationTimestamp: "2026-06-01T11:30:00Z"}
involvedObject: {apiVersion: chandler.dev/v1alpha1, kind: AddonDelivery, namespace: shop, name: ` + name + `}
type: Normal
reason: AddonRemoved
message: uninstalling add-on "web" from cluster fleet/` + cluster
	}
	h := clitest.NewSmallHub(t, clitest.SmallFleet()+gone("edge1")+gone("edge2"))
	out, errs, code := run("events edge1")
	if code != 0 || strings.Count(out, "AddonRemoved") != 1 || !strings.Contains(out, "from cluster fleet/edge1") ||
		!strings.Contains(out, "Registered") {
		t.Errorf("exit code %d, %s, and it shows\n%s", code, errs, out)
	}
	h.May = func(path string) bool { return path != "/api/v1/events" }
	if out, errs, code = run("events edge1"); code != 0 || strings.Contains(out, "AddonRemoved") || !strings.Contains(out, "Registered") {
		t.Errorf("who may not read all namespaces sees, with exit code %d, %s\n%s", code, errs, out)
	}
}

// TestEventsAreFollowed: what happens is shown once, and Ctrl-C is no error.
func TestEventsAreFollowed(t *testing.T) {
	h := clitest.NewSmallHub(t, clitest.SmallFleet())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd, out := root(), &clitest.Output{}
	cmd.SetArgs([]string{"events", "edge1", "--follow"})
	cmd.SetOut(out)
	ended := make(chan error, 1)
	go func() { ended <- cmd.ExecuteContext(ctx) }()
	event := func(uid, name, reason, version string) string {
		return `{"type":"ADDED","object":{"apiVersion":"v1","kind":"Event","metadata":{"name":"` + uid + `","namespace":"fleet","uid":"` + uid + `","resourceVersion":"` + version + `"},"involvedObject":{"apiVersion":"chandler.dev/v1alpha1","kind":"ClusterRegistration","namespace":"fleet","name":"` + name + `"},"type":"Normal","reason":"` + reason + `","message":"it happened"}}`
	}
	for _, e := range []string{event("n1", "edge1", "Reachable", "101"), event("n2", "edge2", "Elsewhere", "102"), "", event("n1", "edge1", "Reachable", "101"), event("n3", "edge1", "CredentialExpiring", "103")} {
		h.Events <- e
	}
	for end := time.Now().Add(20 * time.Second); !strings.Contains(out.String(), "CredentialExpiring") && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if text := out.String(); strings.Count(text, "\n") != 4 || strings.Count(text, "Reachable") != 1 || strings.Contains(text, "Elsewhere") {
		t.Errorf("it shows\n%s", text)
	}
}
