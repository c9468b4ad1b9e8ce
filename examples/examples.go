// SPDX-License-Identifier: Apache-2.0

// Package examples embeds the examples, for the demo and for the tests that run them.
package examples

import (
	"embed"
	"io/fs"
	"os"
	"strings"
)

// FS holds every example.
//
//go:embed charts cni environments git hub-spoke kamaji multi-cluster multi-tenancy policies quickstart rollout team-isolation teams workload-identity
var FS embed.FS

// Read returns a file with its ${…} variables filled in.
func Read(path string, variables map[string]string) (string, error) {
	raw, err := FS.ReadFile(path)
	return os.Expand(string(raw), func(name string) string { return variables[name] }), err
}

// GitFiles returns the content of the example Git repository, by path.
func GitFiles() (map[string]string, error) { return Folder("git") }

// Folder returns the files below a folder, by their path in it.
func Folder(dir string) (map[string]string, error) {
	files := map[string]string{}
	err := fs.WalkDir(FS, dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := FS.ReadFile(p)
		files[strings.TrimPrefix(p, dir+"/")] = string(raw)
		return err
	})
	return files, err
}
