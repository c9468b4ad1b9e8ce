// SPDX-License-Identifier: Apache-2.0

package inflate

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	generator "github.com/fluxcd/pkg/kustomize"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-hub/chandler/internal/kustomize"
)

// kustomize makes what a Kustomization puts on its cluster.
func (f *Inflater) kustomize(ctx context.Context, in *Input) (*Result, error) {
	built, err := f.build(ctx, in)
	if err != nil {
		return nil, err
	}
	out := &Result{}
	spec := &in.kust.Spec
	always := in.kust.GetSubstituteStrategy() == kustomizev1.SubstituteStrategyAlways
	for _, res := range built.Resources {
		if spec.PostBuild != nil {
			res = res.DeepCopy()
			// Strict is kustomize-controller's default (StrictPostBuildSubstitutions, since 1.9).
			_, err := generator.SubstituteVariables(ctx, documents{from: f.From}, *in.object.Flux, res,
				generator.SubstituteWithAlways(always), generator.SubstituteWithStrict(true))
			if err != nil {
				return nil, fmt.Errorf("spec.postBuild, %s %s: %w", res.GetKind(), res.GetName(), unset(kustomize.Said(err, []byte(res.MustYaml()))))
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
func (f *Inflater) build(ctx context.Context, in *Input) (*kustomize.Built, error) {
	folder, err := f.From.Folder(ctx, in.source)
	if err != nil {
		return nil, err
	}
	spec, _ := in.object.Flux.Object["spec"].(map[string]any)
	what := kustomize.Decisive(spec)
	key := hash([]any{folder.Digest, what})
	if one, err, ok := f.builds.get(key); ok {
		return one, err
	}
	one, err := kustomize.Build(folder.Root, what)
	if errors.Is(err, kustomize.ErrNoFolder) {
		err = fmt.Errorf("the source has no folder %q", in.kust.Spec.Path)
	}
	f.builds.put(key, one, err)
	return one, err
}
