// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"fmt"
	"slices"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/crdschema"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/nearest"
)

// refused returns what the API server would refuse an object for, and the fields that it would drop.
func refused(u *unstructured.Unstructured, schemas *crdschema.Library, o crdschema.Options) []crdschema.Problem {
	s := schemas.Of(u.GroupVersionKind())
	if s == nil {
		return nil
	}
	problems := s.Check(runtime.DeepCopyJSON(u.Object), o)
	for i := range problems {
		if strings.Contains(problems[i].Message, "is not a field of") && !strings.Contains(problems[i].Message, "did you mean") {
			problems[i].Message += "; correct its name, or remove it"
		}
	}
	return problems
}

// beside adds the problems of a schema to others, except where these have one already.
func beside(more []crdschema.Problem, problems []string) []string {
	there := len(problems)
	for _, p := range more {
		if !slices.ContainsFunc(problems[:there], func(other string) bool { return strings.HasPrefix(p.Path+".", at(other)+".") }) {
			problems = append(problems, p.String())
		}
	}
	return problems
}

// at returns the path that a problem begins with.
func at(problem string) string {
	path, _, _ := strings.Cut(problem, ": ")
	return path
}

// kinds are those of our group. People do not write AddonDeliveries, but may have them in a backup.
var kinds = []string{setKind.Kind, registrationKind.Kind, teamKind.Kind, "AddonDelivery"}

// misnamed returns why an object that was meant for the hub is of no kind that the hub knows; "" if it was not, or is.
func misnamed(u *unstructured.Unstructured) string {
	gk, want := u.GroupVersionKind().GroupKind(), hubv1.GroupVersion.String()
	known := slices.Contains(kinds, strings.TrimSuffix(gk.Kind, "List"))
	switch {
	case gk.Group == hubv1.GroupVersion.Group && gk.Kind == "FleetSnapshot": // one of several documents, or in a list
		return "this is an export of a fleet, which only chandler diff reads: a file of its own, by --fleet"
	case gk.Group == hubv1.GroupVersion.Group && !known:
		text := fmt.Sprintf("there is no kind %s of %s", gk.Kind, gk.Group)
		if like := nearest.To(gk.Kind, kinds); like != "" {
			return text + "; did you mean " + like + "?"
		}
		return text + "; there are " + strings.Join(kinds, ", ")
	case gk.Group != hubv1.GroupVersion.Group && known && nearest.To(u.GetAPIVersion(), []string{want, hubv1.GroupVersion.Group}) != "":
		return fmt.Sprintf("apiVersion: is %q; did you mean %s?", u.GetAPIVersion(), want)
	}
	return ""
}

// source notes a Flux source, and checks it. The hub does not read it: Flux does.
func (p *parser) source(u *unstructured.Unstructured) {
	gk := u.GroupVersionKind().GroupKind()
	spec, _ := u.Object["spec"].(map[string]any)
	if gk.Group == sourcev1.GroupVersion.Group && u.GetName() != "" {
		p.objects = append(p.objects, Object{File: p.file, Kind: gk, Namespace: u.GetNamespace(), Name: u.GetName(), Source: true, Spec: spec})
	}
	if gk.Group != sourcev1.GroupVersion.Group || !slices.Contains(fluxspec.SourceKinds, gk.Kind) {
		return
	}
	address := "url"
	if gk.Kind == sourcev1.BucketKind {
		address = "endpoint"
	}
	_, whole := spec[address]
	// Flux substitutes variables before the API server sees them, and what has no address is a patch for kustomize.
	o := crdschema.Options{Partial: !whole, Holes: substituted(nil, "", u.Object)}
	if u.GetNamespace() == "" {
		o.Holes = append(o.Holes, "metadata.namespace") // a kustomization may say it
	}
	problems := refused(u, p.schemas, o)
	for _, problem := range fluxspec.IgnoredInSource(gk.Kind, spec) {
		if text, _ := spec[problem.Path].(string); !hasVariable(text) {
			problems = append(problems, crdschema.Problem{Path: "spec." + problem.Path, Message: problem.Message})
		}
	}
	for _, problem := range problems {
		p.fail("%s %s: %s", gk.Kind, strings.Trim(u.GetNamespace()+"/"+u.GetName(), "/"), problem)
	}
}

// substituted adds the paths of texts in which Flux substitutes variables.
func substituted(paths []string, path string, v any) []string {
	switch v := v.(type) {
	case string:
		if hasVariable(v) {
			return append(paths, path)
		}
	case map[string]any:
		for k, x := range v {
			paths = substituted(paths, strings.TrimPrefix(path+"."+k, "."), x)
		}
	case []any:
		for i, x := range v {
			paths = substituted(paths, fmt.Sprintf("%s[%d]", path, i), x)
		}
	}
	return paths
}
