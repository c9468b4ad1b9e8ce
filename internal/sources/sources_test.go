// SPDX-License-Identifier: Apache-2.0

package sources

import (
	"os"
	"path/filepath"
	"testing"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/chandler-hub/chandler/internal/must"
)

func write(t *testing.T, file, text string) {
	t.Helper()
	must.Do(t, os.MkdirAll(filepath.Dir(file), 0o700))
	must.Do(t, os.WriteFile(file, []byte(text), 0o600))
}

// TestLinkedChart: a chart in a copy of a repository is none if it is elsewhere: whoever writes a link into a clone could have the diff show
// other files of the machine.
func TestLinkedChart(t *testing.T) {
	dir := t.TempDir()
	at, elsewhere := filepath.Join(dir, "charts"), filepath.Join(dir, "elsewhere")
	write(t, filepath.Join(at, "own", "Chart.yaml"), "name: own\n")
	write(t, filepath.Join(elsewhere, "Chart.yaml"), "name: web\n")
	write(t, filepath.Join(dir, "a.tgz"), "hunter2")
	for name, to := range map[string]string{"web": elsewhere, "packed-1.0.0.tgz": filepath.Join(dir, "a.tgz"), "inner": filepath.Join(at, "own")} {
		must.Do(t, os.Symlink(to, filepath.Join(at, name)))
	}
	for name, there := range map[string]bool{"own": true, "inner": true, "web": false, "packed": false, "../elsewhere": false} {
		if got, err := localChart(at, &sourcev1.HelmChartSpec{Chart: name, Version: "1.0.0"}); (err == nil) != there {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}
