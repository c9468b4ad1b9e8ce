// SPDX-License-Identifier: Apache-2.0

package fluxspec

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-hub/chandler/internal/crdschema"
)

// From is the field of an entry of valuesFrom, postBuild.substituteFrom, manifestsFrom or variablesFrom that says where
// its ConfigMap or Secret lies. Flux does not know this field, and gets a copy in the set's namespace.
const From = "from"

// FromCluster is the only value of From: the namespace of the cluster's registration.
const FromCluster = "Cluster"

// TeamFrom says why a set of a Team may not use From.
const TeamFrom = "is not for the sets of a Team: what lies beside a cluster is for those who run the cluster"

// documents are the fields of a body that name ConfigMaps and Secrets.
var documents = map[string][]string{
	HelmReleaseKind:   {"valuesFrom"},
	KustomizationKind: {"postBuild", "substituteFrom"},
	ManifestsKind:     {"manifestsFrom"},
}

// Documents returns the entries of a body that name ConfigMaps and Secrets, and the path of their list. No caller may
// write to them.
func Documents(kind string, body map[string]any) (path string, entries []any) {
	list, _, _ := unstructured.NestedFieldNoCopy(body, documents[kind]...)
	entries, _ = list.([]any)
	return strings.Join(documents[kind], "."), entries
}

// SetDocuments returns a body with other entries. The given body stays as it is.
func SetDocuments(kind string, body map[string]any, entries []any) map[string]any {
	out := maps.Clone(body)
	path, m := documents[kind], out
	for _, field := range path[:len(path)-1] {
		inner, _ := m[field].(map[string]any)
		m[field] = maps.Clone(inner)
		m = m[field].(map[string]any)
	}
	m[path[len(path)-1]] = entries
	return out
}

// WithoutFrom returns an entry without From, and whether it had it.
func WithoutFrom(entry any) (any, bool) {
	m, _ := entry.(map[string]any)
	if _, said := m[From]; !said {
		return entry, false
	}
	m = maps.Clone(m)
	delete(m, From)
	return m, true
}

// known returns a body as Flux knows it, without From, and what is wrong with From.
func known(kind string, body map[string]any, author Author) (map[string]any, []Problem) {
	path, entries := Documents(kind, body)
	var out []any
	var problems []Problem
	for i := range entries {
		entry, said := WithoutFrom(entries[i])
		if !said {
			continue
		}
		at := fmt.Sprintf("%s[%d].%s", path, i, From)
		switch from := entries[i].(map[string]any)[From]; {
		case author.Team != nil:
			problems = append(problems, Problem{at, TeamFrom})
		case from != FromCluster:
			problems = append(problems, Problem{at, "must be " + FromCluster +
				", written as it is, or be left out for an object of the set's own namespace"})
		}
		if out == nil {
			out = slices.Clone(entries)
		}
		out[i] = entry
	}
	if out == nil || kind == ManifestsKind { // manifests are the hub's own form, and its type has the field
		return body, problems
	}
	return SetDocuments(kind, body, out), problems
}

// KnowsLiteral returns whether the CRD of HelmReleases has valuesFrom[].literal, as that of Flux 2.9 and newer has.
func KnowsLiteral(schemas *crdschema.Library) bool {
	return Lacks(HelmReleaseKind, []string{"valuesFrom", crdschema.Items, "literal"}, Author{Schemas: schemas}) == ""
}
