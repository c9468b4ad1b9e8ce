// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"os"
	"strings"
	"testing"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// says runs the command line until it ends well and says all of the texts.
func (g *generation) says(t *testing.T, args string, wants ...string) (out string) {
	t.Helper()
	soon(t, args, func() (err error) {
		var errs string
		var code int
		out, errs, code = chandler(t, append(strings.Fields(args), "--kubeconfig", g.KubeconfigFile())...)
		if code != 0 {
			return errors.New(errs)
		}
		for _, want := range wants {
			if !strings.Contains(out, want) {
				return errors.New("it does not say " + want + ":\n" + out)
			}
		}
		return nil
	})
	return out
}

// happened: what a real hub, and Flux, have told of a cluster and a set.
func (g *generation) happened(t *testing.T) {
	g.says(t, "events one", "LAST-SEEN", "ClusterRegistration fleet/one", "HelmRelease flux-system/")
	g.says(t, "events set commands", "AddonSet flux-system/commands", "RevisionCreated")
	g.says(t, "events one cmd-layers", "HelmRelease flux-system/", "Helm release ", "Ready=True", "AddonSet flux-system/commands", "RevisionCreated")
	g.says(t, "events -n flux-system", "AddonSet flux-system/commands", "AddonSet flux-system/more")
	story := chandlerStart(t, "events", "one", "cmd-layers", "--follow", "--kubeconfig", g.KubeconfigFile())
	story.says(t, "Helm release ")
	g.patchRegistration(t, "one", `{"spec":{"pause":{"reason":"a test of its story"}}}`)
	story.says(t, "a test of its story")
	g.patchRegistration(t, "one", `{"spec":{"pause":null}}`)
	soon(t, "the pause is over", func() error { return g.addonOf(t.Context(), "one", "commands", "cmd-layers", hubv1.AddonReady, "") })
	check(t, story.cmd.Process.Signal(os.Interrupt))
	story.ends(t, 0)
}

// reconciles: Flux itself looks, and says so.
func (g *generation) reconciles(t *testing.T) {
	g.says(t, "reconcile one cmd-layers --with-source --timeout 2m", "cmd-layers: HelmRelease flux-system/", ": Ready (")
	g.patchRegistration(t, "one", `{"spec":{"pause":{"reason":"a test"}}}`)
	soon(t, "it is paused", func() error { return g.addonOf(t.Context(), "one", "commands", "cmd-layers", hubv1.AddonPaused, "") })
	if out, errs, code := chandler(t, "reconcile", "one", "cmd-layers", "--kubeconfig", g.KubeconfigFile()); code != 1 || !strings.Contains(out, "the hub keeps it suspended") {
		t.Errorf("of a paused cluster: exit code %d, %s\n%s", code, errs, out)
	}
	g.patchRegistration(t, "one", `{"spec":{"pause":null}}`)
	soon(t, "the pause is over", func() error { return g.addonOf(t.Context(), "one", "commands", "cmd-layers", hubv1.AddonReady, "") })
}
