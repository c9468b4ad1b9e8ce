// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-hub/chandler/internal/fetch"
	"github.com/chandler-hub/chandler/internal/inflate"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.Main()
	os.Exit(m.Run())
}

// packed writes a chart of some files as an archive.
func packed(t *testing.T, files map[string]string) string {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	w := tar.NewWriter(zip)
	for name, text := range files {
		head := &tar.Header{Name: name, Mode: 0o644, Size: int64(len(text)), Typeflag: tar.TypeReg}
		if to, ok := strings.CutPrefix(text, "-> "); ok {
			head.Typeflag, head.Linkname, head.Size, text = tar.TypeSymlink, to, 0, ""
		}
		must.Do(t, w.WriteHeader(head))
		must.Get(w.Write([]byte(text))).Or(t)
	}
	must.Do(t, w.Close())
	must.Do(t, zip.Close())
	name := filepath.Join(t.TempDir(), "chart.tgz")
	must.Do(t, os.WriteFile(name, out.Bytes(), 0o600))
	return name
}

func task(chart string) *inflate.Task {
	flux := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
		"metadata": map[string]any{"name": "a", "namespace": "fleet"}, "spec": map[string]any{"interval": "10m", "chart": map[string]any{
			"spec": map[string]any{"chart": "a", "sourceRef": map[string]any{"kind": "HelmRepository", "name": "charts"}}}}}}
	return &inflate.Task{Flux: flux, Source: &inflate.Source{Kind: "HelmRepository", Namespace: "fleet", Name: "charts"}, Chart: &inflate.Chart{Digest: chart, Path: chart}}
}

const about = "apiVersion: v2\nname: a\nversion: 1.0.0\n"

// TestHostile: what a chart does to the process in which it is made does nothing to this one, and is told.
func TestHostile(t *testing.T) {
	box := &sandbox.Box{Making: 20 * time.Second}
	t.Cleanup(box.Close)
	t.Setenv("TOKEN_OF_CI", "hunter2")
	outside := filepath.Join(t.TempDir(), "secret.yaml")
	must.Do(t, os.WriteFile(outside, []byte("hunter2: a"), 0o600))
	for name, tc := range map[string]struct {
		files map[string]string
		err   string
	}{
		"fills the memory":            {files: map[string]string{"a/templates/a.yaml": `{{ $a := "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" }}{{ range until 100000000 }}{{ $a = printf "%s%s" $a $a }}{{ end }}`}, err: "it took more than 1024 MiB of memory"},
		"calls itself":                {files: map[string]string{"a/templates/a.yaml": `{{ define "a" }}{{ include "a" . }}{{ end }}{{ include "a" . }}`}, err: "rendering template has a nested reference name"},
		"asks for the environment":    {files: map[string]string{"a/templates/a.yaml": `{{ env "TOKEN_OF_CI" }}`}, err: `function "env" not defined`},
		"leads out of its folder":     {files: map[string]string{"a/../../b.yaml": "a: b"}, err: "its archive: "},
		"has a link":                  {files: map[string]string{"a/values.yaml": "-> " + outside, "a/templates/a.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: {{ .Values.hunter2 }}}}"}, err: ""},
		"reads a file":                {files: map[string]string{"a/templates/a.yaml": `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: "{{ .Files.Get "` + outside + `" }}"}}`}},
		"looks up what a cluster has": {files: map[string]string{"a/templates/a.yaml": `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: "{{ lookup "v1" "Secret" "" "" }}"}}`}},
		"resolves a name":             {files: map[string]string{"a/templates/a.yaml": `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: "{{ getHostByName "localhost" }}"}}`}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.files["a/Chart.yaml"] = about
			out, err := box.Make(t.Context(), task(packed(t, tc.files)))
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("want an error with %q, and it is %v", tc.err, err)
				}
				return
			}
			if err != nil || len(out.Objects) != 1 {
				t.Fatalf("%v, %v", out, err)
			}
			if data, _, _ := unstructured.NestedString(out.Objects[0].Object, "data", "a"); strings.Contains(data, "hunter2") || strings.Contains(data, "127.") {
				t.Errorf("it has got %s", data)
			}
		})
	}
	// The process is there again for the next one.
	good := packed(t, map[string]string{"a/Chart.yaml": about, "a/templates/a.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"})
	if out, err := box.Make(t.Context(), task(good)); err != nil || len(out.Objects) != 1 {
		t.Errorf("afterwards: %v, %v", out, err)
	}
}

// TestForEver: a chart that does not end is ended.
func TestForEver(t *testing.T) {
	box := &sandbox.Box{Making: time.Second}
	t.Cleanup(box.Close)
	name := packed(t, map[string]string{"a/Chart.yaml": about,
		"a/templates/a.yaml": `{{ range until 1000000 }}{{ range until 1000 }}{{ $a := sha256sum "a" }}{{ end }}{{ end }}`})
	if _, err := box.Make(t.Context(), task(name)); err == nil || err.Error() != "it was not done in 1s" {
		t.Errorf("it is ended with %v", err)
	}
}

// TestFetchRefuses: nothing but what has an address of a source is fetched.
func TestFetchRefuses(t *testing.T) {
	box := &sandbox.Box{}
	t.Cleanup(box.Close)
	for url, want := range map[string]string{
		"http://169.254.169.254/latest": "169.254.169.254 is no address of a source",
		"http://[fe80::1%25lo]/":        "fe80::1%lo is no address of a source",
		"file:///etc":                   "is not fetched from: http and https are",
	} {
		r := &fetch.Request{Kind: "HelmRepository", Spec: map[string]any{"url": url}, Chart: "a", Dir: t.TempDir()}
		if _, err := box.Fetch(t.Context(), r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", url, err)
		}
	}
	r := &fetch.Request{Kind: "Bucket", Spec: map[string]any{"endpoint": "a"}, Dir: t.TempDir()}
	if _, err := box.Fetch(t.Context(), r); err == nil || !strings.Contains(err.Error(), "a Bucket is not fetched: say by --local-sources where a copy of its content is") {
		t.Errorf("a Bucket: %v", err)
	}
}
