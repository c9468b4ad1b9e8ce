// SPDX-License-Identifier: Apache-2.0

// Package compile turns an AddonSet's spec into a Program: checked, and ready to be rendered for any cluster. It is
// pure. The hub compiles a set once for each revision. A spec that does not compile never reaches a cluster.
package compile

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/crdschema"
	"github.com/chandler-hub/chandler/internal/expression"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/merge"
)

// Program is a compiled set. It is never changed after Compile has returned it.
type Program struct {
	// Addons in the order of the set.
	Addons []Addon
	// Overlays in the order of the set.
	Overlays []Overlay
	// Sources that the hub keeps for the set, by name.
	Sources map[string]Source
	// Variables of the set itself.
	Variables map[string]any
	// VariablesFrom are ConfigMaps of variables, the weakest first.
	VariablesFrom []VariablesSource
	// DependsOn names sets of the same namespace.
	DependsOn []string
	// Platform is true if the set is in a platform namespace.
	Platform bool
	// Team is what the Team of the set's namespace allows; nil if it has none.
	Team *fluxspec.TeamRules
	// Metadata of the set; nil if it has none, as no revision has.
	Metadata *Metadata
	// Pins of the revision; nil if it has none.
	Pins *Pins
	// Schemas are those of Flux's CRDs that the bodies are held to; nil for those that are built in.
	Schemas *crdschema.Library

	templates map[string]*expression.Template
	// namespaces are the names of the Team's namespaces that can be evaluated for a cluster, by their index.
	namespaces map[int]*expression.Template
}

// Addon is one compiled add-on.
type Addon struct {
	Name string
	// Kind is fluxspec.HelmReleaseKind, fluxspec.KustomizationKind or fluxspec.ManifestsKind.
	Kind string
	// DependsOn names add-ons of this set, or of others.
	DependsOn []hubv1.AddonReference
	// Body is the spec as its author wrote it, without defaults, its expressions as text.
	Body map[string]any
	// When is nil for always.
	When *expression.Template
	// Orphan is true if the add-on's own deletionPolicy is Orphan.
	Orphan bool
	// Optional is true if a cluster may exclude it.
	Optional bool
	// MovedFrom are its earlier names, with all fields filled in.
	MovedFrom []hubv1.MovedAddon
	// Adopt names a hand-written object; nil for none.
	Adopt *hubv1.Adoption

	open openPaths
}

// Overlay is one compiled overlay.
type Overlay struct {
	Name string
	// Selector and When are nil if the overlay does not have them.
	Selector  labels.Selector
	When      *expression.Template
	Variables map[string]any
	Addons    map[string]AddonOverlay
}

// AddonOverlay is what an overlay, or a cluster's override, changes in one add-on.
type AddonOverlay struct {
	// Body to merge; nil for none.
	Body map[string]any
	// Patch to apply after that; nil for none.
	Patch *merge.Patch
	// Exclude leaves the add-on out or takes it back in; nil says nothing.
	Exclude *bool
}

// Source is a Flux source that the hub keeps.
type Source struct {
	Name, Kind string
	Spec       map[string]any
}

// VariablesSource is a ConfigMap of variables.
type VariablesSource struct {
	// Name may hold expressions.
	Name string
	// Cluster is true for one in the namespace of the cluster's registration.
	Cluster, Optional bool
}

// Author says who wrote a set. The author decides what the set may do.
type Author = fluxspec.Author

// Template returns the compiled form of a text that contains <<. A text that the set did not contain at compile time,
// such as an escaped text of a cluster, is compiled now.
func (p *Program) Template(text string) (*expression.Template, error) {
	if t, ok := p.templates[text]; ok {
		return t, nil
	}
	return expression.Compile(text)
}

// Has returns whether a set has an add-on of that name, or an add-on of manifests whose CustomResourceDefinitions
// have that name.
func (p *Program) Has(addon string) bool {
	return slices.ContainsFunc(p.Addons, func(a Addon) bool { return addon == a.Name || addon == a.Name+CRDSuffix })
}

