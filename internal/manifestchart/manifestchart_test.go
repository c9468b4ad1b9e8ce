// SPDX-License-Identifier: Apache-2.0

package manifestchart

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
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

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"sigs.k8s.io/yaml"
)

// archiveDigest pins the archive. A change of the chart must come with a change of Version, in Chart.yaml too: a hub
// that is being updated serves the old bytes and the new ones at the same time, and they need different names.
const archiveDigest = "sha256:28fc643bd5a4665a206b34f92ae4e8efe014d432a377aa19c5bbb0f90ec2279d"

// olderDigests pins what former versions were. They are served as they were: Flux takes other bytes for another chart.
var olderDigests = map[string]string{
	"chandler-manifests-1.1.0.tgz": "sha256:a8a2698d7c95734d6149273983f647304e29d17b677597009ee1769b39b286d3",
	"chandler-manifests-1.0.0.tgz": "sha256:bc3c5bf7482a59c765a070400167711ba7f40edc0daf79c263da9d6a6100fa8e",
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

// TestArtifacts: a manifest names what is in its blobs, for each version. Its own digest is pinned: it is in the name of the source, so a new
// one reaches clusters as a new chart does.
func TestArtifacts(t *testing.T) {
	const manifestDigest = "sha256:3d35c1f8634555e744511e24f8e6b7abadaa33a69ecbcaeca8164fa6d9975d00"
	var chart struct{ Name, Version string }
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
	if Digest() != manifestDigest {
		t.Errorf("the manifest has the digest %s: change the pin if the chart has changed, and find out why if not", Digest())
	}
	if len(All()) != 1+len(olderDigests) {
		t.Errorf("there are %d artifacts", len(All()))
	}
	for _, a := range All() {
		var manifest ocispec.Manifest
		if err := json.Unmarshal(a.Manifest, &manifest); err != nil {
			t.Fatal(err)
		}
		if manifest.SchemaVersion != 2 || len(manifest.Layers) != 1 || manifest.Layers[0].Digest.String() != digest(a.Archive) ||
			manifest.Layers[0].Size != int64(len(a.Archive)) || manifest.Config.Digest.String() != digest(a.Config) {
			t.Errorf("got %s", a.Manifest)
		}
	}
}

// TestHandler asks what Flux asks: whether this is a registry, and for a manifest and its blobs by their digests.
func TestHandler(t *testing.T) {
	h := Handler()
	tag := func(data []byte) string { return `"` + digest(data) + `"` }
	now := Current()
	manifest, config, chart := "/v2/chandler-manifests/manifests/"+now.Digest(), "/v2/chandler-manifests/blobs/"+digest(now.Config), "/v2/chandler-manifests/blobs/"+archiveDigest
	const manifestType, blobType = "application/vnd.oci.image.manifest.v1+json", "application/octet-stream"
	older := Older()["chandler-manifests-1.0.0.tgz"]
	for _, c := range []struct {
		method, path, ifNoneMatch string
		status                    int
		contentType, etag         string
		body                      []byte
	}{
		{"GET", "/v2/", "", 200, "", "", nil},
		{"GET", manifest, "", 200, manifestType, tag(now.Manifest), now.Manifest},
		{"HEAD", manifest, "", 200, manifestType, tag(now.Manifest), nil},
		{"GET", manifest, tag(now.Manifest), 304, "", tag(now.Manifest), nil},
		{"GET", config, "", 200, blobType, tag(now.Config), now.Config},
		{"GET", chart, "", 200, blobType, tag(Archive()), Archive()},
		{"GET", "/v2/chandler-manifests/blobs/" + olderDigests["chandler-manifests-1.0.0.tgz"], "", 200, blobType, tag(older), older},
		{"GET", "/v2/chandler-manifests/manifests/1.2.0", "", 404, "", "", nil},
		{"GET", "/v2/chandler-manifests/tags/list", "", 404, "", "", nil},
		{"PUT", manifest, "", 405, "", "", nil},
		{"DELETE", chart, "", 405, "", "", nil},
		{"GET", "/", "", 404, "", "", nil},
		{"GET", "/index.yaml", "", 404, "", "", nil},
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

// TestHandlerOverHTTP is for what a recorder does not do: the length of a HEAD.
func TestHandlerOverHTTP(t *testing.T) {
	s := httptest.NewServer(Handler())
	defer s.Close()
	for path, want := range map[string]int{
		"/v2/chandler-manifests/manifests/" + Digest(): len(Current().Manifest), "/v2/chandler-manifests/blobs/" + archiveDigest: len(Archive()),
	} {
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
