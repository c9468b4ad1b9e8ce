// SPDX-License-Identifier: Apache-2.0

// Package fluxspec knows the specs of Flux's HelmRelease and Kustomization. It checks the bodies of an AddonSet
// against the real Flux types, and fills in the defaults of an add-on. Bodies stay maps, so the hub applies only the
// fields that an author wrote and those that are defaulted here.
package fluxspec

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	sigsjson "sigs.k8s.io/json"

	"github.com/chandler-hub/chandler/internal/crdschema"
	"github.com/chandler-hub/chandler/internal/jsontype"
)

// The kinds of Flux objects that deliver add-ons.
const (
	HelmReleaseKind   = helmv2.HelmReleaseKind
	KustomizationKind = kustomizev1.KustomizationKind
)

// Problem is one mistake in a body.
type Problem struct {
	// Path is the field, such as chart.spec.version; empty for the body as a whole.
	Path string
	// Message says what is wrong and what to write instead.
	Message string
}

// Author says who wrote a body. The author decides what the body may refer to.
type Author struct {
	// Namespace and Set name the AddonSet.
	Namespace, Set string
	// Platform is true if it is in a platform namespace. Other sets may not refer to sources of another namespace.
	Platform bool
	// Team is what the Team allows that governs the namespace; nil if none does. None governs a platform namespace.
	Team *TeamRules
	// Schemas are those of Flux's CRDs; nil for those that are built in.
	Schemas *crdschema.Library
}

// refused are fields that the hub sets itself, or that mean something else in an AddonSet. The value says what to do
// instead.
var refused = map[string]string{
	"kubeConfig": "is set by the hub for each cluster; remove it",
	"suspend":    "would stop every cluster; suspend the generated object of one cluster with `flux suspend` instead",
	"dependsOn":  "belongs to the add-on, beside its name, and names add-ons; the hub translates it for each cluster",
}

// Check validates a body, which is the spec of a Flux object of the given kind before defaults. It returns the
// problems, or nil. Paths are relative to the body. A Hole stands for a value that is not known yet.
func Check(kind string, body map[string]any, author Author) []Problem {
	body, problems, enough := first(kind, body, author)
	if enough {
		return problems
	}
	whole := checkSchema(kind, body, author, false)
	if len(problems)+len(whole) > 0 { // what is missing is said best by required
		problems = beside(checkSchema(kind, body, author, true), problems)
	}
	if len(problems) == 0 {
		problems = append(references(kind, body, author), author.Team.checkPart(kind, body)...)
	}
	if len(problems) == 0 {
		problems = append(required(kind, body), author.Team.checkWhole(kind, body)...)
	}
	if len(problems) == 0 {
		problems = whole
	}
	return sorted(problems)
}

// CheckPart validates the part of a body that an overlay sets. It checks what Check does, but requires no field.
func CheckPart(kind string, body map[string]any, author Author) []Problem {
	body, problems, enough := first(kind, body, author)
	if enough {
		return problems
	}
	problems = beside(checkSchema(kind, body, author, true), problems)
	if len(problems) == 0 {
		problems = append(references(kind, body, author), author.Team.checkPart(kind, body)...)
	}
	return sorted(problems)
}

// first returns the body as Flux knows it, what is wrong at first sight, and whether that is enough to tell.
func first(kind string, body map[string]any, author Author) (is map[string]any, problems []Problem, enough bool) {
	if many := tooMany(kind, body); many != nil {
		return body, many, true
	}
	is, problems = known(kind, body, author)
	problems = sorted(append(problems, beside(ignored(kind, is), decodable(kind, is))...))
	return is, problems, len(problems) > maxWrong
}

// decodable returns the fields that are the hub's, and those that do not decode.
func decodable(kind string, body map[string]any) []Problem {
	var problems []Problem
	for field, remedy := range refused {
		if _, ok := body[field]; ok {
			problems = append(problems, Problem{field, remedy})
		}
	}
	return append(problems, decode(kind, body)...)
}

