// SPDX-License-Identifier: Apache-2.0

// Package examples embeds the examples, for the demo and for the tests that run them.
package examples

import (
	"embed"
	"io/fs"
	"strings"
)

// FS holds every example.
//
//go:embed charts cni environments git hub-spoke kamaji multi-cluster multi-tenancy policies quickstart rollout team-isolation teams workload-identity
var FS embed.FS

// The public addresses in the examples, which the demo and the tests replace by local ones.
const (
	// Podinfo is the Helm repository of quickstart, kamaji and teams.
	Podinfo = "https://stefanprodan.github.io/podinfo"
	// Charts is the Helm repository of cni.
	Charts = "https://charts.example.org"
	// Repository is the Git repository of quickstart: that of this checkout.
	Repository = "https://github.com/chandler-hub/chandler"
)

// Read returns a file, with some texts in it, such as addresses, replaced by others.
func Read(path string, replace map[string]string) (string, error) {
	raw, err := FS.ReadFile(path)
	text := string(raw)
	for old, now := range replace {
		text = strings.ReplaceAll(text, old, now)
	}
	return text, err
}

// GitFiles returns what the Git repository of quickstart holds, by path in it.
func GitFiles() (map[string]string, error) {
	files, err := Folder("git")
	out := map[string]string{}
	for path, text := range files {
		out["examples/git/"+path] = text
	}
	return out, err
}

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