// Moves returns the earlier names of the add-ons that have any.
func (p *Program) Moves() map[string][]hubv1.MovedAddon {
	var out map[string][]hubv1.MovedAddon
	for i := range p.Addons {
		if a := &p.Addons[i]; len(a.MovedFrom) > 0 {
			if out == nil {
				out = map[string][]hubv1.MovedAddon{}
			}
			out[a.Name] = a.MovedFrom
		}
	}
	return out
}

// Moves returns the earlier names of a set's add-ons as far as its author may give them, for a set that is not compiled.
func Moves(set *hubv1.AddonSetSpec, author Author) map[string][]hubv1.MovedAddon {
	out := map[string][]hubv1.MovedAddon{}
	for i := range set.Addons {
		for _, m := range set.Addons[i].MovedFrom {
			if m = m.Of(author.Namespace, author.Set, set.Addons[i].Name); m.Namespace == author.Namespace || author.Platform {
				out[set.Addons[i].Name] = append(out[set.Addons[i].Name], m)
			}
		}
	}
	return out
}

// UsesOrigin returns whether any expression reads the origin.
func (p *Program) UsesOrigin() bool {
	for _, t := range p.templates {
		if t.UsesOrigin() {
			return true
		}
	}
	return false
}

// SetsNamed returns the other sets that the set or its add-ons depend on.
func (p *Program) SetsNamed() []string {
	out := slices.Clone(p.DependsOn)
	for i := range p.Addons {
		for _, ref := range p.Addons[i].DependsOn {
			if ref.AddonSet != "" {
				out = append(out, ref.AddonSet)
			}
		}
	}
	return out
}

// Expressions returns how many different texts with expressions the set contains.
func (p *Program) Expressions() int { return len(p.templates) }

// Errors are all problems of a set, in the order of its fields.
type Errors []Error

// Error is one problem of a set.
type Error struct {
	// Overlay and Addon name the place of the problem; empty if it is elsewhere.
	Overlay, Addon string
	// Path is the field below that, such as helmRelease.chart.spec.version.
	Path string
	// Message says what is wrong and what to write instead.
	Message string
	// Fact is the fact about the cluster that is not known yet, if that is all that is wrong; see package expression.
	Fact string
	// Absent is true if what it names is not there, and may still come: it may be in another repository.
	Absent bool
}

func (e Error) Error() string {
	var parts []string
	if e.Overlay != "" {
		parts = append(parts, fmt.Sprintf("overlay %q", e.Overlay))
	}
	if e.Addon != "" {
		parts = append(parts, fmt.Sprintf("add-on %q", e.Addon))
	}
	where := strings.Join(parts, ", ")
	if e.Path != "" && where != "" {
		where += ": "
	}
	return strings.TrimPrefix(where+e.Path+": "+e.Message, ": ")
}

func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i := range e {
		lines[i] = e[i].Error()
	}
	return strings.Join(lines, "; ")
}

// Compile checks a set and returns its program. The error is Errors.
func Compile(spec *hubv1.AddonSetSpec, author Author) (*Program, error) {
	c := compiler{author: author, kinds: map[string]string{},
		p: &Program{Platform: author.Platform, Schemas: author.Schemas, templates: map[string]*expression.Template{},
			Sources: map[string]Source{}}}
	c.team(spec)
	c.sets(spec)
	c.sources(spec)
	c.p.Variables = c.variables("", spec.Variables)
	c.variablesFrom(spec)
	for i := range spec.Addons {
		c.p.Addons = append(c.p.Addons, c.addon(&spec.Addons[i]))
	}
	for i := range spec.Overlays {
		c.p.Overlays = append(c.p.Overlays, c.overlay(&spec.Overlays[i]))
	}
	c.dependencies()
	c.releases()
	c.metadata(spec)
	if len(c.errs) > 0 {
		return nil, c.errs
	}
	return c.p, nil
}

// The limits of a set, so that no set costs more than a bounded time.
const (
	maxExpressions = 2000
	// maxText is how much text with expressions a set may contain in all, in bytes. maxWork is what type-checking it
	// may cost (expression.Template.Work).
	maxText  = 128 << 10
	maxWork  = 2_000_000
	maxDepth = 200
)

