// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"
)

var commitTime = time.Unix(1_760_000_000, 0).UTC()

func TestSection(t *testing.T) {
	changelog := "# Changelog\n\n## Unreleased\n\n## v0.2.0 (2026-02-01)\n\n### Added\n\n- More.\n\n## v0.1.0\n\n- Something.\n"
	for title, want := range map[string]string{"v0.1.0": "- Something.", "v0.2.0": "### Added\n\n- More.", "v0.3.0": "", "Unreleased": "", "v0.2": ""} {
		if got, ok := section(changelog, title); got != want || ok != (want != "") {
			t.Errorf("%s: %q, %v, want %q", title, got, ok, want)
		}
	}
}

// TestArchives: what is packed is unpacked again, and packing depends on nothing but its arguments.
func TestArchives(t *testing.T) {
	files := []file{{"chandler", 0o755, []byte("a binary")}, {"LICENSE", 0o644, []byte("a licence")}}
	for name, pack := range map[string]func([]file, time.Time) ([]byte, error){"a.tar.gz": packTar, "a.zip": packZip} {
		one, err := pack(files, commitTime)
		if err != nil {
			t.Fatal(err)
		}
		if two, _ := pack(files, commitTime); !bytes.Equal(one, two) {
			t.Errorf("%s: packed twice, it differs", name)
		}
		got, err := unpack(name, one)
		if err != nil || len(got) != 2 || string(got["chandler"]) != "a binary" || string(got["LICENSE"]) != "a licence" {
			t.Errorf("%s: unpacked %q, %v", name, got, err)
		}
	}
}

// TestArchiveHolds: the binary, the licence and, but for Windows, the man pages; and nothing else.
func TestArchiveHolds(t *testing.T) {
	page := []byte(".SH NAME")
	for _, c := range []struct {
		names   string
		windows bool
		want    string
	}{
		{"chandler LICENSE man/chandler.1 man/chandler-get.1", false, ""},
		{"chandler.exe LICENSE", true, ""},
		{"chandler LICENSE", false, "man pages"},
		{"chandler LICENSE man/chandler-get.1", false, "man pages"},
		{"chandler.exe LICENSE man/chandler.1", true, "man pages"},
		{"chandler LICENSE man/chandler.1 more", false, "nothing else"},
		{"LICENSE man/chandler.1", false, "nothing else"},
		{"chandler man/chandler.1", false, "nothing else"},
	} {
		files := map[string][]byte{}
		for _, name := range strings.Fields(c.names) {
			files[name] = page
		}
		binary, err := checkFiles(files, c.windows)
		if c.want == "" && (err != nil || binary == nil) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.names, err, c.want)
		}
	}
	if _, err := checkFiles(map[string][]byte{"chandler": page, "LICENSE": page, "man/chandler.1": []byte("x")}, false); err == nil {
		t.Error("it takes anything for a man page")
	}
}

// fixture is a release of which only the folder exists, for one platform.
func fixture(t *testing.T) *release {
	p := []platform{{"linux", "amd64"}}
	o := options{version: "v0.1.0", out: t.TempDir(), registry: "registry.example.org/chandler", dryRun: true, commands: p, images: p}
	return &release{options: o, work: t.TempDir(), made: commitTime, revision: "abc", stamped: true}
}

