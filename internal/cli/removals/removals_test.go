// SPDX-License-Identifier: Apache-2.0

package removals_test

import (
	"testing"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-hub/chandler/internal/cli/clitest"
	"github.com/chandler-hub/chandler/internal/cli/removals"
)

// run runs `chandler removals list`.
func run() (out, errs string, err error) {
	from := clitest.At(time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC))
	return clitest.Run([]*cobra.Command{removals.New(from, nil)}, "removals", "list")
}

// TestRemovalsList: the sets whose guard holds something.
func TestRemovalsList(t *testing.T) {
	h := clitest.NewListedHub(t)
	if out, errs, err := run(); err != nil || out != "" || errs != "No held removals found.\n" {
		t.Errorf("it says %q and %q, and ends with %v", out, errs, err)
	}
	held := map[string]any{"count": int64(12), "hash": "0123456789abcdef", "since": "2026-06-01T09:00:00Z", "sample": []any{"fleet/berlin (web)"}}
	if err := unstructured.SetNestedField(h.Objects[3].Object, held, "status", "heldRemovals"); err != nil {
		t.Fatal(err)
	}
	out, _, err := run()
	clitest.Golden(t, "removals.txt", out)
	if err != nil {
		t.Error(err)
	}
}
