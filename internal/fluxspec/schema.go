// SPDX-License-Identifier: Apache-2.0

package fluxspec

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/chandler-hub/chandler/internal/crdschema"
)

// gvk returns the full kind of a Flux object that delivers bodies of a kind, or is a source.
func gvk(kind string) schema.GroupVersionKind {
	switch kind {
	case HelmReleaseKind, ManifestsKind:
		return helmv2.GroupVersion.WithKind(HelmReleaseKind)
	case KustomizationKind:
		return kustomizev1.GroupVersion.WithKind(kind)
	}
	return sourcev1.GroupVersion.WithKind(kind)
}

// Lacks says that a path within a body leads to no field; "" if it may lead to one.
func Lacks(kind string, path []string, author Author) string {
	if kind == ManifestsKind {
		if len(decode(kind, map[string]any{path[0]: nil})) == 0 {
			return ""
		}
		return "is not a field of " + called(kind)
	}
	s := author.Schemas.Of(gvk(kind))
	if s == nil {
		return ""
	}
	return s.Lacks(append([]string{"spec"}, path...)...)
}

// checkSchema validates a body by the CRD of its Flux kind, as the API server will when the hub applies it. Fields that the hub fills
// in may be missing, and in a partial body any. Helm values are left out: they may hold anything. So may a text that Flux substitutes:
// only that it is one is looked at, for a fleet has another one on each cluster.
func checkSchema(kind string, body map[string]any, author Author, partial bool) []Problem {
	s := author.Schemas.Of(gvk(kind))
	if s == nil {
		return nil
	}
	if kind == ManifestsKind {
		partial = true // the rest of the HelmRelease is the hub's
	}
	c := copier{}
	spec := map[string]any{}
	for k, v := range body {
		own := kind != ManifestsKind || slices.Contains([]string{"interval", "timeout", "targetNamespace"}, k)
		if own && (kind != HelmReleaseKind || k != "values") {
			spec[k] = c.copy("spec."+k, v)
		}
	}
	if partial && len(spec) == 0 { // most overlays have nothing but values
		return nil
	}
	if !partial {
		d := defaulter{spec}
		d.set("10m", "interval")
		if kind == KustomizationKind {
			d.set(true, "prune")
		}
	}
	problems := names(spec)
	if kind == KustomizationKind {
		blank(spec)
	}
	object := map[string]any{"apiVersion": gvk(kind).GroupVersion().String(), "kind": gvk(kind).Kind,
		"metadata": map[string]any{"name": "generated", "namespace": "generated"}, "spec": spec}
	var found []crdschema.Problem
	if partial || len(c.holes) > 0 {
		found = s.Check(object, crdschema.Options{Partial: partial, Holes: c.holes})
	} else {
		found = s.CheckOften(object)
	}
	for _, p := range found {
		p.Path = strings.TrimPrefix(strings.TrimPrefix(p.Path, "spec"), ".")
		if strings.HasPrefix(p.Message, `is "OCIRepository"`) && p.Path == "chart.spec.sourceRef.kind" {
			p.Message += "; for an OCIRepository write chartRef in place of chart"
		}
		problems = append(problems, Problem(p))
	}
	return problems
}

// blank empties the texts that Flux substitutes in what a Kustomization applies.
func blank(spec map[string]any) {
	build, _ := spec["postBuild"].(map[string]any)
	substitute, _ := build["substitute"].(map[string]any)
	for name, v := range substitute {
		if _, ok := v.(string); ok {
			substitute[name] = ""
		}
	}
}

// copier copies a body, with a sample in place of each Hole.
type copier struct{ holes []string }

func (c *copier) copy(path string, v any) any {
	switch v := v.(type) {
	case Hole:
		c.holes = append(c.holes, path)
		if n, ok := v.Sample.(int); ok {
			return int64(n)
		}
		return v.Sample
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			out[k] = c.copy(path+"."+k, x)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = c.copy(fmt.Sprintf("%s[%d]", path, i), x)
		}
		return out
	case int:
		return int64(v)
	}
	return v
}

// A Helm release's name is more than what Flux's CRD says of it.
var releaseName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

// names checks what Flux's CRDs let pass and the workload cluster refuses, or Helm.
func names(spec map[string]any) []Problem {
	var problems []Problem
	wrong := func(field, form string) {
		problems = append(problems, Problem{field, fmt.Sprintf("is %q: write lower-case letters, digits and %s, with a letter or a digit "+
			"at both ends", spec[field], form)})
	}
	for _, field := range []string{"targetNamespace", "storageNamespace"} {
		name, _ := spec[field].(string)
		if name != "" && len(name) <= validation.DNS1123LabelMaxLength && len(validation.IsDNS1123Label(name)) > 0 {
			wrong(field, "-")
		}
	}
	if name, _ := spec["releaseName"].(string); name != "" && !releaseName.MatchString(name) {
		wrong("releaseName", "- and .")
	}
	return problems
}

// beside adds problems to others, except where the others have one already.
func beside(more, problems []Problem) []Problem {
	there := len(problems)
	for _, p := range more {
		if !slices.ContainsFunc(problems[:there], func(o Problem) bool { return o.Path == p.Path || strings.HasPrefix(p.Path, o.Path+".") }) {
			problems = append(problems, p)
		}
	}
	return problems
}