// sorted returns the first problems, by their paths.
func sorted(problems []Problem) []Problem {
	sort.SliceStable(problems, func(i, j int) bool { return problems[i].Path < problems[j].Path })
	if len(problems) > maxTold {
		return slices.Clone(problems[:maxTold]) // without the others behind them
	}
	return problems
}

// decode decodes the body into the Flux type. Manifests are of a type of ours, without a CRD: there, a misspelt field is an error.
func decode(kind string, body map[string]any) []Problem {
	if kind != ManifestsKind {
		body = withoutHoles(body)
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return []Problem{{Message: "cannot be written as JSON"}}
	}
	unknown, err := sigsjson.UnmarshalStrict(raw, newSpec(kind))
	if err != nil {
		return locate(kind, body, nil, err)
	}
	if kind != ManifestsKind {
		return nil // the CRD tells
	}
	problems := make([]Problem, 0, len(unknown))
	for _, u := range unknown {
		path, ok := strings.CutPrefix(u.Error(), `unknown field "`)
		if !ok {
			problems = append(problems, Problem{Message: u.Error()})
			continue
		}
		problems = append(problems, Problem{strings.TrimSuffix(path, `"`), "is not a field of " + called(kind)})
	}
	return problems
}

// withoutHoles returns a body without the values of which not even the type is known. In JSON they would be null, which no duration takes.
func withoutHoles(body map[string]any) map[string]any {
	out := make(map[string]any, len(body))
	for k, v := range body {
		switch v := v.(type) {
		case Hole:
			if v.Sample != nil {
				out[k] = v
			}
		case map[string]any:
			out[k] = withoutHoles(v)
		default:
			out[k] = v
		}
	}
	return out
}

func newSpec(kind string) any {
	switch kind {
	case HelmReleaseKind:
		return &helmv2.HelmReleaseSpec{}
	case ManifestsKind:
		return &Manifests{}
	case KustomizationKind:
		return &kustomizev1.KustomizationSpec{}
	}
	return newSourceSpec(kind)
}

func called(kind string) string {
	if kind == ManifestsKind {
		return "manifests"
	}
	return "a Flux " + kind
}

// locate finds the fields that do not decode, because some decoders (durations, quantities) do not name the field in
// their error. It decodes the body once for each leaf, with nothing else in it. This happens only if something is
// wrong.
func locate(kind string, body map[string]any, whole []string, err error) []Problem {
	var problems []Problem
	var walk func(path []string, v any)
	walk = func(path []string, v any) {
		if len(path) > 0 && decodesAlone(kind, path, v) == nil {
			return // nothing in it is wrong: most of a body is values, which nothing has to be found in
		}
		if m, ok := v.(map[string]any); ok && len(m) > 0 {
			for _, k := range slices.Sorted(maps.Keys(m)) {
				walk(append(path[:len(path):len(path)], k), m[k])
			}
			if len(path) == 0 || decodesAlone(kind, path, map[string]any{}) == nil {
				return
			}
		}
		if e := decodesAlone(kind, path, v); e != nil {
			text := plain(e)
			if said := notText(v); said != "" && decodesAlone(kind, path, "text") == nil {
				text = said
			}
			problems = append(problems, Problem{strings.Join(path, "."), text})
		}
	}
	walk(whole, body)
	if len(problems) == 0 {
		return []Problem{{Message: plain(err)}}
	}
	return problems
}

// notText says that a value must be text; "" if it is neither a number nor a boolean. YAML reads on, yes, y, no, off and n as one.
func notText(v any) string {
	switch v.(type) {
	case bool, int64, float64:
		return fmt.Sprintf("is %v, ", v) + noText
	}
	return ""
}

const noText = "which YAML reads as no text; put it in quotes"

// WantsText returns whether a field must be text, and is something else.
func WantsText(p Problem) bool {
	return strings.HasSuffix(p.Message, noText) || strings.HasSuffix(p.Message, "must be "+jsontype.Text)
}

