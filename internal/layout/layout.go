// SPDX-License-Identifier: Apache-2.0

// Package layout builds the folders of a repository as Flux's Kustomizations do, to find the Flux objects that only come out
// of them. It is pure: it reads the files from memory, and nothing from a network.
package layout

import (
	"bytes"
	"errors"
	"fmt"
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

// Build returns what a Kustomization applies. The error is ErrNoFolder if its folder is not there.
func (t *Tree) Build(k *kustomizev1.Kustomization) ([]*unstructured.Unstructured, error) {
	folder := Folder(k)
	if !t.fs.IsDir("/" + folder) {
		return nil, ErrNoFolder
	}
	root := types.Kustomization{Namespace: k.Spec.TargetNamespace, NamePrefix: k.Spec.NamePrefix, NameSuffix: k.Spec.NameSuffix}
	root.Resources = t.resources(folder)
	for _, dir := range root.Resources {
		if err := t.local(dir, 0); err != nil {
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
	if len(k.Spec.Components) > 0 || len(k.Spec.Images) > 0 {
		return nil, errors.New("spec.components and spec.images are not built here")
	}
	for i := range root.Resources {
		root.Resources[i] = "../" + root.Resources[i]
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
	stream, err := built.AsYaml()
	if err != nil {
		return nil, err
	}
	return read(stream, k.Spec.PostBuild != nil)
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
		t.secrets = t.secrets || secrets
		for _, ref := range refs {
			at := strings.TrimPrefix(path.Join("/"+folder, ref), "/")
			if t.files[at] != nil {
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

// read reads the objects that were built.
func read(stream []byte, substituted bool) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, doc := range bytes.Split(stream, []byte("\n---\n")) {
		u := &unstructured.Unstructured{}
		raw, err := yaml.YAMLToJSON(doc)
		if err != nil {
			return nil, err
		}
		if string(raw) == "null" {
			continue
		}
		if err := u.UnmarshalJSON(raw); err != nil {
			return nil, err
		}
		if substituted && bytes.Contains(doc, []byte("${")) {
			return nil, fmt.Errorf("%s %s holds ${, and spec.postBuild replaces that: it is not done here", u.GetKind(), u.GetName())
		}
		out = append(out, u)
	}
	return out, nil
}
