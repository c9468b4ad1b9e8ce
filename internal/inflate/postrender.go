// SPDX-License-Identifier: Apache-2.0

package inflate

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	fluxkustomize "github.com/fluxcd/pkg/apis/kustomize"
	generator "github.com/fluxcd/pkg/kustomize"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kustypes "sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/resid"
	"sigs.k8s.io/yaml"

	"github.com/chandler-hub/chandler/internal/kustomize"
	"github.com/chandler-hub/chandler/internal/yamlfile"
)

func sum(text string) string {
	s := sha256.Sum256([]byte(text))
	return hex.EncodeToString(s[:])
}

// read reads the objects of a stream of YAML documents, those of lists among them.
func read(stream []byte) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, document := range yamlfile.Split(stream) {
		asJSON, err := yaml.YAMLToJSON(document.Raw)
		if err != nil {
			return nil, errors.New("is no YAML") // what the library says may quote what a Secret holds
		}
		if string(asJSON) == "null" || string(asJSON) == "{}" {
			continue
		}
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(asJSON); err != nil {
			return nil, errors.New("is no object of Kubernetes")
		}
		if !u.IsList() {
			out = append(out, u)
			continue
		}
		err = u.EachListItem(func(o runtime.Object) error {
			if one, ok := o.(*unstructured.Unstructured); ok {
				out = append(out, one)
			}
			return nil
		})
		if err != nil {
			return nil, errors.New("is a list of something else than objects")
		}
	}
	return out, nil
}

// postRender does what helm-controller's post-renderers do, but for the labels that name the HelmRelease.
func (r *release) postRender(hooks, plain []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	strategy := r.GetPostRenderStrategy()
	var out []*unstructured.Unstructured
	var err error
	switch strategy {
	case helmv2.PostRenderStrategyNoHooks:
		if plain, err = r.render(plain); err != nil {
			return nil, err
		}
		return append(plain, hooks...), nil
	case helmv2.PostRenderStrategySeparate:
		if plain, err = r.render(plain); err != nil {
			return nil, err
		}
		if hooks, err = r.render(hooks); err != nil {
			return nil, err
		}
		return append(plain, hooks...), nil
	default:
		out, err = r.render(append(plain, hooks...))
	}
	return out, err
}

// render patches objects, and gives them the metadata that all have in common.
func (r *release) render(objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	if err := unique(objects); err != nil {
		return nil, err
	}
	for i := range r.Spec.PostRenderers {
		k := r.Spec.PostRenderers[i].Kustomize
		if k == nil || len(objects) == 0 {
			continue
		}
		var err error
		if objects, err = patched(objects, k); err != nil {
			return nil, fmt.Errorf("spec.postRenderers[%d]: %w", i, err)
		}
	}
	if m := r.Spec.CommonMetadata; m != nil {
		mark(objects, m.Labels, m.Annotations)
	}
	return objects, nil
}

// unique refuses two objects of one name, as kustomize does, through which Flux passes everything.
func unique(objects []*unstructured.Unstructured) error {
	there := map[string]bool{}
	for _, u := range objects {
		id := u.GroupVersionKind().GroupKind().String() + " " + u.GetNamespace() + "/" + u.GetName()
		if there[id] && u.GetName() != "" {
			return fmt.Errorf("%s %s is there twice, and Flux refuses that", u.GetKind(), u.GetName())
		}
		there[id] = true
	}
	return nil
}

// mark gives objects labels and annotations.
func mark(objects []*unstructured.Unstructured, labels, annotations map[string]string) {
	for _, u := range objects {
		if len(labels) > 0 {
			u.SetLabels(merged(u.GetLabels(), labels))
		}
		if len(annotations) > 0 {
			u.SetAnnotations(merged(u.GetAnnotations(), annotations))
		}
	}
}

func merged(there, more map[string]string) map[string]string {
	out := make(map[string]string, len(there)+len(more))
	for _, m := range []map[string]string{there, more} {
		for k, v := range m {
			out[k] = v
		}
	}
	return out
}

// patched passes objects through kustomize, in memory.
func patched(objects []*unstructured.Unstructured, k *helmv2.Kustomize) ([]*unstructured.Unstructured, error) {
	var all bytes.Buffer
	for _, u := range objects {
		raw, err := yaml.Marshal(u.Object)
		if err != nil {
			return nil, errors.New("an object cannot be written as YAML")
		}
		all.WriteString("---\n")
		all.Write(raw)
	}
	file := kustypes.Kustomization{Resources: []string{"all.yaml"}}
	file.APIVersion, file.Kind = kustypes.KustomizationVersion, kustypes.KustomizationKind
	for _, i := range k.Images {
		file.Images = append(file.Images, kustypes.Image{Name: i.Name, NewName: i.NewName, NewTag: i.NewTag, Digest: i.Digest})
	}
	for _, p := range k.Patches {
		file.Patches = append(file.Patches, kustypes.Patch{Patch: p.Patch, Target: selector(p.Target)})
	}
	raw, err := yaml.Marshal(file)
	if err != nil {
		return nil, fmt.Errorf("write it for kustomize: %w", err)
	}
	fs := filesys.MakeFsInMemory()
	for name, content := range map[string][]byte{"/all.yaml": all.Bytes(), "/kustomization.yaml": raw} {
		if err := fs.WriteFile(name, content); err != nil {
			return nil, fmt.Errorf("write it for kustomize: %w", err)
		}
	}
	built, err := generator.Build(fs, "/")
	if err != nil {
		return nil, kustomize.Said(err, all.Bytes())
	}
	stream, err := built.AsYaml()
	if err != nil {
		return nil, kustomize.Said(err, all.Bytes())
	}
	return read(stream)
}

func selector(s *fluxkustomize.Selector) *kustypes.Selector {
	if s == nil {
		return nil
	}
	return &kustypes.Selector{
		ResId:              resid.ResId{Gvk: resid.Gvk{Group: s.Group, Version: s.Version, Kind: s.Kind}, Name: s.Name, Namespace: s.Namespace},
		LabelSelector:      s.LabelSelector,
		AnnotationSelector: s.AnnotationSelector,
	}
}
