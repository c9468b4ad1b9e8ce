// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chandler-hub/chandler/internal/cli/clitest"
	"github.com/chandler-hub/chandler/internal/cli/diff"
	"github.com/chandler-hub/chandler/internal/cli/exit"
)

// TestBooleansAreTold: render and diff warn of a word that YAML makes true or false of; of what is there already, diff does not.
func TestBooleansAreTold(t *testing.T) {
	dir, old := t.TempDir(), t.TempDir()
	clitest.Write(t, filepath.Join(old, "fleet.yaml"), clitest.RegistrationFile+"---\n"+clitest.SetFile)
	clitest.Write(t, filepath.Join(dir, "fleet.yaml"), clitest.RegistrationFile+"---\n"+strings.Replace(clitest.SetFile, "spec: {", "spec: {variables: {debug: y}, ", 1))
	const want = `fleet.yaml, line 9: AddonSet default/a: spec.variables.debug: y without quotes is true for kubectl apply and the hub; ` +
		"write \"y\" if it is text, and true if it is not\n"
	told, err := rendered(t, dir, "", "-f", dir)
	if err != nil || told != "warning: "+want {
		t.Errorf("render ends with %v, and says\n%s", err, told)
	}
	told, err = rendered(t, dir, "", "-f", dir, "--strict")
	if err == nil || told != "error: "+want {
		t.Errorf("render --strict ends with %v, and says\n%s", err, told)
	}
	for args, says := range map[string]bool{"diff -f " + dir + " --against " + old: true, "diff -f " + old + " --against " + dir: false} {
		_, told, code := clitest.Ends(clitest.Root(diff.New(clitest.At(time.Time{}), nil)), strings.Fields(args)...)
		if strings.Contains(told, want) != says || code == exit.Uncertain {
			t.Errorf("%s ends with %d, and says\n%s", args, code, told)
		}
	}
}
