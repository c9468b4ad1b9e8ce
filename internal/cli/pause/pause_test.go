// SPDX-License-Identifier: Apache-2.0

package pause_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/chandler-hub/chandler/internal/cli/clitest"
	"github.com/chandler-hub/chandler/internal/cli/pause"
	"github.com/chandler-hub/chandler/internal/cli/resume"
)

// run runs `chandler pause` or `chandler resume`.
func run(args ...string) (string, error) {
	from := clitest.At(time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC))
	out, _, err := clitest.Run([]*cobra.Command{pause.New(from, nil), resume.New(from, nil)}, args...)
	return out, err
}

// TestPause: the pause of a cluster is one patch of its registration.
func TestPause(t *testing.T) {
	h := clitest.NewListedHub(t)
	out, err := run("pause", "cluster", "berlin", "--until", "12h", "--reason", "freeze")
	if want := "ClusterRegistration fleet/berlin: paused; nothing is made, changed or removed there until 2026-06-02T00:00:00Z. What runs stays\n"; err != nil || out != want {
		t.Errorf("it says %q, and ends with %v", out, err)
	}
	want := []string{`/apis/chandler.dev/v1alpha1/namespaces/fleet/clusterregistrations/berlin chandler-rollout {"spec":{"pause":{"reason":"freeze","until":"2026-06-02T00:00:00Z"}}}`}
	if !slices.Equal(h.Patches, want) {
		t.Errorf("it writes %q", h.Patches)
	}
	if _, err = run("resume", "cluster", "berlin"); err == nil || !strings.Contains(err.Error(), "it is not paused") {
		t.Errorf("resume ends with %v", err)
	}
	out, err = run("pause", "clusterregistration.chandler.dev/berlin")
	if err != nil || !strings.HasSuffix(h.Patches[1], `{"spec":{"pause":{"reason":null,"until":null}}}`) ||
		!strings.Contains(out, "until you resume it: chandler resume cluster berlin -n fleet") {
		t.Errorf("without a reason it says %q, ends with %v, and has written %q", out, err, h.Patches)
	}
	if out, err = run("pause", "addonset.chandler.dev/nosuch"); err == nil || strings.Contains(err.Error(), "cluster") {
		t.Errorf("of a set that is not there it says %q, and ends with %v", out, err)
	}
	if out, err = run("resume", "cluster", "edge1", "-n", "stores"); err != nil || len(h.Patches) != 3 || !strings.HasSuffix(h.Patches[2], `{"spec":{"pause":null}}`) {
		t.Errorf("resume says %q, ends with %v, and has written %q", out, err, h.Patches)
	}
}
