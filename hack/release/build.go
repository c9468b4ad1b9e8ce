// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// buildBinary builds a command for a platform into the work folder and returns its path. The same commit gives the same bytes, in
// whatever folder it lies.
func (r *release) buildBinary(ctx context.Context, command string, p platform) (string, error) {
	name := command
	if p.os == "windows" {
		name += ".exe"
	}
	binary := filepath.Join(r.work, p.String(), name)
	flags := "-s -w -X " + module + "/internal/version.release=" + r.version
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=true", "-ldflags", flags, "-o", binary, "./cmd/"+command)
	cmd.Dir = r.root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.os, "GOARCH="+p.arch, "GOFLAGS=", "GOWORK=off")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return binary, cmd.Run()
}

// archiveName is that of the command line's archive.
func (r *release) archiveName(p platform) string {
	ending := ".tar.gz"
	if p.os == "windows" {
		ending = ".zip"
	}
	return "chandler_" + r.version + "_" + p.String() + ending
}

// sbomName is that of a binary's SBOM.
func (r *release) sbomName(command string, p platform) string {
	return command + "_" + r.version + "_" + p.String() + ".cdx.json"
}

// manPages returns the man pages of the command line, with the date of the commit. The commands write them themselves, in a test: see
// cmd/chandler/reference_test.go.
func (r *release) manPages(ctx context.Context) ([]file, error) {
	dir := filepath.Join(r.work, "man")
	cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "./cmd/chandler", "-run", "^TestManPages$", "-args", "-man", dir)
	cmd.Dir = r.root
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "TZ=UTC", fmt.Sprintf("SOURCE_DATE_EPOCH=%d", r.made.Unix()))
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("man pages: %w", err)
	}
	entries, err := os.ReadDir(dir) // sorted
	if err != nil {
		return nil, err
	}
	var out []file
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		out = append(out, file{"man/" + e.Name(), 0o644, content})
	}
	return out, nil
}

func (r *release) buildArchives(ctx context.Context) error {
	license, err := os.ReadFile(filepath.Join(r.root, "LICENSE"))
	if err != nil {
		return err
	}
	pages, err := r.manPages(ctx)
	if err != nil {
		return err
	}
	for _, p := range r.commands {
		binary, err := r.buildBinary(ctx, "chandler", p)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(binary)
		if err != nil {
			return err
		}
		if err := r.writeSBOM(binary, "chandler", p); err != nil {
			return err
		}
		files := []file{{filepath.Base(binary), 0o755, content}, {"LICENSE", 0o644, license}}
		pack := packTar
		if p.os == "windows" {
			pack = packZip // nobody has man there
		} else {
			files = append(files, pages...)
		}
		archive, err := pack(files, r.made)
		if err != nil {
			return err
		}
		if err := os.WriteFile(r.path(r.archiveName(p)), archive, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// file is one of an archive or a layer.
type file struct {
	name    string
	mode    int64
	content []byte
}

// packTar returns a compressed tar archive that depends on nothing but its arguments.
func packTar(files []file, made time.Time) ([]byte, error) {
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	if err := writeTar(compressed, files, made); err != nil {
		return nil, err
	}
	if err := compressed.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func writeTar(w io.Writer, files []file, made time.Time) error {
	archive := tar.NewWriter(w)
	for _, f := range files {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: f.mode, Size: int64(len(f.content)), ModTime: made}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(f.content); err != nil {
			return err
		}
	}
	return archive.Close()
}

// packZip is packTar for Windows.
func packZip(files []file, made time.Time) ([]byte, error) {
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	for _, f := range files {
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: made}
		header.SetMode(os.FileMode(f.mode))
		w, err := archive.CreateHeader(header)
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
