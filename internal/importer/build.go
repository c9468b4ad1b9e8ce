// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"errors"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/chandler-hub/chandler/internal/importer/folding"
	"github.com/chandler-hub/chandler/internal/importer/layout"
	"github.com/chandler-hub/chandler/internal/kustomize"
)

// Root is a folder that somebody named, with all files below it.
type Root struct {
	// Dir is its path, with slashes, as it is in the names of files.
	Dir  string
	Tree *layout.Tree
}

// rel returns the path of a file in the folder; false if it lies elsewhere. The names of files do not begin with the folder if that is
// the working folder.
func (r Root) rel(file string) (string, bool) {
	rel, err := filepath.Rel(r.Dir, file)
	return filepath.ToSlash(rel), err == nil && filepath.IsLocal(rel)
}

// maxRounds is how deep Kustomizations may apply Kustomizations.
const maxRounds = 20

// Build adds the objects that only come out of the folders of repositories: what the Kustomizations for the management
// cluster apply, those that come out of others among them. An object of a file in such a folder is what it is built from, and
// does not count itself.
func (r *Reader) Build(roots []Root) {
	before := *r
	objects, origins, templates := slices.Clone(r.in.Objects), slices.Clone(r.in.Origins), maps.Clone(r.templates)
	(&builder{Reader: r, roots: roots}).run()
	// Variables may come from a ConfigMap that only comes out of a folder: then everything is built again, with that.
	found := r.configMaps
	*r = before
	r.in.Objects, r.in.Origins, r.templates, r.configMaps = objects, origins, templates, found
	(&builder{Reader: r, roots: roots}).run()
}

// builder builds folders again and again, until nothing new comes out of them.
type builder struct {
	*Reader
	roots []Root
	// makers are the keys of what makes each object, by the object's.
	makers map[string]string
	// done are the specs of Kustomizations that were built, by key.
	done map[string]any
	// folders are the folders that were built, by root and path, each with the Kustomization that applies it; "" if none is known.
	folders map[string]string
	// failed are the folders that a Kustomization applies and that could not be built.
	failed map[string]bool
}

func (b *builder) run() {
	b.notes = maps.Clone(b.notes)
	b.makers, b.done, b.folders, b.failed = map[string]string{}, map[string]any{}, map[string]string{}, map[string]bool{}
	b.rounds()
	// What is left may be listed and patched by a kustomization.yaml that no Kustomization applies, but somebody.
	for _, root := range b.roots {
		wanted := slices.DeleteFunc(root.Tree.Roots(), func(folder string) bool { return !b.wanted(root, folder) })
		for _, folder := range wanted {
			b.build(root, nil, &kustomizev1.Kustomization{Spec: kustomizev1.KustomizationSpec{Path: folder}})
		}
	}
	b.rounds()
	b.unlisted()
}

// unlisted marks what lies in a folder that a Kustomization applies, and is no part of it, such as templates to copy, with all that would
// come out of it.
func (b *builder) unlisted() {
	listed := map[string]bool{}
	unlisted := map[string]string{}
	for i := range b.in.Objects {
		o := &b.in.Objects[i]
		if o.Unlisted = b.beside(o); o.Unlisted != "" {
			unlisted[o.String()] = o.Unlisted
		} else {
			listed[o.String()] = true
		}
	}
	for again := true; again; {
		again = false
		for i := range b.in.Objects {
			o := &b.in.Objects[i]
			maker := b.makers[o.String()]
			if by := unlisted[maker]; o.Built && o.Unlisted == "" && by != "" && !listed[maker] {
				o.Unlisted, unlisted[o.String()], again = by, by, true
				delete(listed, o.String())
			}
		}
	}
}

// beside returns the Kustomization that applies a folder above an object's file, and not the file; "" if there is none.
func (b *builder) beside(o *folding.Object) string {
	for _, root := range b.roots {
		rel, ok := root.rel(o.File)
		for dir := rel; ok && !o.Built && dir != "."; {
			dir = path.Dir(dir)
			at := root.Dir + "//" + strings.TrimPrefix(dir, ".")
			if maker := b.folders[at]; maker != "" || b.failed[at] {
				return maker
			}
		}
	}
	return ""
}

// rounds builds what the Kustomizations apply that are known, and what those apply that come out of these.
func (b *builder) rounds() {
	for range maxRounds {
		again := false
		for _, made := range slices.Clone(b.in.Objects) {
			k := kustomizationOf(made.Unstructured)
			if k == nil || equality.Semantic.DeepEqual(b.done[made.String()], made.Unstructured.Object["spec"]) ||
				k.Spec.KubeConfig != nil {
				continue
			}
			if !slices.ContainsFunc(b.in.Objects, func(o folding.Object) bool { return o.Unstructured == made.Unstructured }) {
				continue // something that is built now has taken its place
			}
			b.forget(made.String())
			b.done[made.String()] = made.Unstructured.Object["spec"]
			if root, ok := b.at(&made, k); ok {
				again = true
				b.build(root, &made, k)
			}
		}
		if !again {
			return
		}
	}
}

