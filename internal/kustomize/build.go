// SPDX-License-Identifier: Apache-2.0

// Package kustomize builds the folder of a Kustomization as kustomize-controller does, by its library, and without bases from elsewhere:
// nothing is fetched, nothing is run, and no path or link leads out of the root. What Flux writes into kustomization.yaml stays in memory.
package kustomize

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	generator "github.com/fluxcd/pkg/kustomize"
	securefs "github.com/fluxcd/pkg/kustomize/filesys"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// ErrNoFolder says that a Kustomization applies a folder that is not there.
var ErrNoFolder = errors.New("its folder is not in the files")

// Built is what kustomize makes of a folder, before variables are substituted.
type Built struct {
	Resources []*resource.Resource
	// Files are those that it was built of, by their paths from the root.
	Files map[string]bool
}

// decisive are the fields of a Kustomization that decide what kustomize makes of its folder.
var decisive = []string{"path", "targetNamespace", "namePrefix", "nameSuffix", "patches", "components", "ignoreMissingComponents", "images",
	"buildMetadata"}

// Decisive returns the fields of a Kustomization's spec that decide what kustomize makes of its folder.
func Decisive(spec map[string]any) map[string]any {
	out := map[string]any{}
	for _, field := range decisive {
		if v, ok := spec[field]; ok {
			out[field] = v
		}
	}
	return out
}

// Build builds the folder that a Kustomization's spec names. root is an absolute path.
func Build(root string, spec map[string]any) (*Built, error) {
	disk, err := securefs.MakeFsOnDiskSecure(root)
	if err != nil {
		return nil, fmt.Errorf("read the folder: %w", err)
	}
	at, _, _ := unstructured.NestedString(spec, "path")
	dir := filepath.Join(root, filepath.FromSlash(path.Clean("/"+at)))
	if !disk.IsDir(dir) {
		return nil, ErrNoFolder
	}
	what := unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	manifest, file, _, err := generator.NewGenerator(root, what).GenerateManifest(dir)
	if err != nil {
		return nil, errors.New(strings.ReplaceAll(Said(err, nil).Error(), root, ""))
	}
	fs := &noted{FileSystem: securefs.MakeFsInMemory(disk), read: map[string]bool{}}
	if err := fs.WriteFile(file, manifest); err != nil {
		return nil, fmt.Errorf("write kustomization.yaml: %w", err)
	}
	w := walk{fs: fs, root: root, seen: map[string]bool{}, within: map[string]bool{}}
	if err := w.local(dir); err != nil {
		return nil, err
	}
	built, err := generator.Build(fs, dir)
	if err != nil {
		return nil, errors.New(strings.ReplaceAll(fs.said(err).Error(), root, ""))
	}
	out := &Built{Resources: built.Resources(), Files: map[string]bool{}}
	for name := range fs.read {
		if rel, err := filepath.Rel(root, name); err == nil && disk.Exists(name) {
			out.Files[filepath.ToSlash(rel)] = true
		}
	}
	return out, nil
}

// noted is a file system that notes which files were read, and whether one may have what is secret.
type noted struct {
	filesys.FileSystem
	secret bool
	// read are the files that were read.
	read map[string]bool
}

// ReadFile reads a file.
func (n *noted) ReadFile(name string) ([]byte, error) {
	raw, err := n.FileSystem.ReadFile(name)
	n.secret = n.secret || secretive.Match(raw)
	if err == nil {
		n.read[name] = true
	}
	return raw, err
}

func (n *noted) said(err error) error {
	if n.secret {
		return errHidden
	}
	return fmt.Errorf("kustomize: %w", err)
}

var (
	secretive = regexp.MustCompile(`Secret|secretGenerator|\bsops\b`)
	errHidden = errors.New("kustomize fails; what it says is left out, since there are Secrets")
)

// Said returns what kustomize says, unless it may quote what is secret. about is what it speaks of; nil if that is not known.
func Said(err error, about []byte) error {
	if out := (*securefs.ConstraintError)(nil); errors.As(err, &out) {
		return fmt.Errorf("kustomize: %s leads out of the source, by a link or by its path, and nothing there is read", out.Path)
	}
	if secretive.Match(about) || about == nil && secretive.MatchString(err.Error()) {
		return errHidden
	}
	return fmt.Errorf("kustomize: %w", err)
}

// walk looks through the folders that kustomize would read.
type walk struct {
	fs   filesys.FileSystem
	root string
	seen map[string]bool
	// within are the folders that the present one is named by, on the way to it.
	within map[string]bool
}

// local refuses what kustomize would fetch from elsewhere, or run: every file and folder that is named is in the source.
func (w *walk) local(dir string) error {
	if w.within[dir] {
		return fmt.Errorf("%s: its folders refer to each other in a circle", w.shown(dir))
	}
	if w.seen[dir] {
		return nil
	}
	w.seen[dir], w.within[dir] = true, true
	defer delete(w.within, dir)
	for _, n := range konfig.RecognizedKustomizationFileNames() {
		name := filepath.Join(dir, n)
		if !w.fs.Exists(name) || w.fs.IsDir(name) {
			continue
		}
		raw, err := w.fs.ReadFile(name)
		if err != nil {
			return fmt.Errorf("read %s: %w", w.shown(name), err)
		}
		refs, _, err := References(w.shown(name), raw)
		if err != nil {
			return err
		}
		for _, ref := range refs {
			at := filepath.Join(dir, filepath.FromSlash(ref))
			switch {
			case !generator.IsLocalRelativePath(ref) || strings.ContainsAny(ref, "@:?"):
				return fmt.Errorf("%s names %q, which is not in the source, and nothing but the source is fetched", w.shown(name), ref)
			case w.fs.IsDir(at):
				err = w.local(at)
			case !w.fs.Exists(at):
				err = fmt.Errorf("%s names %q, which the source does not have", w.shown(name), ref)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *walk) shown(name string) string {
	return strings.TrimPrefix(filepath.ToSlash(strings.TrimPrefix(name, w.root)), "/")
}

// References returns the files and folders that a file of kustomize names, and whether it makes Secrets. It refuses what would fetch or run
// something.
func References(name string, raw []byte) (refs []string, secrets bool, err error) {
	k := types.Kustomization{}
	if err := yaml.Unmarshal(raw, &k); err != nil {
		return nil, false, fmt.Errorf("%s: %w", name, err)
	}
	var all any
	if err := yaml.Unmarshal(raw, &all); err != nil {
		return nil, false, fmt.Errorf("%s: %w", name, err)
	}
	if remote(all) {
		return nil, false, fmt.Errorf("%s names an address, and nothing is fetched here", name)
	}
	if len(k.HelmCharts)+len(k.Generators)+len(k.Transformers)+len(k.Validators)+len(k.OpenAPI) > 0 {
		return nil, false, fmt.Errorf("%s has helmCharts, generators, transformers, validators or openapi, which are not built here", name)
	}
	//nolint:staticcheck // SA1019: people still have bases
	return slices.Concat(k.Resources, k.Components, k.Bases), len(k.SecretGenerator) > 0, nil
}

// remote returns whether a file of kustomize holds an address outside of the texts that it passes on. Wherever it takes the
// path of a file, kustomize takes an address too.
func remote(v any) bool {
	switch v := v.(type) {
	case string:
		return strings.Contains(v, "://")
	case []any:
		return slices.ContainsFunc(v, remote)
	case map[string]any:
		for k, x := range v {
			passed := slices.Contains([]string{"patch", "literals", "commonAnnotations", "labels", "options", "images"}, k)
			if !passed && remote(x) {
				return true
			}
		}
	}
	return false
}
