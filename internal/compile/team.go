// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/expression"
	"github.com/chandler-hub/chandler/internal/fluxspec"
)

// CheckPriority returns Errors if a set asks for a higher priority than its Team allows. Compile does not: a revision has
// no priority.
func CheckPriority(spec *hubv1.AddonSetSpec, author Author) error {
	if r := author.Team; r != nil && spec.Priority > r.MaxPriority {
		return Errors{{Path: "priority", Message: r.Refusal("spec.maxPriority", "allows a priority of at most %d, and this is %d", r.MaxPriority,
			spec.Priority)}}
	}
	return nil
}

// team checks what the Team says about a set as a whole, and compiles the names of its namespaces.
func (c *compiler) team(spec *hubv1.AddonSetSpec) {
	r := c.author.Team
	if r == nil {
		return
	}
	c.p.Team = r
	if n := len(spec.Addons); n > r.Addons() {
		c.fail("", "", "addons", "%s", r.Refusal("spec.addons.max", "allows %d add-ons in a set, and this has %d", r.Addons(), n))
	}
	for i, name := range r.Namespaces {
		// A name that reads more than the cluster cannot be evaluated for a set of the team: variables are the set's own, and
		// the origin may be in a namespace that the team may not read.
		t, err := expression.Compile(name)
		if err != nil || !expression.Has(name) || t.UsesOrigin() || t.AllVars() || len(t.Vars()) > 0 {
			continue
		}
		if c.p.namespaces == nil {
			c.p.namespaces = map[int]*expression.Template{}
		}
		c.p.namespaces[i] = t
	}
}

// TeamOn returns what the Team allows on a cluster: as it is, with the names of the namespaces there. A name that cannot
// be evaluated there is empty, and no namespace is called that. A name that reads more than the cluster stays as it is
// (see fluxspec.TeamRules.Has). It returns nil if there is no Team.
func (p *Program) TeamOn(cluster *expression.Cluster) *fluxspec.TeamRules {
	if len(p.namespaces) == 0 {
		return p.Team
	}
	out := *p.Team
	out.Namespaces = slices.Clone(out.Namespaces)
	for i, t := range p.namespaces {
		v, err := t.Eval(expression.Input{Cluster: cluster})
		name, _ := v.(string)
		if err != nil || len(validation.IsDNS1123Label(name)) > 0 {
			name = ""
		}
		out.Namespaces[i] = name
	}
	return &out
}

// Own returns the set's own source that a reference in a body leads to; false if it leads to another one.
func (p *Program) Own(ref fluxspec.SourceReference) (Source, bool) {
	s, ok := p.named(ref)
	return s, ok && slices.Contains(ref.Kinds, s.Kind)
}

// named returns the set's own source that a reference names, whether it fits there or not.
func (p *Program) named(ref fluxspec.SourceReference) (Source, bool) {
	name, _ := ref.Ref["name"].(string)
	s, ok := p.Sources[name]
	return s, ok && ref.Ref["namespace"] == nil && (ref.Ref["kind"] == nil || ref.Ref["kind"] == s.Kind)
}

// NotOwned is what is wrong with a reference to a source that is not the set's own, if the Team says anything about
// sources: only a source of the set itself shows what it is. A HelmChart and an ExternalArtifact are never the set's own.
func NotOwned(r *fluxspec.TeamRules, ref fluxspec.SourceReference) string {
	return r.Refusal("spec.sources", "says which sources its sets may use, so an add-on refers to a source of its set's spec.sources by its "+
		"name, and %s is none of these", describe(ref.Ref))
}

func describe(ref map[string]any) string {
	text := func(field, otherwise string) string {
		if s, ok := ref[field].(string); ok && s != "" {
			return s
		}
		return otherwise
	}
	out := fmt.Sprintf("%s %q", text("kind", "source"), text("name", ""))
	if ns := text("namespace", ""); ns != "" {
		out += fmt.Sprintf(" in namespace %q", ns)
	}
	return out
}

// ownSources wants each reference in a body, or in the part of an overlay, to name one of the set's own sources, if the
// Team says anything about sources. What is not known yet is checked when it is rendered.
func (c *compiler) ownSources(overlay, addon, field, kind string, body map[string]any) {
	if !c.author.Team.RestrictsSources() {
		return
	}
	for _, ref := range fluxspec.AllReferences(kind, body) {
		open := overlay != "" && ref.Ref["name"] == nil && ref.Ref["namespace"] == nil
		for _, f := range []string{"kind", "name", "namespace"} {
			_, hole := ref.Ref[f].(fluxspec.Hole)
			open = open || hole
		}
		if _, named := c.p.named(ref); !open && !named {
			c.fail(overlay, addon, Join(field, ref.Path), "%s", NotOwned(c.author.Team, ref))
		}
	}
}