// kustomizationOf reads a Kustomization of Flux, also one of an earlier version; nil if it is none.
func kustomizationOf(u *unstructured.Unstructured) *kustomizev1.Kustomization {
	if kindOf(u) != kustomization {
		return nil
	}
	current, _, err := folding.Convert(u)
	k := &kustomizev1.Kustomization{}
	if err != nil || runtime.DefaultUnstructuredConverter.FromUnstructured(current.Object, k) != nil {
		return nil
	}
	return k
}

// at finds the folder that a Kustomization applies. A path counts from the root of a repository, which may be the folder that
// was named, or one below it that the Kustomization's file is in.
func (b *builder) at(made *folding.Object, k *kustomizev1.Kustomization) (Root, bool) {
	for _, root := range b.roots {
		if root.Tree.Has(layout.Folder(k)) && k.Spec.Path != "" {
			return root, true
		}
	}
	for _, root := range b.roots {
		rel, ok := root.rel(made.File)
		for dir := path.Dir(rel); ok && dir != "."; dir = path.Dir(dir) {
			if folder := path.Join(dir, layout.Folder(k)); root.Tree.Has(folder) && k.Spec.Path != "" {
				k.Spec.Path = folder
				return root, true
			}
		}
	}
	return Root{}, false
}

// build adds what comes out of a folder. made is nil if no Kustomization of Flux applies it.
func (b *builder) build(root Root, made *folding.Object, k *kustomizev1.Kustomization) {
	folder := layout.Folder(k)
	about, file, line, maker := path.Join(root.Dir, folder), path.Join(root.Dir, folder), 1, ""
	if made != nil {
		about, file, line, maker = made.String(), made.File, made.Line, made.String()
	}
	built, err := root.Tree.Build(k, func(namespace, name string) (map[string]string, bool) {
		data, known := b.configMaps[namespace+"/"+name]
		return data, known
	})
	switch {
	case errors.Is(err, kustomize.ErrNoFolder):
		return
	case err != nil && made == nil:
		b.note(about, "%s is built of a kustomization.yaml, and what comes out is not known: %v", about, err)
		return
	case err != nil:
		b.failed[root.Dir+"//"+folder] = true
		b.note(about, "%s (%s, line %d) is for the management cluster, and what it applies is not known: %v", made, file, line, err)
		return
	}
	b.folders[root.Dir+"//"+folder] = maker
	b.consume(root, built)
	for _, u := range built.Objects {
		b.addBuilt(folding.Object{File: file, Line: line, Built: true, Unstructured: u}, maker, built.Unread)
	}
}

// consume takes out what is in the files that a folder was built of.
func (b *builder) consume(root Root, built *layout.Built) {
	inside := func(file string) bool {
		rel, ok := root.rel(file)
		return ok && built.Files[rel]
	}
	b.in.Objects = slices.DeleteFunc(b.in.Objects, func(o folding.Object) bool { return !o.Built && inside(o.File) })
	for file := range b.templates {
		if inside(file) {
			delete(b.templates, file)
		}
	}
}

// addBuilt adds an object that comes out of a folder, in place of the same one in a file.
func (b *builder) addBuilt(o folding.Object, maker string, unread []string) {
	if !slices.Contains(taken, kindOf(o.Unstructured)) {
		return
	}
	if o.GetNamespace() == "" {
		o.SetNamespace("default") // as kubectl would
	}
	if kindOf(o.Unstructured) == "/ConfigMap" {
		b.add(o)
		return
	}
	if maker != "" {
		labels := o.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		_, name, _ := strings.Cut(maker, " ")
		labels["kustomize.toolkit.fluxcd.io/namespace"], labels["kustomize.toolkit.fluxcd.io/name"], _ = strings.Cut(name, "/")
		o.SetLabels(labels)
	}
	o.Unread = unread
	if kind := kindOf(o.Unstructured); kind == helmRelease || kind == kustomization {
		b.makers[o.String()] = maker
		b.replace(o.String(), func(raw folding.Object) bool {
			return equality.Semantic.DeepEqual(raw.Unstructured.Object["spec"], o.Unstructured.Object["spec"])
		})
	}
	b.add(o)
}

// replace takes out the objects of a key that are to be replaced.
func (b *builder) replace(key string, which func(folding.Object) bool) {
	b.in.Objects = slices.DeleteFunc(b.in.Objects, func(o folding.Object) bool { return o.String() == key && which(o) })
}

// forget takes out what a Kustomization made when it was built in another form.
func (b *builder) forget(maker string) {
	for key, by := range b.makers {
		if by == maker {
			delete(b.makers, key)
			delete(b.done, key)
			b.replace(key, func(o folding.Object) bool { return o.Built })
			b.forget(key)
		}
	}
}

// wanted returns whether a folder with a kustomization.yaml makes objects for other clusters that nothing else made.
func (b *builder) wanted(root Root, folder string) bool {
	for done := range b.folders {
		dir, at, _ := strings.Cut(done, "//")
		if dir == root.Dir && (at == "" || at == folder || strings.HasPrefix(folder, at+"/")) {
			return false
		}
	}
	files := root.Tree.Reads(folder)
	return slices.ContainsFunc(b.in.Objects, func(o folding.Object) bool {
		rel, ok := root.rel(o.File)
		return ok && !o.Built && files[rel] && (forAnother(o.Unstructured) || root.Tree.Mentions(files, "kubeConfig"))
	})
}
