// SPDX-License-Identifier: Apache-2.0

package inflate

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	generator "github.com/fluxcd/pkg/kustomize"
	securefs "github.com/fluxcd/pkg/kustomize/filesys"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/chandler-hub/chandler/internal/layout"
)

// build is what kustomize makes of a folder, before variables are substituted.
type build struct{ resources []*resource.Resource }

// kustomize makes what a Kustomization puts on its cluster.
func (f *Inflater) kustomize(ctx context.Context, in *Input) (*Result, error) {
	built, err := f.build(ctx, in)
	if err != nil {
		return nil, err
	}
	out := &Result{}
	spec := &in.kust.Spec
	always := in.kust.GetSubstituteStrategy() == kustomizev1.SubstituteStrategyAlways
	for _, res := range built.resources {
		if spec.PostBuild != nil {
			res = res.DeepCopy()
			// Strict is kustomize-controller's default (StrictPostBuildSubstitutions, since 1.9).
			_, err := generator.SubstituteVariables(ctx, documents{from: f.From}, *in.object.Flux, res,
				generator.SubstituteWithAlways(always), generator.SubstituteWithStrict(true))
			if err != nil {
				return nil, fmt.Errorf("spec.postBuild, %s %s: %w", res.GetKind(), res.GetName(), unset(said(err, []byte(res.MustYaml()))))
			}
		}
		raw, err := res.AsYAML()
		if err != nil {
			return nil, fmt.Errorf("write %s %s: %w", res.GetKind(), res.GetName(), err)
		}
		found, err := read(raw)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", res.GetKind(), res.GetName(), err)
		}
		out.Objects = append(out.Objects, found...)
	}
	out.Objects = slices.DeleteFunc(out.Objects, isLeft)
	if m := spec.CommonMetadata; m != nil {
		mark(out.Objects, m.Labels, m.Annotations)
	}
	return out, nil
}

var unsetVariable = regexp.MustCompile(`variable not set \(strict mode\): "([^"]*)"`)

// unset says of a variable that nothing sets what to do about it. Flux applies nothing of the folder then.
func unset(err error) error {
	m := unsetVariable.FindStringSubmatch(err.Error())
	if m == nil {
		return err
	}
	return fmt.Errorf("nothing sets the variable ${%[1]s}, and Flux then applies nothing of the folder: "+
		"set it in postBuild.substitute, write "+
		"${%[1]s:=default}, or $${%[1]s} for text", m[1])
}

// isLeft returns whether Flux leaves an object alone.
func isLeft(u *unstructured.Unstructured) bool {
	for _, m := range []map[string]string{u.GetLabels(), u.GetAnnotations()} {
		group := kustomizev1.GroupVersion.Group
		if strings.EqualFold(m[group+"/reconcile"], kustomizev1.DisabledValue) || strings.EqualFold(m[group+"/ssa"], kustomizev1.IgnoreValue) {
			return true
		}
	}
	return false
}

// build runs kustomize, once for all that differ in their variables alone.
func (f *Inflater) build(ctx context.Context, in *Input) (*build, error) {
	folder, err := f.From.Folder(ctx, in.source)
	if err != nil {
		return nil, err
	}
	k := &unstructured.Unstructured{Object: map[string]any{}}
	spec, _ := in.object.Flux.Object["spec"].(map[string]any)
	what := map[string]any{}
	for _, field := range []string{"path", "targetNamespace", "namePrefix", "nameSuffix", "patches", "components", "ignoreMissingComponents",
		"images", "buildMetadata"} {
		if v, ok := spec[field]; ok {
			what[field] = v
		}
	}
	k.Object["spec"] = what
	key := hash([]any{folder.Digest, what})
	if one, err, ok := f.builds.get(key); ok {
		return one, err
	}
	one, err := buildFolder(folder.Root, in.kust, k)
	f.builds.put(key, one, err)
	return one, err
}

// buildFolder is what kustomize-controller does, without bases from elsewhere. What Flux writes into kustomization.yaml stays in memory.
func buildFolder(root string, k *kustomizev1.Kustomization, what *unstructured.Unstructured) (*build, error) {
	disk, err := securefs.MakeFsOnDiskSecure(root)
	if err != nil {
		return nil, fmt.Errorf("read the folder: %w", err)
	}
	dir := filepath.Join(root, filepath.FromSlash(path.Clean("/"+k.Spec.Path)))
	if !disk.IsDir(dir) {
		return nil, fmt.Errorf("the source has no folder %q", k.Spec.Path)
	}
	manifest, file, _, err := generator.NewGenerator(root, *what).GenerateManifest(dir)
	if err != nil {
		return nil, errors.New(strings.ReplaceAll(said(err, nil).Error(), root, ""))
	}
	fs := &noted{FileSystem: securefs.MakeFsInMemory(disk)}
	if err := fs.WriteFile(file, manifest); err != nil {
		return nil, fmt.Errorf("write kustomization.yaml: %w", err)
	}
	w := walk{fs: fs, root: root, seen: map[string]bool{}}
	if err := w.local(dir); err != nil {
		return nil, err
	}
	built, err := generator.Build(fs, dir)
	if err != nil {
		return nil, errors.New(strings.ReplaceAll(fs.said(err).Error(), root, ""))
	}
	return &build{built.Resources()}, nil
}

// noted is a file system that notes whether a file was read that may have what is secret.
type noted struct {
	filesys.FileSystem
	secret bool
}

// ReadFile reads a file.
func (n *noted) ReadFile(name string) ([]byte, error) {
	raw, err := n.FileSystem.ReadFile(name)
	n.secret = n.secret || secretive.Match(raw)
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

// said returns what kustomize says, unless it may quote what is secret.
func said(err error, about []byte) error {
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
}

// local refuses what kustomize would fetch from elsewhere, or run: every file and folder that is named is in the source.
func (w *walk) local(dir string) error {
	if w.seen[dir] {
		return nil
	}
	w.seen[dir] = true
	for _, n := range konfig.RecognizedKustomizationFileNames() {
		name := filepath.Join(dir, n)
		if !w.fs.Exists(name) || w.fs.IsDir(name) {
			continue
		}
		raw, err := w.fs.ReadFile(name)
		if err != nil {
			return fmt.Errorf("read %s: %w", w.shown(name), err)
		}
		refs, _, err := layout.References(w.shown(name), raw)
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
