// SPDX-License-Identifier: Apache-2.0

package doctor_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/chandler-hub/chandler/internal/cli/clitest"
	"github.com/chandler-hub/chandler/internal/cli/doctor"
	"github.com/chandler-hub/chandler/internal/cli/exit"
)

// TestDoctorNotReached: exit code 2 is for a hub that does not answer, and for flags that are wrong.
func TestDoctorNotReached(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config")
	text := "{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}], contexts: [{name: c, context: {cluster: c}}]}"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"doctor --kubeconfig " + config:                "no hub at https://127.0.0.1:1: it refuses the connection; is the kubeconfig right?",
		"doctor -o wide --kubeconfig " + config:        `--output is "wide": write text, json or yaml`,
		"doctor --context none --kubeconfig " + config: "find the hub",
	} {
		_, _, err := clitest.Run([]*cobra.Command{doctor.New(clitest.At(time.Time{}), nil)}, strings.Fields(args)...)
		code := &exit.Error{}
		if !errors.As(err, &code) || code.Code != 2 || !strings.Contains(err.Error(), want) {
			t.Errorf("chandler %s: %v, want exit code 2 and %q", args, err, want)
		}
	}
}