func decodesAlone(kind string, path []string, v any) error {
	doc := v
	for i := len(path) - 1; i >= 0; i-- {
		doc = map[string]any{path[i]: doc}
	}
	raw, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	_, err = sigsjson.UnmarshalStrict(raw, newSpec(kind))
	return err
}

// plain rewords a decoder's error for people who write YAML and not Go.
func plain(err error) string {
	s := strings.TrimPrefix(err.Error(), "json: ")
	if from, rest, ok := strings.Cut(s, " into Go "); ok {
		typ := rest[strings.LastIndex(rest, " ")+1:]
		from = strings.TrimPrefix(from, "cannot unmarshal ")
		must := cmp.Or(jsontype.Name(typ), jsontype.Object)
		if typ == "v1.Duration" {
			must = "a duration such as 10m"
		}
		return fmt.Sprintf("is %s, and must be %s", cmp.Or(jsontype.Name(from), from), must)
	}
	if strings.HasPrefix(s, "time: ") {
		return strings.TrimPrefix(s, "time: ") + "; write a duration such as 10m"
	}
	return s
}

func required(kind string, body map[string]any) []Problem {
	switch kind {
	case ManifestsKind:
		return requiredManifests(body)
	case KustomizationKind:
		return requiredReference(body, "sourceRef", "GitRepository, OCIRepository, Bucket or ExternalArtifact")
	}
	_, hasChart := body["chart"]
	_, hasRef := body["chartRef"]
	if hasChart == hasRef {
		return []Problem{{"chart", "write exactly one of chart and chartRef"}}
	}
	for _, field := range []string{"releaseName", "targetNamespace", "storageNamespace"} {
		if v, there := body[field]; there && v == nil {
			return []Problem{{field, "must not be null: leave it out for the default, which is the add-on's name"}}
		}
	}
	if hasRef {
		return requiredReference(body, "chartRef", "OCIRepository, HelmChart or ExternalArtifact")
	}
	problems := requiredReference(body, "chart.spec.sourceRef", "HelmRepository, GitRepository or Bucket")
	if !isThere(body, "chart", "spec", "chart") {
		problems = append(problems, Problem{"chart.spec.chart", "is required: the name of the chart, or its path in the source"})
	}
	return problems
}

func requiredReference(body map[string]any, path, kinds string) []Problem {
	at := strings.Split(path, ".")
	var problems []Problem
	if !isThere(body, append(at[:len(at):len(at)], "kind")...) {
		problems = append(problems, Problem{path + ".kind", "is required: " + kinds +
			". It may be left out for a source of this set's spec.sources"})
	}
	if !isThere(body, append(at[:len(at):len(at)], "name")...) {
		problems = append(problems, Problem{path + ".name", "is required"})
	}
	return problems
}

// isThere returns whether a path holds a text, or a Hole that may become one.
func isThere(body map[string]any, path ...string) bool {
	v, ok, err := unstructured.NestedFieldNoCopy(body, path...)
	if _, hole := v.(Hole); hole {
		return true
	}
	s, text := v.(string)
	return ok && err == nil && text && s != ""
}

// references keeps a set outside the platform namespaces within its own namespace.
func references(kind string, body map[string]any, author Author) []Problem {
	if author.Platform || kind == ManifestsKind {
		return nil
	}
	paths := []string{"sourceRef"}
	if kind == HelmReleaseKind {
		paths = []string{"chart.spec.sourceRef", "chartRef"}
	}
	var problems []Problem
	for _, p := range paths {
		ns, _, _ := unstructured.NestedString(body, append(strings.Split(p, "."), "namespace")...)
		if ns != "" && ns != author.Namespace {
			problems = append(problems, Problem{p + ".namespace", fmt.Sprintf(
				"is %q: a set outside the platform namespaces may refer only to sources in its own namespace, %q", ns, author.Namespace)})
		}
	}
	return problems
}