// expressions counts what the expressions of a set cost to compile.
type expressions struct {
	n, text, work int
	// over is true once the cost exceeds a limit. Then nothing more is compiled.
	over bool
}

// tooMany returns why no more expressions may be compiled; "" if more may.
func (e *expressions) tooMany() string {
	switch {
	case e.n >= maxExpressions:
		return fmt.Sprintf("the set holds more than %d texts with expressions", maxExpressions)
	case e.text > maxText:
		return fmt.Sprintf("the texts with expressions of the set have more than %d KiB together", maxText>>10)
	case e.work > maxWork:
		return "the expressions of the set have too many calls, lists, maps and loops together"
	}
	return ""
}

type compiler struct {
	author Author
	kinds  map[string]string
	p      *Program
	errs   Errors
	cost   expressions
}

func (c *compiler) fail(overlay, addon, path, format string, args ...any) {
	c.errs = append(c.errs, Error{Overlay: overlay, Addon: addon, Path: path, Message: fmt.Sprintf(format, args...)})
}

// enough is how many problems of a set are found before no more bodies are looked into. No author reads them all, and each body may take a
// second to look into.
const enough = 100

// fails tells of what a check finds in a body, which the set has at a path, unless there is enough to tell.
func (c *compiler) fails(overlay, addon, path string, body, known map[string]any, check func() []fluxspec.Problem) {
	if len(c.errs) >= enough {
		return
	}
	for _, p := range check() {
		c.fail(overlay, addon, Join(path, p.Path), "%s", Blame(p, body, known))
	}
}

func (c *compiler) sets(spec *hubv1.AddonSetSpec) {
	for _, d := range spec.DependsOn {
		if d.Name == c.author.Set && d.Name != "" {
			c.fail("", "", "dependsOn", "the set names itself")
		}
		c.p.DependsOn = append(c.p.DependsOn, d.Name)
	}
}

func (c *compiler) sources(spec *hubv1.AddonSetSpec) {
	for i := range spec.Sources {
		in := &spec.Sources[i]
		path := fmt.Sprintf("sources[%s]", in.Name)
		if _, ok := c.p.Sources[in.Name]; ok {
			c.fail("", "", path, "the name is used twice")
		}
		if !knownSource(in.Kind) {
			c.fail("", "", path+".kind", "is %q: write one of %s", in.Kind, strings.Join(fluxspec.SourceKinds, ", "))
			continue
		}
		s := Source{Name: in.Name, Kind: in.Kind, Spec: c.object("", "", path+".spec", in.Spec)}
		c.p.Sources[in.Name] = s
		if s.Spec == nil {
			continue
		}
		known := c.holes(s.Spec)
		c.fails("", "", path+".spec", s.Spec, known, func() []fluxspec.Problem { return fluxspec.CheckSource(s.Kind, known, c.author) })
	}
}

func knownSource(kind string) bool {
	for _, k := range fluxspec.SourceKinds {
		if k == kind {
			return true
		}
	}
	return false
}

func (c *compiler) variablesFrom(spec *hubv1.AddonSetSpec) {
	for i, v := range spec.VariablesFrom {
		path := fmt.Sprintf("variablesFrom[%d]", i)
		c.scan("", "", path+".configMap", v.ConfigMap, 0)
		if v.From != "" && c.author.Team != nil {
			c.fail("", "", path+"."+fluxspec.From, "%s", fluxspec.TeamFrom)
		}
		c.p.VariablesFrom = append(c.p.VariablesFrom, VariablesSource{v.ConfigMap, v.From == fluxspec.FromCluster, v.Optional})
	}
}

// Join returns the path of what is at more below a path; either may be empty.
func Join(path, more string) string {
	return strings.Trim(path+"."+more, ".")
}

// Dotted writes a path as people do: a.b[2].c.
func Dotted(path []string) string {
	return strings.ReplaceAll(strings.Join(path, "."), ".[", "[")
}
