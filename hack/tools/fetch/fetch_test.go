// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// One run: what is pinned and published comes, what is not is named with the reason, and no folder has half of anything.
func TestFetchAll(t *testing.T) {
	p := newPublisher(t)
	digest := p.image(t, "example.org/image", "v1.0.0", "usr/bin/image", linuxAMD64)
	content := []byte(program(linuxAMD64))
	p.files["/example.org/file-v1.0.0-linux-amd64"] = content
	file := func(url string) Pin {
		return Pin{URL: url, Version: "v1.0.0", SHA256: map[string]string{"linux/amd64": sum(content)}}
	}
	pins := map[string]Pin{
		"image": {Image: "example.org/image", Member: "usr/bin/image", Version: "v1.0.0", Digest: digest},
		"file":  file("https://example.org/file-{version}-{os}-{arch}"),
		"gone":  file("https://example.org/gone"),
		"late":  {Image: "example.org/late", Member: "late", Version: "v0.9.0", Digest: digest},
		"bare":  {Image: "example.org/bare", Member: "bare"},
		"lost":  {Image: "example.org/lost", Member: "lost"},
	}
	cache := t.TempDir()
	var wants []want
	for _, name := range []string{"image", "file", "gone", "late", "bare", "lost"} {
		wants = append(wants, want{name: name, version: "v1.0.0", folder: filepath.Join(cache, name+"-key")})
	}
	// Somebody has removed the program, and left its folder.
	check(t, os.Mkdir(wants[0].folder, 0o755))
	var out bytes.Buffer
	check(t, fetchAll(t.Context(), &out, p.downloader(t, linuxAMD64), pins, wants))
	for _, name := range []string{"image", "file"} {
		got, err := os.ReadFile(filepath.Join(cache, name+"-key", name))
		check(t, err)
		if string(got) != program(linuxAMD64) {
			t.Errorf("%s is not the program", name)
		}
	}
	wantEntries(t, cache, "file-key", "image-key")
	for _, line := range []string{
		"tools: not downloaded: bare, lost (no digest is pinned in hack/tools/pins.yaml)",
		"tools: not downloaded: gone (127.0.0.1:",
		"answers 404)",
		"tools: not downloaded: late (pinned is v0.9.0, and wanted v1.0.0: run `go run ./hack/tools pin`)",
		"tools: image v1.0.0 downloaded",
	} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("%q is missing from\n%s", line, &out)
		}
	}
}

// What is wrong stops the run, and leaves nothing of it behind.
func TestFetchAllStops(t *testing.T) {
	p := newPublisher(t)
	p.worse = func(w http.ResponseWriter, _ *http.Request, _ http.Handler) bool {
		_, _ = w.Write([]byte("please log in"))
		return true
	}
	pins := map[string]Pin{"file": {URL: "https://example.org/file", Version: "v1", SHA256: map[string]string{"linux/amd64": sum([]byte("x"))}}}
	cache := t.TempDir()
	var out bytes.Buffer
	err := fetchAll(t.Context(), &out, p.downloader(t, linuxAMD64), pins, []want{{"file", "v1", filepath.Join(cache, "file-key")}})
	if !errors.Is(err, errWrong) || !strings.Contains(err.Error(), sum([]byte("please log in"))) {
		t.Errorf("got %v", err)
	}
	wantEntries(t, cache)
}

func wantEntries(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	check(t, err)
	var got []string
	for _, each := range entries {
		got = append(got, each.Name())
	}
	if strings.Join(got, " ") != strings.Join(names, " ") {
		t.Errorf("%s has %q, want %q", dir, got, names)
	}
}

func TestPinIsRefused(t *testing.T) {
	digest := "sha256:" + strings.Repeat("a", 64)
	cases := map[string]struct{ pin, why string }{
		"NoPlace":      {"{version: v1}", "needs an image or a url"},
		"TwoPlaces":    {"{image: a.example/b, url: 'https://a.example/b', member: c}", "needs an image or a url"},
		"NoMember":     {"{image: a.example/b}", "needs the member"},
		"NoVersion":    {"{image: a.example/b, member: c, digest: '" + digest + "'}", "of which version"},
		"ShortDigest":  {"{image: a.example/b, member: c, version: v1, digest: sha256:abc}", "no sha256 in hex"},
		"WrongKind":    {"{url: 'https://a.example/b', version: v1, digest: '" + digest + "'}", "another kind"},
		"UnknownField": {"{url: 'https://a.example/b', sha512: {}}", "sha512"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "pins.yaml")
			check(t, os.WriteFile(file, []byte("parts: {x: "+c.pin+"}"), 0o600))
			if _, err := loadPins(file); err == nil || !strings.Contains(err.Error(), c.why) {
				t.Errorf("got %v, want %q", err, c.why)
			}
		})
	}
	if _, err := loadPins("absent.yaml"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// Every pin of the checkout gives a source, with nothing left to fill in.
func TestSources(t *testing.T) {
	pins, err := loadPins("../pins.yaml")
	check(t, err)
	for name, pin := range pins {
		for _, on := range filePlatforms {
			from, err := pin.source(pin.Version, on)
			var why unavailable
			if errors.As(err, &why) {
				continue
			}
			check(t, err)
			if place := from.image + from.url + from.member; strings.Contains(place, "{") || from.member == "" {
				t.Errorf("%s for %s is at %q", name, on, place)
			}
			if pin.From == "" {
				t.Errorf("%s does not say where its digests come from", name)
			}
		}
	}
}

func TestMirror(t *testing.T) {
	for _, address := range []string{"mirror.example.org", "ftp://mirror.example.org", "https://"} {
		if _, err := parseMirror(address); err == nil {
			t.Errorf("%q passed", address)
		}
	}
	base, err := parseMirror("https://mirror.example.org/hub/")
	check(t, err)
	if got := (&downloader{mirror: base}).mirrored("ghcr.io/a/b@sha256:c"); got != "mirror.example.org/hub/ghcr.io/a/b@sha256:c" {
		t.Errorf("the image is at %s", got)
	}
}
