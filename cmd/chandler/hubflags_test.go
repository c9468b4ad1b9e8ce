// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/chandler-hub/chandler/internal/cli/clitest"
	"github.com/chandler-hub/chandler/internal/cli/exit"
)

// hubFile is what a hub publishes, by which sets of other namespaces reach clusters of these.
const hubFile = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: chandler-hub, namespace: chandler-system}\ndata: {chart-url: \"\", hub-id: chandler, platform-namespaces: sets, register-all: \"\", secret-namespaces: \"\", flux-shards: \"\"}\n"

// TestFilesSayTheHubsFlags: diff and rollout plan take them from files as render does, and a flag that a user wrote wins.
func TestFilesSayTheHubsFlags(t *testing.T) {
	dir := t.TempDir()
	elsewhere := strings.Replace(clitest.SetFile, "{name: a}", "{name: a, namespace: sets}", 1)
	cluster := strings.Replace(clitest.RegistrationFile, "{name: a}", "{name: a, namespace: fleet}", 1)
	write(t, filepath.Join(dir, "old", "fleet.yaml"), cluster)
	write(t, filepath.Join(dir, "new", "fleet.yaml"), cluster+"---\n"+elsewhere+hubFile)
	for name, tc := range map[string]struct {
		flags []string
		code  int
		plan  string
	}{
		"Published": {nil, exit.Failed, "fleet/a"},
		"Written":   {[]string{"--platform-namespaces=others"}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			out, errs, code := clitest.Ends(newCommand(made), append([]string{"diff", "-f", filepath.Join(dir, "new"), "--against", filepath.Join(dir, "old")}, tc.flags...)...)
			if code != tc.code {
				t.Errorf("diff ends with %d\n%s%s", code, out, errs)
			}
			// The old files count if the new ones do not have it.
			if _, errs, code := clitest.Ends(newCommand(made), append([]string{"diff", "-f", filepath.Join(dir, "old"), "--against", filepath.Join(dir, "new")}, tc.flags...)...); code != tc.code {
				t.Errorf("the other way round it ends with %d\n%s", code, errs)
			}
			plan, err := run(append([]string{"rollout", "plan", "-f", filepath.Join(dir, "new")}, tc.flags...)...)
			if got := strings.Contains(plan, "fleet/a"); err != nil || got != (tc.plan != "") {
				t.Errorf("%v\n%s", err, plan)
			}
		})
	}
}
