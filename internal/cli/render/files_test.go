// SPDX-License-Identifier: Apache-2.0

//go:build unix

package render_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chandler-hub/chandler/internal/cli/clitest"
	"github.com/chandler-hub/chandler/internal/must"
)

// TestOnlyRegularFiles: a pipe in a folder does not hang the command, and a link may not lead out of the folder.
func TestOnlyRegularFiles(t *testing.T) {
	dir, other := t.TempDir(), filepath.Join(t.TempDir(), "other.yaml")
	clitest.Write(t, filepath.Join(dir, "in", "fleet.yaml"), clitest.RegistrationFile)
	clitest.Write(t, filepath.Join(dir, "set.txt"), clitest.SetFile)
	clitest.Write(t, other, "replicas: 1\n")
	for link, target := range map[string]string{"set.yaml": "set.txt", "out.yaml": other, "gone.yaml": "nothing"} {
		must.Do(t, os.Symlink(target, filepath.Join(dir, link)))
	}
	must.Do(t, syscall.Mkfifo(filepath.Join(dir, "pipe.yaml"), 0o600))
	done := make(chan string, 1)
	go func() {
		said, err := rendered(t, dir, "", "-f", dir)
		if err == nil || err.Error() != "2 errors" {
			said += "ends with " + err.Error()
		}
		done <- said
	}()
	select {
	case said := <-done:
		for _, want := range []string{"warning: pipe.yaml is no regular file (left out)", "error: out.yaml is a link that leads out of the folder", "nothing: no such file"} {
			if !strings.Contains(said, want) {
				t.Errorf("%q is missing", want)
			}
		}
		if strings.Contains(said, "ends with") || strings.Contains(said, "set") || t.Failed() {
			t.Errorf("render says\n%s", said)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the command hangs")
	}
}
