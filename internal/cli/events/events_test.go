// SPDX-License-Identifier: Apache-2.0

package events_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/chandler-hub/chandler/internal/cli/clitest"
	"github.com/chandler-hub/chandler/internal/cli/events"
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
	for _, e := range []string{event("n1", "edge1", "ClusterReachable", "101"), event("n2", "edge2", "Elsewhere", "102"), "", event("n1", "edge1", "ClusterReachable", "101"), event("n3", "edge1", "CredentialExpiring", "103")} {
		h.Events <- e
	}
	for end := time.Now().Add(20 * time.Second); !strings.Contains(out.String(), "CredentialExpiring") && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if text := out.String(); strings.Count(text, "\n") != 4 || strings.Count(text, "ClusterReachable") != 1 || strings.Contains(text, "Elsewhere") {
		t.Errorf("it shows\n%s", text)
	}
}
