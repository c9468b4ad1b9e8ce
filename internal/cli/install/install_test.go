// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/chandler-hub/chandler/internal/cli/clitest"
	"github.com/chandler-hub/chandler/internal/cli/exit"
	"github.com/chandler-hub/chandler/internal/cli/install"
	"github.com/chandler-hub/chandler/internal/cli/uninstall"
)

// TestInstallRefuses: what is wrong with a command is said before a cluster is asked, with the exit code of a wrong command.
func TestInstallRefuses(t *testing.T) {
	t.Setenv("KUBECONFIG", "/nowhere")
	from := clitest.At(time.Time{})
	for args, want := range map[string]string{
		"install":                                      "--image: say which image",
		"install --image hub":                          "no tag",
		"install --image hub:v1 fleet":                 "stand behind --",
		"install --image hub:v1 --dry-run=client":      "write none or server",
		"install --image hub:v1 --replicas=-1":         "--replicas",
		"install --image hub:v1 -n A":                  `namespace "A"`,
		"install --image hub:v1 -- fleet":              `"fleet" is no flag of the hub`,
		"install --image hub:v1 -- --register-all=all": "--register-all",
		"install --image hub:v1 -- --nonsense":         "unknown flag: --nonsense",
		"install --image hub:v1 --export -- --nope=1":  "unknown flag: --nope",
		"install --image hub:v1 -- --log-level=loud":   `--log-level "loud"`,
		"uninstall --addons=delete":                    "write keep, remove or orphan",
		"uninstall now":                                `"now" is no flag`,
	} {
		_, _, err := clitest.Run([]*cobra.Command{install.New(from, nil), uninstall.New(from, nil)}, strings.Fields(args)...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
		var code *exit.Error
		if errors.As(err, &code) && code.Code != exit.Uncertain {
			t.Errorf("%s: exit code %d", args, code.Code)
		}
	}
}