// TestChecksums: every published file is in the list, and a file that changes, comes or goes afterwards is found.
func TestChecksums(t *testing.T) {
	for name, spoil := range map[string]func(r *release) error{
		"nothing":        nil,
		"a changed file": func(r *release) error { return os.WriteFile(r.path("install.yaml"), []byte("another"), 0o644) },
		"one more":       func(r *release) error { return os.WriteFile(r.path("more"), nil, 0o644) },
		"one less":       func(r *release) error { return os.Remove(r.path("install.yaml")) },
	} {
		r := fixture(t)
		p := r.commands[0]
		for _, f := range []string{r.archiveName(p), r.sbomName("chandler", p), r.sbomName("hub", p), r.chartName(), "install.yaml", krewName} {
			if err := os.WriteFile(r.path(f), []byte(f), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.writeChecksums(t.Context()); err != nil {
			t.Fatal(err)
		}
		if spoil != nil {
			if err := spoil(r); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.checkChecksums(t.Context()); (err != nil) != (spoil != nil) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestKrew: the manifest names each archive as it is published, with its checksum and the binary in it.
func TestKrew(t *testing.T) {
	r := fixture(t)
	r.commands = []platform{{"linux", "amd64"}, {"windows", "arm64"}}
	for _, p := range r.commands {
		if err := os.WriteFile(r.path(r.archiveName(p)), []byte(p.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.writeKrew(t.Context()); err != nil {
		t.Fatal(err)
	}
	manifest, err := os.ReadFile(r.path(krewName))
	if err != nil {
		t.Fatal(err)
	}
	const from = "https://github.com/chandler-hub/chandler/releases/download/v0.1.0/chandler_v0.1.0_"
	for _, want := range []string{
		"version: v0.1.0\n",
		"{os: linux, arch: amd64}\n    uri: " + from + "linux_amd64.tar.gz\n    sha256: " + fmt.Sprintf("%x", sha256.Sum256([]byte("linux_amd64"))) + "\n    bin: chandler\n",
		"{os: windows, arch: arm64}\n    uri: " + from + "windows_arm64.zip\n    sha256: " + fmt.Sprintf("%x", sha256.Sum256([]byte("windows_arm64"))) + "\n    bin: chandler.exe\n",
	} {
		if !strings.Contains(string(manifest), want) {
			t.Errorf("it does not say %q:\n%s", want, manifest)
		}
	}
}

// TestCheckBinary: this test's own binary is no release of anything, and each of the ways in which it is not is said.
func TestCheckBinary(t *testing.T) {
	self, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	r := fixture(t)
	if err := r.checkBinary(t.Context(), "chandler", platform{"plan9", "amd64"}, self); err == nil || !strings.Contains(err.Error(), "was built with") {
		t.Errorf("another platform, or not as a release: %v", err)
	}
	if err := r.checkSaid(t.Context(), []byte("#!/bin/sh\necho v0.1.1 of abc\n")); err == nil {
		t.Error("a binary that says that it is another version passes")
	}
	if err := r.checkSaid(t.Context(), []byte("#!/bin/sh\necho 'chandler v0.1.0 (revision abc, go1.26)'\n")); err != nil {
		t.Error(err)
	}
}

func TestSBOM(t *testing.T) {
	info := &buildinfo.BuildInfo{GoVersion: "go1.26.1", Deps: []*debug.Module{
		{Path: "example.org/a", Version: "v1.0.0", Sum: "h1:a"},
		{Path: "example.org/b", Version: "v1.0.0", Replace: &debug.Module{Path: "example.org/c", Version: "v2.0.0"}},
	}}
	b := bom(info, "chandler", "v0.1.0", commitTime)
	var got []string
	for _, c := range *b.Components {
		got = append(got, c.PackageURL)
	}
	if want := "pkg:golang/stdlib@1.26.1 pkg:golang/example.org/a@v1.0.0 pkg:golang/example.org/c@v2.0.0"; strings.Join(got, " ") != want {
		t.Errorf("components %q, want %q", got, want)
	}
}

// TestCheckImage: an image is made and read back, its digest is always the same, and a hub that is none is found.
func TestCheckImage(t *testing.T) {
	r := fixture(t)
	files := []file{{certificatesPath, 0o644, publicCertificates()}, {hubPath, 0o755, []byte("no binary")}}
	one, err := r.imageOf(r.images[0], files)
	if err != nil {
		t.Fatal(err)
	}
	two, err := r.imageOf(r.images[0], files)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := one.Digest()
	if b, _ := two.Digest(); a != b {
		t.Errorf("made twice, it is %s and %s", a, b)
	}
	if err := r.checkOneImage(t.Context(), r.images[0], one); err == nil || !strings.Contains(err.Error(), "unrecognized file format") {
		t.Errorf("everything is right but the binary: %v", err)
	}
	if err := r.checkOneImage(t.Context(), platform{"linux", "arm64"}, one); err == nil || !strings.Contains(err.Error(), "configuration says") {
		t.Errorf("another platform: %v", err)
	}
	r.version = "v0.2.0"
	if err := r.checkOneImage(t.Context(), r.images[0], one); err == nil || !strings.Contains(err.Error(), "labels") {
		t.Errorf("another version: %v", err)
	}
}

func TestOnlyImage(t *testing.T) {
	const image = "registry.example.org/chandler-hub:v0.1.0"
	for manifests, ok := range map[string]bool{
		"containers:\n  - image: " + image + "\n":                    true,
		"containers:\n  - name: hub\n    image: \"" + image + "\"\n": true,
		"containers:\n  - image: chandler-hub:v0.1.0\n":              false,
		"- image: " + image + "\n- image: " + image + "\n":           false,
		"containers: []\n": false,
	} {
		if err := onlyImage(manifests, image); (err == nil) != ok {
			t.Errorf("%q: %v", manifests, err)
		}
	}
}

func TestReplaceOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "values.yaml")
	for content, ok := range map[string]bool{"a: b\n": true, "a: b\na: b\n": false, "c: d\n": false} {
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := replaceOnce(path, "a: b", "a: c"); (err == nil) != ok {
			t.Errorf("%q: %v", content, err)
		}
	}
}
