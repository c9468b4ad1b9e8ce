// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// checkArchives unpacks every archive and looks at what is inside.
func (r *release) checkArchives(ctx context.Context) error {
	for _, p := range r.commands {
		name := r.archiveName(p)
		content, err := os.ReadFile(r.path(name))
		if err != nil {
			return err
		}
		files, err := unpack(name, content)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		binary, err := checkFiles(files, p.os == "windows")
		if err != nil {
			return fmt.Errorf("%s %w", name, err)
		}
		if err := r.checkBinary(ctx, "chandler", p, binary); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// checkFiles returns the binary of an archive's files. Beside it there are the licence and, but for Windows, the man pages, and nothing
// else.
func checkFiles(files map[string][]byte, windows bool) ([]byte, error) {
	binary, pages := files["chandler"], 0
	if windows {
		binary = files["chandler.exe"]
	}
	for name, content := range files {
		if !strings.HasPrefix(name, "man/chandler") || !strings.HasSuffix(name, ".1") {
			continue
		}
		if pages++; !bytes.Contains(content, []byte(".SH NAME")) {
			return nil, fmt.Errorf("has %s, which is no man page", name)
		}
	}
	switch {
	case binary == nil || files["LICENSE"] == nil || len(files) != pages+2:
		return nil, errors.New("does not hold the binary, the licence and the man pages, and nothing else")
	case windows != (files["man/chandler.1"] == nil) || windows && pages > 0:
		return nil, errors.New("has no man pages, or some for Windows")
	}
	return binary, nil
}

// checkBinary holds a binary against the release: platform, commit, version, SBOM. One of this machine's platform is run.
func (r *release) checkBinary(ctx context.Context, command string, p platform, binary []byte) error {
	info, err := buildinfo.Read(bytes.NewReader(binary))
	if err != nil {
		return err
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	want := map[string]string{"GOOS": p.os, "GOARCH": p.arch, "CGO_ENABLED": "0", "-trimpath": "true"}
	if r.stamped {
		want["vcs.revision"] = r.revision
	}
	if !r.dryRun {
		want["vcs.modified"] = "false"
	}
	for key, value := range want {
		if settings[key] != value {
			return fmt.Errorf("was built with %s=%q, not %q", key, settings[key], value)
		}
	}
	// Go does not note -ldflags together with -trimpath.
	if !bytes.Contains(binary, []byte(r.version)) {
		return fmt.Errorf("does not hold the version %s", r.version)
	}
	if err := r.checkSBOM(command, p, info); err != nil {
		return err
	}
	if p.os != runtime.GOOS || p.arch != runtime.GOARCH {
		return nil
	}
	return r.checkSaid(ctx, binary)
}

// checkSaid runs a binary and reads which version it says that it is.
func (r *release) checkSaid(ctx context.Context, binary []byte) error {
	path := filepath.Join(r.work, "checked")
	if err := os.WriteFile(path, binary, 0o755); err != nil {
		return err
	}
	said, err := output(ctx, r.work, path, "--version")
	if err != nil {
		return err
	}
	if !strings.Contains(said, r.version+" ") || r.stamped && !strings.Contains(said, r.revision) {
		return fmt.Errorf("says that it is %q, and not %s of %s", said, r.version, r.revision)
	}
	return nil
}

// checkSBOM holds an SBOM against what Go noted in the binary.
func (r *release) checkSBOM(command string, p platform, info *buildinfo.BuildInfo) error {
	f, err := os.Open(r.path(r.sbomName(command, p)))
	if err != nil {
		return err
	}
	defer f.Close()
	var b cdx.BOM
	if err := cdx.NewBOMDecoder(f, cdx.BOMFileFormatJSON).Decode(&b); err != nil {
		return err
	}
	if b.Components == nil || b.Metadata == nil || b.Metadata.Component == nil || b.Metadata.Component.Version != r.version {
		return fmt.Errorf("the SBOM is not one of %s", r.version)
	}
	listed := map[string]bool{}
	for _, c := range *b.Components {
		listed[c.Name] = true
	}
	for _, m := range info.Deps {
		if !listed[m.Path] && m.Replace == nil {
			return fmt.Errorf("the SBOM does not list %s", m.Path)
		}
	}
	if len(*b.Components) != len(info.Deps)+1 {
		return fmt.Errorf("the SBOM lists %d modules, and the binary has %d and Go's own", len(*b.Components), len(info.Deps))
	}
	return nil
}

// unpack returns the files of an archive.
func unpack(name string, content []byte) (map[string][]byte, error) {
	if strings.HasSuffix(name, ".zip") {
		return unpackZip(content)
	}
	compressed, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	return readTar(compressed)
}

func readTar(r io.Reader) (map[string][]byte, error) {
	files := map[string][]byte{}
	archive := tar.NewReader(r)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		if files[header.Name], err = io.ReadAll(archive); err != nil {
			return nil, err
		}
	}
}

func unpackZip(content []byte) (map[string][]byte, error) {
	archive, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, f := range archive.File {
		r, err := f.Open()
		if err != nil {
			return nil, err
		}
		if files[f.Name], err = io.ReadAll(r); err != nil {
			return nil, err
		}
	}
	return files, nil
}
