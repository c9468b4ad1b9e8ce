// SPDX-License-Identifier: Apache-2.0

package inflate_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/chandler-hub/chandler/internal/golden"
	"github.com/chandler-hub/chandler/internal/inflate"
	"github.com/chandler-hub/chandler/internal/must"
)

// from is a case of testdata: a chart or folder, ConfigMaps and Secrets.
type from struct {
	dir     string
	objects []*unstructured.Unstructured
	// charts counts how often a chart was asked for.
	charts int
}

func (f *from) find(kind, namespace, name string) *unstructured.Unstructured {
	for _, u := range f.objects {
		if u.GetKind() == kind && u.GetNamespace() == namespace && u.GetName() == name {
			return u
		}
	}
	return nil
}

func (f *from) Source(kind, namespace, name string) *inflate.Source {
	u := f.find(kind, namespace, name)
	if u == nil {
		return nil
	}
	spec, _ := u.Object["spec"].(map[string]any)
	return &inflate.Source{Kind: kind, Namespace: namespace, Name: name, Spec: spec}
}

func (f *from) Local(string, string, string) string { return "" }

func (f *from) Chart(context.Context, *sourcev1.HelmChartSpec, *inflate.Source) (*inflate.Chart, error) {
	f.charts++
	chart, err := loader.LoadDir(filepath.Join(f.dir, "chart"))
	if err != nil {
		return nil, err
	}
	out := &inflate.Chart{Digest: f.dir}
	for _, one := range chart.Raw {
		out.Files = append(out.Files, &archive.BufferedFile{Name: one.Name, Data: one.Data})
	}
	return out, nil
}

func (f *from) Folder(context.Context, *inflate.Source) (*inflate.Folder, error) {
	root, err := filepath.Abs(filepath.Join(f.dir, "folder"))
	return &inflate.Folder{Digest: f.dir, Root: root}, err
}

func (f *from) ConfigMap(namespace, name string) (map[string]string, bool) {
	u := f.find("ConfigMap", namespace, name)
	if u == nil {
		return nil, false
	}
	data, _, _ := unstructured.NestedStringMap(u.Object, "data")
	return data, true
}

func (f *from) HasSecret(namespace, name string) bool {
	return f.find("Secret", namespace, name) != nil
}

func read(t *testing.T, name string) []*unstructured.Unstructured {
	t.Helper()
	raw := must.Read(t, name)
	var out []*unstructured.Unstructured
	for _, doc := range strings.Split("\n"+string(raw), "\n---\n") {
		u := &unstructured.Unstructured{}
		must.Do(t, yaml.Unmarshal([]byte(doc), &u.Object))
		out = append(out, u)
	}
	return out
}

// TestObjects makes the objects of each case of testdata: the first object of its object.yaml is the Flux object.
func TestObjects(t *testing.T) {
	cases, err := filepath.Glob("testdata/*")
	if err != nil || len(cases) == 0 {
		t.Fatal("no cases", err)
	}
	for _, dir := range cases {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			all := read(t, filepath.Join(dir, "object.yaml"))
			f := inflate.New(&from{dir: dir, objects: all})
			o := &inflate.Object{Flux: all[0], Shared: all[1:], Version: all[0].GetAnnotations()["test/version"]}
			in, err := f.Input(o)
			var got string
			if err == nil {
				var r *inflate.Result
				if r, err = f.Objects(t.Context(), in); err == nil {
					got = write(t, r)
				}
			}
			if err != nil {
				got = "error: " + err.Error() + "\n"
			}
			if strings.Contains(got, "hunter2") && !strings.Contains(got, "kind: Secret") {
				t.Errorf("a password comes out: %s", got)
			}
			golden.Compare(t, filepath.Join(dir, "want.yaml"), got)
		})
	}
}

func write(t *testing.T, r *inflate.Result) string {
	t.Helper()
	var out strings.Builder
	for _, n := range r.Notes {
		out.WriteString("# note: " + n + "\n")
	}
	if r.Again != nil {
		out.WriteString("# comes out otherwise each time\n")
		return out.String()
	}
	for _, list := range [][]*unstructured.Unstructured{r.Objects, r.CRDs} {
		for _, u := range list {
			raw := must.Get(yaml.Marshal(u.Object)).Or(t)
			out.WriteString("---\n" + string(raw))
		}
	}
	return out.String()
}

// TestKept: what differs in nothing but its name is made once, and has one key.
func TestKept(t *testing.T) {
	all := read(t, "testdata/helm/object.yaml")
	source := &from{dir: "testdata/helm", objects: all}
	f := inflate.New(source)
	var keys []string
	for _, name := range []string{"a", "b"} {
		flux := all[0].DeepCopy()
		flux.SetName(name)
		must.Do(t, unstructured.SetNestedField(flux.Object, name, "spec", "kubeConfig", "secretRef", "name"))
		in := must.Get(f.Input(&inflate.Object{Flux: flux, Shared: all[1:], Version: "v1.34.2"})).Or(t)
		must.Get(f.Objects(t.Context(), in)).Or(t)
		keys = append(keys, in.Key)
	}
	if keys[0] != keys[1] || source.charts != 1 {
		t.Errorf("the keys are equal: %v, and the chart was asked for %d times", keys[0] == keys[1], source.charts)
	}
	flux := all[0].DeepCopy()
	must.Do(t, unstructured.SetNestedField(flux.Object, "9", "spec", "values", "tag"))
	if in, err := f.Input(&inflate.Object{Flux: flux, Shared: all[1:], Version: "v1.34.2"}); err != nil || in.Key == keys[0] {
		t.Errorf("other values have the same key (%v)", err)
	}
}
