// SPDX-License-Identifier: Apache-2.0

package diff_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	"helm.sh/helm/v4/pkg/chart/v2/loader"

	"github.com/chandler-hub/chandler/internal/diff"
	"github.com/chandler-hub/chandler/internal/inflate"
	"github.com/chandler-hub/chandler/internal/manifestchart"
	"github.com/chandler-hub/chandler/internal/preview"
	"github.com/chandler-hub/chandler/internal/render/document"
)

// shelf has the charts and folders of a case: charts/NAME-VERSION, and folders/BRANCH. It counts what is asked for.
type shelf struct {
	dir   string
	fleet *preview.Fleet
	asked map[string]int
}

func (s *shelf) Source(kind, namespace, name string) *inflate.Source {
	if spec := s.fleet.Source(kind, namespace, name); spec != nil {
		return &inflate.Source{Kind: kind, Namespace: namespace, Name: name, Spec: spec}
	}
	return nil
}

func (s *shelf) Local(string, string, string) string { return "" }

func (s *shelf) Chart(_ context.Context, spec *sourcev1.HelmChartSpec, source *inflate.Source) (*inflate.Chart, error) {
	name := spec.Chart + "-" + spec.Version
	own := source != nil && source.Kind == sourcev1.OCIRepositoryKind
	if own {
		ref, _ := source.Spec["ref"].(map[string]any)
		name = fmt.Sprint(ref["digest"])
	}
	s.asked[name]++
	if own && name == manifestchart.Digest() {
		files, err := archive.LoadArchiveFiles(bytes.NewReader(manifestchart.Archive()))
		return &inflate.Chart{Digest: name, Files: files}, err
	}
	dir := filepath.Join(s.dir, "charts", name)
	if _, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("there is no chart %s", name)
	}
	chart, err := loader.LoadDir(dir)
	if err != nil {
		return nil, err
	}
	out := &inflate.Chart{Digest: name}
	for _, one := range chart.Raw {
		out.Files = append(out.Files, &archive.BufferedFile{Name: one.Name, Data: one.Data})
	}
	return out, nil
}

func (s *shelf) Folder(_ context.Context, source *inflate.Source) (*inflate.Folder, error) {
	ref, _ := source.Spec["ref"].(map[string]any)
	branch, _ := ref["branch"].(string)
	root, err := filepath.Abs(filepath.Join(s.dir, "folders", branch))
	return &inflate.Folder{Digest: root, Root: root}, err
}

func (s *shelf) ConfigMap(namespace, name string) (map[string]string, bool) {
	doc := s.fleet.Document(namespace, document.Ref{Kind: "ConfigMap", Name: name})
	return doc.Data, doc.Found
}

func (s *shelf) HasSecret(namespace, name string) bool { return s.fleet.HasSecret(namespace, name) }

type maker struct{ *inflate.Inflater }

func (m maker) Objects(in *inflate.Input) (*inflate.Result, error) {
	return m.Inflater.Objects(context.Background(), in)
}

// withCharts has a case compare objects, if it has any charts.
func withCharts(dir string, in *diff.Input) (asked map[string]int) {
	if _, err := os.Stat(filepath.Join(dir, "charts")); err != nil {
		return nil
	}
	asked = map[string]int{}
	makes := func(f *preview.Fleet) diff.Making {
		return maker{inflate.New(&shelf{dir: dir, fleet: f, asked: asked})}
	}
	in.Charts = &diff.Makers{Old: makes(in.Before), New: makes(in.After)}
	return asked
}

// TestObjectsOnce: what is equal on many clusters is made once, and no output has what a Secret holds.
func TestObjectsOnce(t *testing.T) {
	dir := "testdata/charts"
	file := func(name string) string { return filepath.Join(dir, name+".yaml") }
	in := &diff.Input{Before: fleet(t, file("fleet"), file("old")), After: fleet(t, file("fleet"), file("new")), Options: options()}
	asked := withCharts(dir, in)
	r := diff.Compute(in)
	// us1 and us2 have the same; eu1 has a value of its own in the new fleet. Two add-ons have chart colors with other values on each side.
	if asked["web-1.0.0"] != 1 || asked["web-1.1.0"] != 2 || asked["colors-1.0.0"] != 4 {
		t.Errorf("charts were asked for %v times", asked)
	}
	for name, text := range outputs(t, r) {
		for _, password := range []string{"hunter1", "hunter2"} {
			// The values of a HelmRelease are no Secret, and they are told twice in each group.
			for line := range strings.Lines(text) {
				if strings.Contains(line, password) && !strings.Contains(line, "values.password") && name != "want.json" {
					t.Errorf("%s has it: %s", name, line)
				}
			}
		}
		if strings.Contains(text, "session: ") && !strings.Contains(text, "not shown") {
			t.Errorf("%s shows what is drawn by lot", name)
		}
	}
}
