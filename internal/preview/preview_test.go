// SPDX-License-Identifier: Apache-2.0

package preview_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/chandler-hub/chandler/internal/golden"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/manifestchart"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/origin"
	"github.com/chandler-hub/chandler/internal/preview"
	"github.com/chandler-hub/chandler/internal/render"
)

func options() preview.Options {
	return preview.Options{
		Shared: hubconfig.Shared{
			HubID: "chandler", PlatformNamespaces: []string{"flux-system"},
			Chart: render.ManifestChart{URL: "http://chandler.chandler-system.svc", Name: manifestchart.Name, Digest: manifestchart.Digest()},
		},
		Now: time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC),
	}
}

// report renders the objects of one file.
func report(t *testing.T, in []byte, o preview.Options) (*preview.Report, []error) {
	t.Helper()
	objects, _, unreadable := preview.Parse("in.yaml", in)
	o.Incomplete = unreadable != nil
	fleet, err := preview.NewFleet(objects, origin.Policy{SecretNamespaces: []string{"flux-system"}})
	return preview.Render(fleet, o), []error{unreadable, err}
}

func printed(t *testing.T, r *preview.Report, explain bool) string {
	t.Helper()
	var out bytes.Buffer
	must.Do(t, preview.Print(&out, r, explain))
	return out.String()
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
	r, errs := report(t, in, o)
	for _, err := range errs {
		if err != nil {
			say("error", strings.Split(err.Error(), "\n")...)
		}
	}
	say("error", r.Errors...)
	say("warning", r.Warnings...)
	say("note", r.Notes...)
	return outcome{printed(t, r, o.Explain), lines.String()}
}

// TestGolden renders every fleet under testdata, as in.yaml has it. want.yaml is what comes out, errors.txt what is said about
// it (no file for nothing), and explain.yaml, where it is there, what comes out with --explain.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*/in.yaml") // go writes into testdata/fuzz what it finds
	if err != nil || len(files) == 0 {
		t.Fatal("there are no cases", err)
	}
	for _, file := range files {
		dir := filepath.Dir(file)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			in := must.Read(t, filepath.Join(dir, "in.yaml"))
			got := run(t, in, options())
			if again := run(t, in, options()); again != got {
				t.Errorf("not the same the second time: %s", cmp.Diff(got, again, cmp.AllowUnexported(outcome{})))
			}
			golden.Compare(t, filepath.Join(dir, "want.yaml"), got.out)
			golden.Compare(t, filepath.Join(dir, "errors.txt"), got.errors)
			explained := filepath.Join(dir, "explain.yaml")
			if _, err := os.Stat(explained); err == nil {
				o := options()
				o.Explain = true
				golden.Compare(t, explained, run(t, in, o).out)
			}
		})
	}
}

// TestOutputReadsBack holds that every object that is printed, with comments and without, is read as what it is.
func TestOutputReadsBack(t *testing.T) {
	files, err := filepath.Glob("testdata/*/in.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("there are no cases", err)
	}
	for _, file := range files {
		in := must.Read(t, file)
		for _, explain := range []bool{false, true} {
			o := options()
			o.Explain = explain
			r, _ := report(t, in, o)
			var want, got []map[string]any
			for _, u := range r.Shared {
				want = append(want, u.Object)
			}
			for _, c := range r.Clusters {
				for _, x := range c.Objects {
					want = append(want, x.Manifest.Object)
				}
			}
			for _, text := range strings.Split(printed(t, r, explain), "\n---\n") {
				var m map[string]any
				raw, err := yaml.YAMLToJSON([]byte(text))
				if err == nil {
					err = json.Unmarshal(raw, &m)
				}
				if err != nil {
					t.Fatalf("%s, explain %v: %v in:\n%s", file, explain, err, text)
				}
				if len(m) > 0 {
					got = append(got, m)
				}
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s, explain %v: -want +got:\n%s", file, explain, d)
			}
		}
	}
}

func TestOneCluster(t *testing.T) {
	in := []byte(`
{apiVersion: v1, kind: List, items: [
  {apiVersion: chandler.dev/v1alpha1, kind: ClusterRegistration, metadata: {name: a, namespace: x}, spec: {}},
  {apiVersion: chandler.dev/v1alpha1, kind: ClusterRegistration, metadata: {name: a, namespace: "y"}, spec: {}},
  {apiVersion: chandler.dev/v1alpha1, kind: ClusterRegistration, metadata: {name: b, namespace: "y"}, spec: {}},
]}`)
	cases := map[string]struct {
		cluster    string
		want, errs []string
	}{
		"All":       {want: []string{"x/a", "y/a", "y/b"}},
		"Name":      {cluster: "b", want: []string{"y/b"}},
		"TwoOfName": {cluster: "a", want: []string{"x/a", "y/a"}},
		"Full":      {cluster: "y/a", want: []string{"y/a"}},
		"Unknown":   {cluster: "c", errs: []string{`there is no cluster "c" in the files; there are x/a, y/a, y/b`}},
		"Elsewhere": {cluster: "x/b", errs: []string{`there is no cluster "x/b" in the files; there are x/a, y/a, y/b`}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := options()
			o.Cluster = tc.cluster
			r, _ := report(t, in, o)
			var got []string
			for _, c := range r.Clusters {
				got = append(got, c.Namespace+"/"+c.Name)
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("clusters: -want +got:\n%s", d)
			}
			if d := cmp.Diff(tc.errs, r.Errors); d != "" {
				t.Errorf("errors: -want +got:\n%s", d)
			}
		})
	}
}

// FuzzRender holds that no file brings the command down, and that what it prints is YAML.
func FuzzRender(f *testing.F) {
	files, err := filepath.Glob("testdata/*/in.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		in, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(in)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		o := options()
		o.Explain = true
		r, _ := report(t, in, o)
		for _, text := range strings.Split(printed(t, r, true), "\n---\n") {
			if _, err := yaml.YAMLToJSON([]byte(text)); err != nil {
				t.Errorf("%v in:\n%s", err, text)
			}
		}
	})
}

// TestStrict: with --strict, what is a warning without it is an error, and nothing else changes.
func TestStrict(t *testing.T) {
	in := must.Read(t, "testdata/unknown-facts/in.yaml")
	lax, _ := report(t, in, options())
	o := options()
	o.Strict = true
	strict, _ := report(t, in, o)
	if len(lax.Errors) > 0 || len(lax.Warnings) == 0 || len(strict.Warnings) > 0 {
		t.Errorf("errors %v, warnings %v, with --strict warnings %v", lax.Errors, lax.Warnings, strict.Warnings)
	}
	if d := cmp.Diff(lax.Warnings, strict.Errors); d != "" {
		t.Errorf("the warnings are not the errors: -want +got:\n%s", d)
	}
	if d := cmp.Diff(printed(t, lax, false), printed(t, strict, false)); d != "" {
		t.Errorf("what is printed is not the same: -want +got:\n%s", d)
	}
}
