// SPDX-License-Identifier: Apache-2.0

package fluxspec

import (
	"slices"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
)

// SourceKinds are the kinds of sources that a set may keep.
var SourceKinds = []string{sourcev1.GitRepositoryKind, sourcev1.OCIRepositoryKind, sourcev1.HelmRepositoryKind, sourcev1.BucketKind}

func newSourceSpec(kind string) any {
	switch kind {
	case sourcev1.GitRepositoryKind:
		return &sourcev1.GitRepositorySpec{}
	case sourcev1.OCIRepositoryKind:
		return &sourcev1.OCIRepositorySpec{}
	case sourcev1.HelmRepositoryKind:
		return &sourcev1.HelmRepositorySpec{}
	}
	return &sourcev1.BucketSpec{}
}

// CheckSource validates the spec of a source, and returns the problems, or nil. A Hole stands for a value that is not
// known yet.
func CheckSource(kind string, spec map[string]any, author Author) []Problem {
	if _, ok := spec["suspend"]; ok {
		return []Problem{{"suspend", "would keep every cluster from changes; suspend the generated source with `flux suspend` instead"}}
	}
	if many := tooMany(kind, spec); many != nil {
		return many
	}
	problems := decode(kind, spec)
	if len(problems) > maxWrong {
		return sorted(problems)
	}
	address := map[bool]string{true: "endpoint", false: "url"}[kind == sourcev1.BucketKind]
	if _, said := spec[address]; len(problems) == 0 && said && !isThere(spec, address) {
		problems = append(problems, Problem{address, "is required"})
	}
	problems = beside(IgnoredInSource(kind, spec), problems)
	if problems = beside(checkSchema(kind, spec, author, len(problems) > 0), problems); len(problems) == 0 {
		problems = author.Team.checkSource(kind, spec)
	}
	return sorted(problems)
}

// DefaultSource fills in the fields that a source's spec leaves out, in place.
func DefaultSource(spec map[string]any) {
	defaulter{spec}.set("10m", "interval")
}

// sourceReferences returns the paths in a body at which a reference may name one of the set's own sources, with the
// kinds that fit.
func sourceReferences(kind string) map[string][]string {
	switch kind {
	case KustomizationKind:
		return map[string][]string{"sourceRef": {sourcev1.GitRepositoryKind, sourcev1.OCIRepositoryKind, sourcev1.BucketKind}}
	case HelmReleaseKind:
		return map[string][]string{
			"chart.spec.sourceRef": {sourcev1.HelmRepositoryKind, sourcev1.GitRepositoryKind, sourcev1.BucketKind},
			"chartRef":             {sourcev1.OCIRepositoryKind},
		}
	}
	return nil
}

// SourceReference is a reference in a body to a source.
type SourceReference struct {
	// Path is the path in the body, and Ref the reference there. Ref is part of the body and not a copy.
	Path string
	Ref  map[string]any
	// Kinds that the reference may have.
	Kinds []string
}

// SourceReferences returns the references in a body that name a source without a namespace. These may name one of the
// set's own sources.
func SourceReferences(kind string, body map[string]any) []SourceReference {
	return slices.DeleteFunc(AllReferences(kind, body), func(r SourceReference) bool { return r.Ref["namespace"] != nil })
}

// AllReferences returns the references in a body to sources.
func AllReferences(kind string, body map[string]any) []SourceReference {
	var out []SourceReference
	for path, kinds := range sourceReferences(kind) {
		at := any(body)
		for _, k := range strings.Split(path, ".") {
			m, _ := at.(map[string]any)
			at = m[k]
		}
		if ref, ok := at.(map[string]any); ok {
			out = append(out, SourceReference{path, ref, kinds})
		}
	}
	return out
}

func dotted(path []string) string { return strings.Join(path, ".") }
