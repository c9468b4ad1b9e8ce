// SPDX-License-Identifier: Apache-2.0

package fetch_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chandler-hub/chandler/internal/fetch"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/test/localfleet"
)

func archived(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	w := tar.NewWriter(zip)
	for name, text := range files {
		head := &tar.Header{Name: name, Mode: 0o644, Size: int64(len(text)), Typeflag: tar.TypeReg}
		if to, ok := strings.CutPrefix(text, "-> "); ok {
			head.Typeflag, head.Linkname, head.Size, text = tar.TypeSymlink, to, 0, ""
		}
		if w.WriteHeader(head) != nil {
			t.Fatal("no header")
		}
		must.Get(w.Write([]byte(text))).Or(t)
	}
	if w.Close() != nil || zip.Close() != nil {
		t.Fatal("not closed")
	}
	return out.Bytes()
}

// chartOf is the archive of a chart.
func chartOf(t *testing.T, version string) []byte {
	return archived(t, map[string]string{"web/Chart.yaml": "apiVersion: v2\nname: web\nversion: " + version + "\n"})
}

func digest(raw []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(raw)) }

// registry serves artifacts as a registry does: by repository and tag.
func registry(t *testing.T, mediaType string, artifacts map[string][]byte) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	blobs := map[string][]byte{}
	tags := map[string][]string{}
	manifests := map[string][]byte{}
	for name, raw := range artifacts {
		repo, tag, _ := strings.Cut(name, ":")
		config := []byte("{}")
		blobs[digest(raw)], blobs[digest(config)] = raw, config
		m, err := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
			"config": map[string]any{"mediaType": "application/vnd.cncf.flux.config.v1+json", "digest": digest(config), "size": len(config)},
			"layers": []any{map[string]any{"mediaType": mediaType, "digest": digest(raw), "size": len(raw)}}})
		if err != nil {
			t.Fatal(err)
		}
		tags[repo], manifests[repo+":"+tag] = append(tags[repo], tag), m
	}
	mux.HandleFunc("GET /v2/{repo}/tags/list", func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"tags": tags[r.PathValue("repo")]})
	})
	mux.HandleFunc("GET /v2/{repo}/manifests/{ref}", func(w http.ResponseWriter, r *http.Request) {
		m := manifests[r.PathValue("repo")+":"+r.PathValue("ref")]
		if m == nil {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
		w.Header().Set("Docker-Content-Digest", digest(m))
		_, _ = w.Write(m)
	})
	mux.HandleFunc("GET /v2/{repo}/blobs/{digest}", func(w http.ResponseWriter, r *http.Request) {
		raw := blobs[r.PathValue("digest")]
		w.Header().Set("Content-Length", fmt.Sprint(len(raw)))
		_, _ = w.Write(raw)
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func do(t *testing.T, r *fetch.Request) (*fetch.Content, error) {
	t.Helper()
	r.Dir = t.TempDir()
	return (&fetch.Fetcher{}).Do(t.Context(), r)
}

// files are the names and texts of what was fetched.
func files(t *testing.T, dir string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(name)
		rel, _ := filepath.Rel(dir, name)
		out = append(out, filepath.ToSlash(rel)+"="+string(raw))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(out)
	return out
}

// TestHelmRepository: the newest of a range, the version that is named, and credentials for the host alone.
func TestHelmRepository(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("credentials of one host came to another one")
		}
		_, _ = w.Write(chartOf(t, "1.10.0"))
	}))
	t.Cleanup(elsewhere.Close)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		switch {
		case user != "me" || password != "hunter2":
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == "/charts/index.yaml":
			_, _ = fmt.Fprintf(w, "entries: {web: [{version: 1.9.0, urls: [web-1.9.0.tgz]}, {version: 1.10.0, urls: [%s/a.tgz]}, {version: 2.0.0-rc.1, urls: [none]}]}", elsewhere.URL)
		case r.URL.Path == "/charts/web-1.9.0.tgz":
			_, _ = w.Write(chartOf(t, "1.9.0"))
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	host := strings.TrimPrefix(s.URL, "http://")
	auth, err := fetch.ParseAuth([]byte(`{"auths": {"http://` + host + `": {"auth": "` + base64.StdEncoding.EncodeToString([]byte("me:hunter2")) + `"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for want, tc := range map[string]struct {
		chart, version string
		auth           fetch.Auth
		err            string
	}{
		"1.10.0": {chart: "web", version: "1.x", auth: auth},
		"1.9.0":  {chart: "web", version: "1.9.0", auth: auth},
		"a":      {chart: "web", version: "3.x", auth: auth, err: "chart web: there is no version 3.x"},
		"b":      {chart: "wep", version: "1.x", auth: auth, err: "the repository has no chart wep"},
		"c":      {chart: "web", version: "1.x", err: "401 Unauthorized. Credentials come by --auth-file, and a copy of the content by --local-sources"},
	} {
		got, err := do(t, &fetch.Request{Kind: "HelmRepository", Spec: map[string]any{"url": s.URL + "/charts"}, Chart: tc.chart, Version: tc.version, Auth: tc.auth})
		switch {
		case tc.err != "":
			if err == nil || !strings.Contains(err.Error(), tc.err) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s %s: %v", tc.chart, tc.version, err)
			}
		case err != nil || got.Version != want:
			t.Errorf("%s %s: %+v, %v", tc.chart, tc.version, got, err)
		default:
			read, err := fetch.ReadChart(got.Path)
			if err != nil || !strings.Contains(string(read[0].Data), want) {
				t.Errorf("%s %s is %v, %v", tc.chart, tc.version, read, err)
			}
		}
	}
}

// TestPasswordInAnAddress: an address may have a password in it, and what is said of the address does not.
func TestPasswordInAnAddress(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("[no index")) }))
	t.Cleanup(s.Close)
	host := strings.TrimPrefix(s.URL, "http://")
	for name, tc := range map[string]struct{ kind, url, says string }{
		"no index":               {"HelmRepository", "http://me:hunter2@" + host, "GET http://me:xxxxx@" + host + "/index.yaml: it is no index"},
		"does not parse":         {"HelmRepository", "http://me:hunter2%@" + host, `"http://…@` + host + `" is no address`},
		"no address of a method": {"HelmRepository", "hunter2@:\x00", "is no address"},
		"Git":                    {"GitRepository", "http://me:hunter2%@" + host, `"http://…@` + host + `" is no address`},
		"OCI":                    {"OCIRepository", "oci://me:hunter2@" + host + "/web", `"oci://me:xxxxx@` + host + `/web" is no repository`},
		"another scheme":         {"OCIRepository", "https://me:hunter2@" + host + "/web", `"https://me:xxxxx@` + host + `/web" does not begin with oci://`},
	} {
		_, err := do(t, &fetch.Request{Kind: tc.kind, Spec: map[string]any{"url": tc.url}, Chart: "web"})
		if err == nil || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestOCI: charts and folders of a registry.
func TestOCI(t *testing.T) {
	charts := registry(t, "application/vnd.cncf.helm.chart.content.v1.tar+gzip", map[string][]byte{"web:1.0.0": chartOf(t, "1.0.0"), "web:1.1.0_a": chartOf(t, "1.1.0+a")})
	url := "oci://" + strings.TrimPrefix(charts.URL, "http://")
	got, err := do(t, &fetch.Request{Kind: "HelmRepository", Spec: map[string]any{"url": url, "type": "oci", "insecure": true}, Chart: "web", Version: "1.x"})
	if err != nil || got.Version != "1.1.0+a" {
		t.Errorf("a chart: %+v, %v", got, err)
	}
	got, err = do(t, &fetch.Request{Kind: "OCIRepository", Spec: map[string]any{"url": url + "/web", "insecure": true, "ref": map[string]any{"tag": "1.0.0"}}, Packed: true})
	if err != nil {
		t.Errorf("a chart of an OCIRepository: %v", err)
	} else if read, err := fetch.ReadChart(got.Path); err != nil || len(read) != 1 {
		t.Errorf("its files are %v, %v", read, err)
	}
	folder := archived(t, map[string]string{"a/b.yaml": "b", "c.yaml": "c", "out.yaml": "-> /etc/passwd", "a/left.txt": "x", ".sourceignore": "*.txt"})
	artifacts := registry(t, "application/vnd.cncf.flux.content.v1.tar+gzip", map[string][]byte{"fleet:1.0.0": folder, "fleet:latest": archived(t, map[string]string{"../../out.yaml": "x"})})
	url = "oci://" + strings.TrimPrefix(artifacts.URL, "http://") + "/fleet"
	got, err = do(t, &fetch.Request{Kind: "OCIRepository", Spec: map[string]any{"url": url, "insecure": true, "ref": map[string]any{"semver": "1.x"}, "ignore": "c.yaml"}})
	if err != nil || strings.Join(files(t, got.Path), " ") != ".sourceignore=*.txt a/b.yaml=b" {
		t.Errorf("a folder: %+v, %v", got, err)
	}
	_, err = do(t, &fetch.Request{Kind: "OCIRepository", Spec: map[string]any{"url": url, "insecure": true}})
	if err == nil || !strings.Contains(err.Error(), "is not within its folder") {
		t.Errorf("an archive that leads out of its folder: %v", err)
	}
}

// TestGit: a branch, a tag, and a commit.
func TestGit(t *testing.T) {
	s := must.Get(localfleet.NewGitServer()).Or(t)
	t.Cleanup(func() { _ = s.Close() })
	first, err := s.Commit("fleet", map[string]string{"policies/a.yaml": "one", "docs/a.md": "x"})
	if err != nil {
		t.Fatal(err)
	}
	must.Get(s.Commit("fleet", map[string]string{"policies/a.yaml": "two", "docs/a.md": "x"})).Or(t)
	for want, spec := range map[string]map[string]any{
		"docs/a.md=x policies/a.yaml=two": {"ref": map[string]any{"branch": "main"}},
		"docs/a.md=x policies/a.yaml=one": {"ref": map[string]any{"branch": "main", "commit": first}},
		"policies/a.yaml=two":             {"ref": map[string]any{"name": "refs/heads/main"}, "sparseCheckout": []any{"policies"}},
	} {
		spec["url"] = s.URL("fleet")
		got, err := do(t, &fetch.Request{Kind: "GitRepository", Spec: spec})
		if err != nil {
			t.Errorf("%v: %v", spec, err)
		} else if is := strings.Join(files(t, got.Path), " "); is != want {
			t.Errorf("%v has %s, want %s", spec, is, want)
		}
	}
	_, err = do(t, &fetch.Request{Kind: "GitRepository", Spec: map[string]any{"url": "ssh://git@git.example.org/fleet"}})
	if err == nil || !strings.Contains(err.Error(), "only http and https are fetched from: say by --local-sources where a clone is") {
		t.Errorf("ssh: %v", err)
	}
	_, err = do(t, &fetch.Request{Kind: "GitRepository", Spec: map[string]any{"url": s.URL("none")}})
	if err == nil {
		t.Error("a repository that is not there is fetched")
	}
}

// TestAuth: an error quotes nothing, and helpers are not run.
func TestAuth(t *testing.T) {
	for raw, want := range map[string]string{
		`hunter2`: "is no config.json of Docker",
		`{"auths": {"a": {"auth": "aHVudGVyMg=="}}}`: `auths["a"].auth is not USER:PASSWORD in base64`,
		`{"credsStore": "desktop"}`:                  "has its credentials in a helper",
	} {
		if _, err := fetch.ParseAuth([]byte(raw)); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", raw, err)
		}
	}
	got, err := fetch.ParseAuth([]byte(`{"auths": {"https://Index.docker.io/v1/": {"username": "a", "password": "b"}, "empty": {}}}`))
	if err != nil || len(got) != 1 || got["registry-1.docker.io"].User != "a" {
		t.Errorf("%v, %v", got, err)
	}
}

// TestCredentialsInTheClear: whoever writes the address of a source does not decide that credentials go without TLS.
func TestCredentialsInTheClear(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Errorf("%s got credentials over http", r.URL.Path)
		}
		w.Header().Set("WWW-Authenticate", "Basic")
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(s.Close)
	host := strings.TrimPrefix(s.URL, "http://")
	auth := must.Get(fetch.ParseAuth([]byte(`{"auths": {"` + host + `": {"username": "me", "password": "hunter2"}}}`))).Or(t)
	for _, r := range []*fetch.Request{
		{Kind: "HelmRepository", Spec: map[string]any{"url": s.URL}, Chart: "web", Auth: auth},
		{Kind: "GitRepository", Spec: map[string]any{"url": s.URL}, Auth: auth},
		{Kind: "OCIRepository", Spec: map[string]any{"url": "oci://" + host + "/a", "insecure": true}, Auth: auth},
	} {
		if _, err := do(t, r); err == nil {
			t.Errorf("%s is fetched", r.Kind)
		}
	}
}

// TestCopy: of a clone, only what Flux would take.
func TestCopy(t *testing.T) {
	from, into := t.TempDir(), filepath.Join(t.TempDir(), "content")
	for name, text := range map[string]string{"a/b.yaml": "b", "c.txt": "c", ".git/config": "hunter2", "sub/.git": "gitdir: elsewhere", "d.yaml": "d"} {
		must.Do(t, os.MkdirAll(filepath.Dir(filepath.Join(from, name)), 0o700))
		must.Do(t, os.WriteFile(filepath.Join(from, name), []byte(text), 0o600))
	}
	for name, to := range map[string]string{"in.yaml": ".git/config", "out.yaml": "/etc/hostname", "dir": ".git"} {
		must.Do(t, os.Symlink(to, filepath.Join(from, name)))
	}
	ignore := "*.txt\n!.git/\n!.git/**"
	must.Do(t, fetch.Copy(from, into, &ignore))
	if got := strings.Join(files(t, into), " "); got != "a/b.yaml=b d.yaml=d" {
		t.Errorf("it has taken %s", got)
	}
	must.Do(t, os.WriteFile(filepath.Join(from, "Chart.yaml"), []byte("name: a"), 0o600))
	chart, err := fetch.ReadChart(from)
	for _, f := range chart {
		if err != nil || strings.Contains(string(f.Data), "hunter2") {
			t.Errorf("a chart has %s, %v", f.Name, err)
		}
	}
}
