// SPDX-License-Identifier: Apache-2.0

// Package enginetest renders the chart with the version of Helm that helm-controller is built with. It is a module of
// its own, since the hub itself does not need Helm. Run it with go test -count=1 ./... in this folder: the chart is
// outside of this module, so Go does not notice that a cached result is from an older chart.
package enginetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	chartutil "helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"sigs.k8s.io/kustomize/kyaml/kio"
	"sigs.k8s.io/yaml"
)

const cases = "../testdata"

// TestChart renders the values of each case. The result is what is in its want.yaml, byte for byte, or the failure with
// the message in its error.txt.
func TestChart(t *testing.T) {
	dirs, err := os.ReadDir(cases)
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no cases (%v)", err)
	}
	for _, dir := range dirs {
		t.Run(dir.Name(), func(t *testing.T) {
			got, err := render(t, read(t, dir.Name(), "values.yaml"))
			if strings.HasPrefix(dir.Name(), "fail-") {
				if err == nil {
					t.Fatalf("no failure, but\n%s", got)
				}
				// Helm puts the place in the template before it. A text may be a Secret's, so all of these have a
				// word in them that must not get out.
				if want := "): " + strings.TrimSpace(read(t, dir.Name(), "error.txt")); !strings.HasSuffix(err.Error(), want) || strings.Contains(err.Error(), "hunter") {
					t.Errorf("got the error\n%v\nwant it to end in\n%s", err, want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := read(t, dir.Name(), "want.yaml")
			if got != want {
				t.Fatalf("got\n%s\nwant\n%s", got, want)
			}
			sameObjects(t, got)
		})
	}
}

// render is what helm install does up to the text of the objects.
func render(t *testing.T, values string) (string, error) {
	t.Helper()
	chart, err := loader.LoadDir("../chart")
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := common.ReadValues([]byte(values))
	if err != nil {
		t.Fatal(err)
	}
	all, err := chartutil.ToRenderValues(chart, parsed, common.ReleaseOptions{Name: "release", Namespace: "default", IsInstall: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	files, err := engine.Render(chart, all)
	return files["chandler-manifests/templates/objects.yaml"], err
}

// sameObjects does what Helm does to the text next, as helm-controller always has a post-renderer, and checks that no
// object gets lost or changes: Helm splits with an expression of its own, and cuts white space.
func sameObjects(t *testing.T, rendered string) {
	t.Helper()
	var want []any
	for _, text := range strings.SplitAfter("---\n"+rendered, "\n---\n")[1:] {
		want = append(want, parse(t, strings.TrimSuffix(text, "---\n")))
	}
	var merged []string
	for _, text := range split(rendered) {
		nodes, err := kio.ParseAll(text)
		if err != nil {
			t.Fatal(err)
		}
		text, err := kio.StringAll(nodes)
		if err != nil {
			t.Fatal(err)
		}
		merged = append(merged, text)
	}
	var got []any
	for _, text := range split(strings.Join(merged, "---\n")) {
		got = append(got, parse(t, text))
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("Helm makes of it\n%v\nwant\n%v", got, want)
	}
}

// split returns Helm's documents in their order.
func split(text string) []string {
	byName := releaseutil.SplitManifests(text)
	var documents []string
	for i := range len(byName) {
		documents = append(documents, byName[fmt.Sprintf("manifest-%d", i)])
	}
	return documents
}

// parse keeps all digits of a number.
func parse(t *testing.T, text string) any {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var object any
	if err := decoder.Decode(&object); err != nil {
		t.Fatal(err)
	}
	return object
}

func read(t *testing.T, dir, file string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(cases, dir, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
