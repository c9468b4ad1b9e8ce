// SPDX-License-Identifier: Apache-2.0

package node

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
)

// Image is one of a single layer.
type Image struct {
	// Ref is its name with its tag, and Refs are more of them.
	Ref  string
	Refs []string
	// Files of the image, by their absolute paths, from files of this machine.
	Files map[string]string
	// Entrypoint is the program.
	Entrypoint []string
	// User is a number; root if it is empty.
	User string
}

// Write writes the image as `docker save` does.
func (i Image) Write(w io.Writer) error {
	layer, err := os.CreateTemp("", "layer")
	if err != nil {
		return err
	}
	defer os.Remove(layer.Name())
	defer layer.Close()
	sum := sha256.New()
	if err := i.writeLayer(io.MultiWriter(layer, sum)); err != nil {
		return err
	}
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": map[string]any{"Entrypoint": i.Entrypoint, "User": i.User},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + hex.EncodeToString(sum.Sum(nil))}},
	})
	if err != nil {
		return err
	}
	name := sha256.Sum256(config)
	configFile := hex.EncodeToString(name[:]) + ".json"
	manifest, err := json.Marshal([]any{map[string]any{"Config": configFile, "RepoTags": i.names(), "Layers": []string{"layer.tar"}}})
	if err != nil {
		return err
	}
	size, err := layer.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	if _, err := layer.Seek(0, io.SeekStart); err != nil {
		return err
	}
	archive := &archive{tar: tar.NewWriter(w)}
	archive.file("layer.tar", 0o644, size, layer)
	archive.file(configFile, 0o644, int64(len(config)), bytes.NewReader(config))
	archive.file("manifest.json", 0o644, int64(len(manifest)), bytes.NewReader(manifest))
	return archive.close()
}

// names are all that it has, each once.
func (i Image) names() []string {
	all := i.Refs
	if i.Ref != "" {
		all = append([]string{i.Ref}, all...)
	}
	return slices.Compact(slices.Sorted(slices.Values(all)))
}

func (i Image) writeLayer(w io.Writer) error {
	a := &archive{tar: tar.NewWriter(w), folders: map[string]bool{".": true}}
	for _, to := range slices.Sorted(maps.Keys(i.Files)) {
		if err := a.copy(strings.TrimPrefix(to, "/"), i.Files[to]); err != nil {
			return fmt.Errorf("image %v: %w", i.names(), err)
		}
	}
	return a.close()
}

// archive is a tar file that is written. It keeps the first error.
type archive struct {
	tar     *tar.Writer
	folders map[string]bool // which have an entry
	err     error
}

func (a *archive) copy(to, from string) error {
	file, err := os.Open(from)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	a.folder(path.Dir(to))
	a.file(to, int64(info.Mode().Perm()|0o444), info.Size(), file)
	return a.err
}

func (a *archive) folder(name string) {
	if a.folders[name] {
		return
	}
	a.folder(path.Dir(name))
	a.folders[name] = true
	if a.err == nil {
		a.err = a.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755})
	}
}

func (a *archive) file(name string, mode, size int64, content io.Reader) {
	if a.err != nil {
		return
	}
	if a.err = a.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: size}); a.err == nil {
		_, a.err = io.Copy(a.tar, content)
	}
}

func (a *archive) close() error {
	if a.err != nil {
		return a.err
	}
	return a.tar.Close()
}
