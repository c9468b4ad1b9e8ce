// SPDX-License-Identifier: Apache-2.0

package preview_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-hub/chandler/internal/manifestchart"
	"github.com/chandler-hub/chandler/internal/origin"
	"github.com/chandler-hub/chandler/internal/preview"
	"github.com/chandler-hub/chandler/internal/render"
)

var update = flag.Bool("update", false, "write the golden files")

func options() preview.Options {
	return preview.Options{
		HubID: "chandler", PlatformNamespaces: []string{"flux-system"},
		Chart: render.ManifestChart{URL: "http://chandler.chandler-system.svc/charts", Name: manifestchart.Name, Version: manifestchart.Version},
		Now:   time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC),
	}
}

// outcome is all that somebody sees.
type outcome struct{ out, errors string }

func run(t *testing.T, in []byte, o preview.Options) outcome {
	t.Helper()
	var lines strings.Builder
	say := func(prefix string, texts ...string) {
		for _, s := range texts {
			lines.WriteString(prefix + ": " + s + "\n")
		}
	}
	joined := func(err error) {
		if err != nil {
			say("error", strings.Split(err.Error(), "\n")...)
		}
	}
	objects, _, err := preview.Parse("in.yaml", in)
	joined(err)
	fleet, err := preview.NewFleet(objects, origin.Policy{SecretNamespaces: []string{"flux-system"}})
	joined(err)
	report := preview.Render(fleet, o)
	say("error", report.Errors...)
	say("warning", report.Warnings...)
	var out bytes.Buffer
	if err := preview.Print(&out, report, o.Explain); err != nil {
		t.Fatal(err)
	}
	return outcome{out.String(), lines.String()}
}

// TestGolden renders every fleet under testdata, as in.yaml has it. want.yaml is what comes out, errors.txt what is said about
// it (no file for nothing), and explain.yaml, where it is there, what comes out with --explain.
func TestGolden(t *testing.T) {
	dirs, err := filepath.Glob("testdata/*")
	if err != nil || len(dirs) == 0 {
		t.Fatal("there are no cases", err)
	}
	for _, dir := range dirs {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			in, err := os.ReadFile(filepath.Join(dir, "in.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			got := run(t, in, options())
			if again := run(t, in, options()); again != got {
				t.Errorf("not the same the second time: %s", cmp.Diff(got, again, cmp.AllowUnexported(outcome{})))
			}
			golden(t, filepath.Join(dir, "want.yaml"), got.out)
			golden(t, filepath.Join(dir, "errors.txt"), got.errors)
			explained := filepath.Join(dir, "explain.yaml")
			if _, err := os.Stat(explained); err == nil {
				o := options()
				o.Explain = true
				golden(t, explained, run(t, in, o).out)
			}
		})
	}
}

// golden compares a text with a file; no file is an empty one.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.Remove(file); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if got != "" {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	want, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s: -want +got, and go test -update writes it:\n%s", file, d)
	}
}
