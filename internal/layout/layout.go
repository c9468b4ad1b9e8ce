// SPDX-License-Identifier: Apache-2.0

// Package layout builds the folders of a repository as Flux's Kustomizations do, to find the Flux objects that only come out
// of them. It is pure: it reads the files from memory, and nothing from a network.
package layout

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// ErrNoFolder says that a Kustomization applies a folder that is not in the files.
var ErrNoFolder = errors.New("its folder is not in the files")

// names are those of a file that says how a folder is built.
var names = []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}

// Tree is the files of a repository, by their paths from its root.
type Tree struct {
	fs    filesys.FileSystem
	files map[string][]byte
	// secrets is true if a folder makes Secrets: an error may quote them.
	secrets bool
	// read are the files that the last folder was built of.
	read map[string]bool
}

// Built is what a Kustomization applies.
type Built struct {
	Objects []*unstructured.Unstructured
	// Unread are the objects that hold variables too, and were not read.
	Unread []string
	// Files are those that it was built of.
	Files map[string]bool
}

// New returns the tree of files, whose paths have slashes.
func New(files map[string][]byte) (*Tree, error) {
	t := &Tree{fs: filesys.MakeFsInMemory(), files: files}
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
// ErrNoFolder if its folder is not there.
func (t *Tree) Build(k *kustomizev1.Kustomization, configMaps ConfigMaps) (*Built, error) {
	folder := Folder(k)
	t.read = map[string]bool{}
	if !t.fs.IsDir("/" + folder) {
		return nil, ErrNoFolder
	}
	root, err := t.root(k, folder)
	if err != nil {
		return nil, err
	}
	raw, err := yaml.Marshal(root)
	if err != nil {
		return nil, err
	}
	const dir = "/.chandler-import"
	if err := t.fs.WriteFile(dir+"/kustomization.yaml", raw); err != nil {
		return nil, err
	}
	options := krusty.MakeDefaultOptions() // no plugins, no Helm
	options.LoadRestrictions = types.LoadRestrictionsNone
	built, err := krusty.MakeKustomizer(options).Run(t.fs, dir)
	if err != nil {
		if t.secrets {
			return nil, errors.New("kustomize cannot build its folder; what it says is left out, since the folder makes Secrets")
		}
		return nil, err
	}
	out := &Built{Files: maps.Clone(t.read)}
	variables := substitutionOf(k, configMaps)
	if variables != nil {
		out.Unread = variables.unread
	}
	for _, res := range built.Resources() {
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

// root returns the file of kustomize that does what the Kustomization says, seen from a folder beside all others.
func (t *Tree) root(k *kustomizev1.Kustomization, folder string) (*types.Kustomization, error) {
	root := &types.Kustomization{Namespace: k.Spec.TargetNamespace, NamePrefix: k.Spec.NamePrefix, NameSuffix: k.Spec.NameSuffix}
	root.Resources = t.resources(folder)
	for _, name := range root.Resources {
		t.read[name] = t.files[name] != nil
		if err := t.local(name, 0); err != nil {
			return nil, err
		}
	}
	for i := range k.Spec.Patches {
		p := types.Patch{Patch: k.Spec.Patches[i].Patch}
		if target := k.Spec.Patches[i].Target; target != nil {
			p.Target = &types.Selector{LabelSelector: target.LabelSelector, AnnotationSelector: target.AnnotationSelector}
			p.Target.Group, p.Target.Version, p.Target.Kind = target.Group, target.Version, target.Kind
			p.Target.Name, p.Target.Namespace = target.Name, target.Namespace
		}
		root.Patches = append(root.Patches, p)
	}
	for _, dir := range k.Spec.Components {
		at := strings.TrimPrefix(path.Join("/"+folder, dir), "/")
		if !t.fs.IsDir("/" + at) {
			if k.Spec.IgnoreMissingComponents {
				continue
			}
			return nil, fmt.Errorf("spec.components names %q, which is not in the files", dir)
		}
		if err := t.local(at, 0); err != nil {
			return nil, err
		}
		root.Components = append(root.Components, "../"+at)
	}
	for _, i := range k.Spec.Images {
		root.Images = append(root.Images, types.Image{Name: i.Name, NewName: i.NewName, NewTag: i.NewTag, Digest: i.Digest})
	}
	for i := range root.Resources {
		root.Resources[i] = "../" + root.Resources[i]
	}
	return root, nil
}

// resources returns the folder, or, if it does not say how it is built, what Flux finds in it: each file, and each folder
// that does say it.
func (t *Tree) resources(folder string) []string {
	if t.says(folder) {
		return []string{folder}
	}
	var out []string
	for name := range t.files {
		rest, ok := strings.CutPrefix(name, folder+"/")
		if folder == "" {
			rest, ok = name, true
		}
		if !ok || !slices.Contains([]string{".yaml", ".yml"}, path.Ext(name)) {
			continue
		}
		found := name
		for at, dir := folder, path.Dir(rest); dir != "."; {
			first, more, _ := strings.Cut(dir, "/")
			if at, dir = path.Join(at, first), more; t.says(at) {
				found = at
				break
			}
			if dir == "" {
				break
			}
		}
		out = append(out, found)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (t *Tree) says(folder string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return t.files[path.Join(folder, n)] != nil })
}

// maxDepth is how deep folders may refer to each other.
const maxDepth = 50

// local refuses what kustomize would fetch from elsewhere: every folder and file that is named must be in the tree.
func (t *Tree) local(folder string, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("%s: its folders refer to each other too deep, or in a circle", folder)
	}
	for _, n := range names {
		name := path.Join(folder, n)
		if t.files[name] == nil {
			continue
		}
		refs, secrets, err := References(name, t.files[name])
		if err != nil {
			return err
		}
		t.secrets, t.read[name] = t.secrets || secrets, true
		for _, ref := range refs {
			at := strings.TrimPrefix(path.Join("/"+folder, ref), "/")
			if t.files[at] != nil {
				t.read[at] = true
				continue
			}
			if !t.fs.IsDir("/" + at) {
				return fmt.Errorf("%s names %q, which is not in the files", name, ref)
			}
			if err := t.local(at, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
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

// Has returns whether there is a folder.
func (t *Tree) Has(folder string) bool { return t.fs.IsDir("/" + folder) }

// Reads returns the files that a folder with a kustomization.yaml is built of, as far as they are in the tree.
func (t *Tree) Reads(folder string) map[string]bool {
	was := t.read
	t.read = map[string]bool{}
	_ = t.local(folder, 0) // what is wrong with it is told when it is built
	out := t.read
	t.read = was
	return out
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
		if !slices.Contains(names, path.Base(name)) {
			continue
		}
		folder := strings.TrimPrefix(path.Dir("/"+name), "/")
		said[folder] = true
		refs, _, err := References(name, raw)
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
