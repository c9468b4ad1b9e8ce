// SPDX-License-Identifier: Apache-2.0

// Package layout builds the folders of a repository as Flux's Kustomizations do, to find the Flux objects that only come out
// of them. It fetches nothing.
package layout

import (
	"bytes"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/chandler-hub/chandler/internal/kustomize"
)

// names are those of a file that says how a folder is built.
var names = []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}

// SaysHow returns whether a file says how its folder is built. kustomize takes one without apiVersion and kind too.
func SaysHow(name string) bool { return slices.Contains(names, path.Base(filepath.ToSlash(name))) }

// Tree is the files of a repository, by their paths from its root.
type Tree struct {
	fs    filesys.FileSystem
	files map[string][]byte
	// dir is the folder on the disk, from which folders are built.
	dir string
}

// Built is what a Kustomization applies.
type Built struct {
	Objects []*unstructured.Unstructured
	// Unread are the objects that hold variables too, and were not read.
	Unread []string
	// Files are those that it was built of.
	Files map[string]bool
}

// New returns the tree of the files of a folder, whose paths have slashes.
func New(dir string, files map[string][]byte) (*Tree, error) {
	dir, err := filepath.Abs(dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("find the folder: %w", err)
	}
	t := &Tree{fs: filesys.MakeFsInMemory(), files: files, dir: dir}
	for name, raw := range files {
		if err := t.fs.WriteFile("/"+name, raw); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return t, nil
}

// Folder returns the path, from the root, of the folder that a Kustomization applies.
func Folder(k *kustomizev1.Kustomization) string {
	return strings.TrimPrefix(path.Clean("/"+k.Spec.Path), "/")
}

// Build returns what a Kustomization applies, with its variables in place, those of ConfigMaps among them. The error is
// kustomize.ErrNoFolder if its folder is not there.
func (t *Tree) Build(k *kustomizev1.Kustomization, configMaps ConfigMaps) (*Built, error) {
	if !t.fs.IsDir("/" + Folder(k)) {
		return nil, kustomize.ErrNoFolder
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(k)
	if err != nil {
		return nil, fmt.Errorf("read the Kustomization: %w", err)
	}
	spec, _ := object["spec"].(map[string]any)
	built, err := kustomize.Build(t.dir, kustomize.Decisive(spec))
	if err != nil {
		return nil, err
	}
	out := &Built{Files: built.Files}
	variables := substitutionOf(k, configMaps)
	if variables != nil {
		out.Unread = variables.unread
	}
	for _, res := range built.Resources {
		if variables != nil {
			if err := variables.apply(res); err != nil {
				return nil, fmt.Errorf("spec.postBuild, %s %s: %w", res.GetKind(), res.GetName(), err)
			}
		}
		raw, err := res.MarshalJSON()
		if err != nil {
			return nil, err
		}
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(raw); err != nil {
			return nil, err
		}
		out.Objects = append(out.Objects, u)
	}
	return out, nil
}

// Has returns whether there is a folder.
func (t *Tree) Has(folder string) bool { return t.fs.IsDir("/" + folder) }

// Reads returns the files that a folder with a kustomization.yaml is built of, as far as they are in the tree. Where something is wrong, it
// ends: building the folder says what.
func (t *Tree) Reads(folder string) map[string]bool {
	out := map[string]bool{}
	t.reads(folder, out, map[string]bool{})
	return out
}

// reads adds the files of a folder, and returns false where something is wrong.
func (t *Tree) reads(folder string, out, within map[string]bool) bool {
	if within[folder] {
		return false
	}
	within[folder] = true
	defer delete(within, folder)
	for _, n := range names {
		name := path.Join(folder, n)
		if t.files[name] == nil {
			continue
		}
		refs, _, err := kustomize.References(name, t.files[name])
		if err != nil {
			return false
		}
		out[name] = true
		for _, ref := range refs {
			at := strings.TrimPrefix(path.Join("/"+folder, ref), "/")
			if t.files[at] != nil {
				out[at] = true
			} else if !t.fs.IsDir("/"+at) || !t.reads(at, out, within) {
				return false
			}
		}
	}
	return true
}

// Mentions returns whether one of some files holds a text.
func (t *Tree) Mentions(files map[string]bool, text string) bool {
	for name := range files {
		if bytes.Contains(t.files[name], []byte(text)) {
			return true
		}
	}
	return false
}

// Roots returns the folders with a kustomization.yaml that no other one refers to.
func (t *Tree) Roots() []string {
	said, referred := map[string]bool{}, map[string]bool{}
	for name, raw := range t.files {
		if !SaysHow(name) {
			continue
		}
		folder := strings.TrimPrefix(path.Dir("/"+name), "/")
		said[folder] = true
		refs, _, err := kustomize.References(name, raw)
		if err != nil {
			continue
		}
		for _, ref := range refs {
			referred[strings.TrimPrefix(path.Join("/"+folder, ref), "/")] = true
		}
	}
	var out []string
	for folder := range said {
		if !referred[folder] {
			out = append(out, folder)
		}
	}
	slices.Sort(out)
	return out
}
