// SPDX-License-Identifier: Apache-2.0

package manifestchart

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// archiveDigest pins the archive. A change of the chart must come with a change of Version, in Chart.yaml too: a hub
// that is being updated serves the old bytes and the new ones at the same time, and they need different names.
const archiveDigest = "28fc643bd5a4665a206b34f92ae4e8efe014d432a377aa19c5bbb0f90ec2279d"

// olderDigests pins what former versions were. They are served as they were: Flux takes other bytes for another chart.
var olderDigests = map[string]string{
	"chandler-manifests-1.1.0.tgz": "a8a2698d7c95734d6149273983f647304e29d17b677597009ee1769b39b286d3",
	"chandler-manifests-1.0.0.tgz": "bc3c5bf7482a59c765a070400167711ba7f40edc0daf79c263da9d6a6100fa8e",
}

func TestArchiveIsPinned(t *testing.T) {
	if got := digest(Archive()); got != archiveDigest {
		t.Errorf("the chart has the digest %s: keep the archive of the former one in older, change Version, then the pin", got)
	}
	if len(Older()) != len(olderDigests) {
		t.Errorf("there are %d former versions, and %d are pinned", len(Older()), len(olderDigests))
	}
	for name, data := range Older() {
		if got := digest(data); got != olderDigests[name] || name == archiveName {
			t.Errorf("%s has the digest %s", name, got)
		}
	}
}

