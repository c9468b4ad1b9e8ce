// SPDX-License-Identifier: Apache-2.0

// Package compile turns an AddonSet's spec into a Program: checked, and ready to be rendered for any cluster. It is
// pure. The hub compiles a set once per revision; whatever a compiler refuses never reaches a cluster.
package compile

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/fluxspec"
)

// Program is a compiled set. It is never changed after Compile has returned it.
type Program struct {
	// Addons in the order of the set.
	Addons []Addon
}

// Addon is one compiled add-on.
type Addon struct {
	Name string
	// Kind is fluxspec.HelmReleaseKind or fluxspec.KustomizationKind.
	Kind string
	// DependsOn names add-ons of the same set and kind.
	DependsOn []string
	// Body is the spec as its author wrote it, without defaults.
	Body map[string]any
	// Orphan is true if the add-on's own deletionPolicy is Orphan.
	Orphan bool
}

// Errors are all the things that are wrong with a set, in the order of its add-ons.
type Errors []Error

// Error is one of them.
type Error struct {
	// Addon is the add-on's name.
	Addon string
	// Path is the field below the add-on, such as helmRelease.chart.spec.version.
	Path string
	// Message says what is wrong and what to write instead.
	Message string
}

func (e Error) Error() string {
	if e.Path == "" {
		return fmt.Sprintf("add-on %q: %s", e.Addon, e.Message)
	}
	return fmt.Sprintf("add-on %q: %s: %s", e.Addon, e.Path, e.Message)
}

func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i := range e {
		lines[i] = e[i].Error()
	}
	return strings.Join(lines, "; ")
}

// Compile checks the add-ons of a set and returns its program, or Errors.
func Compile(addons []hubv1.Addon, author fluxspec.Author) (*Program, error) {
	c := compiler{author: author, kinds: map[string]string{}}
	p := &Program{Addons: make([]Addon, 0, len(addons))}
	for i := range addons {
		p.Addons = append(p.Addons, c.addon(&addons[i]))
	}
	c.dependencies(p)
	c.releases(p)
	if len(c.errs) > 0 {
		return nil, c.errs
	}
	return p, nil
}

type compiler struct {
	author fluxspec.Author
	kinds  map[string]string
	errs   Errors
}

func (c *compiler) fail(addon, path, format string, args ...any) {
	c.errs = append(c.errs, Error{addon, path, fmt.Sprintf(format, args...)})
}

func (c *compiler) addon(in *hubv1.Addon) Addon {
	out := Addon{Name: in.Name, Orphan: in.DeletionPolicy == hubv1.DeletionPolicyOrphan}
	field, raw := "helmRelease", in.HelmRelease
	out.Kind = fluxspec.HelmReleaseKind
	if raw == nil {
		field, raw = "kustomization", in.Kustomization
		out.Kind = fluxspec.KustomizationKind
	}
	if _, ok := c.kinds[in.Name]; ok {
		c.fail(in.Name, "", "the name is used twice; an add-on's name is its identity on a cluster")
	}
	c.kinds[in.Name] = out.Kind
	for _, d := range in.DependsOn {
		out.DependsOn = append(out.DependsOn, d.Name)
	}
	if raw == nil || in.HelmRelease != nil && in.Kustomization != nil {
		c.fail(in.Name, "", "write exactly one of helmRelease and kustomization")
		return out
	}
	if err := json.Unmarshal(raw.Raw, &out.Body); err != nil || out.Body == nil {
		c.fail(in.Name, field, "must be an object")
		return out
	}
	for _, p := range fluxspec.Check(out.Kind, out.Body, c.author) {
		c.fail(in.Name, strings.TrimSuffix(field+"."+p.Path, "."), "%s", p.Message)
	}
	return out
}

// dependencies refuses names that are not there, other kinds, and cycles. Flux drops whole batches of events when its
// dependencies form a cycle (fluxcd/pkg/runtime/dependency, Sort), so none may ever reach it.
func (c *compiler) dependencies(p *Program) {
	needs := map[string][]string{}
	for _, a := range p.Addons {
		for _, d := range a.DependsOn {
			kind, ok := c.kinds[d]
			switch {
			case !ok:
				c.fail(a.Name, "dependsOn", "there is no add-on %q in this set; it has %s", d, strings.Join(c.names(p), ", "))
			case kind != a.Kind:
				c.fail(a.Name, "dependsOn", "%q is a %s and this is a %s: Flux orders only objects of one kind", d, kind, a.Kind)
			default:
				needs[a.Name] = append(needs[a.Name], d)
			}
		}
	}
	if cycle := findCycle(p, needs); cycle != nil {
		c.fail(cycle[0], "dependsOn", "add-ons wait for each other: %s", strings.Join(cycle, " -> "))
	}
}

func (c *compiler) names(p *Program) []string {
	names := make([]string, len(p.Addons))
	for i := range p.Addons {
		names[i] = p.Addons[i].Name
	}
	return names
}

// findCycle returns one cycle, its first name repeated at the end, or nil.
func findCycle(p *Program, needs map[string][]string) []string {
	const visiting, done = 1, 2
	state := map[string]int{}
	var path []string
	var visit func(string) []string
	visit = func(name string) []string {
		switch state[name] {
		case done:
			return nil
		case visiting:
			return append(slices.Clone(path[slices.Index(path, name):]), name)
		}
		state[name] = visiting
		path = append(path, name)
		for _, d := range needs[name] {
			if cycle := visit(d); cycle != nil {
				return cycle
			}
		}
		path = path[:len(path)-1]
		state[name] = done
		return nil
	}
	for _, a := range p.Addons {
		if cycle := visit(a.Name); cycle != nil {
			return cycle
		}
	}
	return nil
}

// releases refuses two add-ons that would be one Helm release: each would upgrade over the other for ever.
func (c *compiler) releases(p *Program) {
	seen := map[Release]string{}
	for _, a := range p.Addons {
		if a.Kind != fluxspec.HelmReleaseKind || a.Body == nil {
			continue
		}
		r := ReleaseOf(a)
		if other, ok := seen[r]; ok {
			c.fail(a.Name, "helmRelease.releaseName", "release %q in namespace %q is add-on %q's already", r.Name, r.Namespace, other)
		}
		seen[r] = a.Name
	}
}

// Release is a Helm release on a cluster.
type Release struct{ Namespace, Name string }

// ReleaseOf returns the release of a HelmRelease add-on.
func ReleaseOf(a Addon) Release {
	body := map[string]any{}
	for _, f := range []string{"releaseName", "targetNamespace", "storageNamespace"} {
		if v, ok := a.Body[f]; ok {
			body[f] = v
		}
	}
	fluxspec.Default(a.Kind, body, a.Name)
	name, _, _ := unstructured.NestedString(body, "releaseName")
	namespace, _, _ := unstructured.NestedString(body, "storageNamespace")
	return Release{Namespace: namespace, Name: name}
}