// TestArchiveHasTheChart finds what the archive leaves out of the folder, and what would differ between two builds.
func TestArchiveHasTheChart(t *testing.T) {
	zip, err := gzip.NewReader(bytes.NewReader(Archive()))
	if err != nil {
		t.Fatal(err)
	}
	if zip.Name != "" || !zip.ModTime.IsZero() {
		t.Errorf("the gzip header has the name %q and the time %v", zip.Name, zip.ModTime)
	}
	got := map[string]string{}
	for r := tar.NewReader(zip); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if !h.ModTime.Equal(epoch) || h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.Gname != "" || h.Mode != 0o644 {
			t.Errorf("%s has the header %+v", h.Name, h)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		got[h.Name] = string(data)
	}
	want := map[string]string{}
	err = filepath.WalkDir("chart", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		want[Name+strings.TrimPrefix(filepath.ToSlash(path), "chart")] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(want) {
		t.Errorf("the archive has %d files, the folder %d", len(got), len(want))
	}
	for name, data := range want {
		if got[name] != data {
			t.Errorf("%s differs", name)
		}
	}
}

type metadata struct {
	APIVersion, Name, Version, Type, Description, Digest string
	URLs                                                 []string
}

func TestIndexHasTheChart(t *testing.T) {
	var chart metadata
	data, err := files.ReadFile("chart/Chart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(data, &chart); err != nil {
		t.Fatal(err)
	}
	if chart.Name != Name || chart.Version != Version {
		t.Errorf("Chart.yaml has %s %s, the constants %s %s", chart.Name, chart.Version, Name, Version)
	}
	var index struct {
		APIVersion string
		Entries    map[string][]metadata
	}
	if err := yaml.Unmarshal(Index(), &index); err != nil {
		t.Fatal(err)
	}
	if index.APIVersion != "v1" || len(index.Entries) != 1 || len(index.Entries[Name]) != 1+len(olderDigests) {
		t.Fatalf("got\n%s", Index())
	}
	for _, e := range index.Entries[Name][1:] {
		if name := Name + "-" + e.Version + ".tgz"; e.Digest != olderDigests[name] || len(e.URLs) != 1 || e.URLs[0] != name {
			t.Errorf("a former version is listed as %+v", e)
		}
	}
	got := index.Entries[Name][0]
	if got.Digest != digest(Archive()) || len(got.URLs) != 1 || got.URLs[0] != Name+"-"+Version+".tgz" {
		t.Errorf("the index has the digest %s and the URLs %v", got.Digest, got.URLs)
	}
	got.Digest, got.URLs = "", nil
	if g, c := toYAML(t, got), toYAML(t, chart); g != c {
		t.Errorf("the index has\n%s\nChart.yaml\n%s", g, c)
	}
}

func toYAML(t *testing.T, v any) string {
	t.Helper()
	data, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestHandler(t *testing.T) {
	h := Handler()
	archiveTag, indexTag := `"`+digest(Archive())+`"`, `"`+digest(Index())+`"`
	for _, c := range []struct {
		method, path, ifNoneMatch string
		status                    int
		contentType, etag         string
		body                      []byte
	}{
		{"GET", "/index.yaml", "", 200, "application/yaml", indexTag, Index()},
		{"HEAD", "/index.yaml", "", 200, "application/yaml", indexTag, nil},
		{"GET", "/index.yaml", indexTag, 304, "", indexTag, nil},
		{"GET", "/index.yaml", archiveTag, 200, "application/yaml", indexTag, Index()},
		{"GET", "/chandler-manifests-1.2.0.tgz", "", 200, "application/gzip", archiveTag, Archive()},
		{"GET", "/chandler-manifests-1.0.0.tgz", "", 200, "application/gzip", `"` + olderDigests["chandler-manifests-1.0.0.tgz"] + `"`, Older()["chandler-manifests-1.0.0.tgz"]},
		{"HEAD", "/chandler-manifests-1.2.0.tgz", "", 200, "application/gzip", archiveTag, nil},
		{"GET", "/chandler-manifests-1.2.0.tgz", archiveTag, 304, "", archiveTag, nil},
		{"POST", "/index.yaml", "", 405, "", "", nil},
		{"DELETE", "/chandler-manifests-1.2.0.tgz", "", 405, "", "", nil},
		{"GET", "/", "", 404, "", "", nil},
		{"GET", "/index.yaml/", "", 404, "", "", nil},
		{"GET", "/chandler-manifests-0.9.0.tgz", "", 404, "", "", nil},
	} {
		r := httptest.NewRequest(c.method, c.path, nil)
		if c.ifNoneMatch != "" {
			r.Header.Set("If-None-Match", c.ifNoneMatch)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.status {
			t.Errorf("%s %s: status %d", c.method, c.path, w.Code)
		}
		if w.Code >= 400 {
			continue
		}
		if w.Header().Get("ETag") != c.etag || w.Header().Get("Content-Type") != c.contentType {
			t.Errorf("%s %s: header %v", c.method, c.path, w.Header())
		}
		if !bytes.Equal(w.Body.Bytes(), c.body) {
			t.Errorf("%s %s: %d bytes, want %d", c.method, c.path, w.Body.Len(), len(c.body))
		}
	}
}

// TestHandlerOverHTTP is for what a recorder does not do: the length of a HEAD, and a handler below a path.
func TestHandlerOverHTTP(t *testing.T) {
	s := httptest.NewServer(http.StripPrefix("/charts", Handler()))
	defer s.Close()
	for path, want := range map[string]int{"/charts/index.yaml": len(Index()), "/charts/" + archiveName: len(Archive())} {
		for _, method := range []string{"GET", "HEAD"} {
			r, err := http.NewRequest(method, s.URL+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := s.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if got := resp.Header.Get("Content-Length"); resp.StatusCode != 200 || got != strconv.Itoa(want) {
				t.Errorf("%s %s: %s, length %s, want %d", method, path, resp.Status, got, want)
			}
		}
	}
}

// TestEngineTestHasHelmOfHelmController holds the module that tests the templates to the Helm that will render them.
func TestEngineTestHasHelmOfHelmController(t *testing.T) {
	sum := regexp.MustCompile(`(?m)^helm\.sh/helm/\S+ \S+ h1:\S+$`)
	var found [2]string
	for i, file := range []string{"enginetest/go.sum", "../../hack/tools/helm-controller/go.sum"} {
		data, err := os.ReadFile(filepath.FromSlash(file))
		if err != nil {
			t.Fatal(err)
		}
		found[i] = sum.FindString(string(data))
	}
	if found[0] == "" || found[0] != found[1] {
		t.Errorf("the engine test has %q, helm-controller %q", found[0], found[1])
	}
}
