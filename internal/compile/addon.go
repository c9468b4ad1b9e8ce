// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/expression"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/merge"
	"github.com/chandler-hub/chandler/internal/nearest"
)

// field returns the name of the field that holds an add-on's body, the body's kind, and the body; "" if there is not
// exactly one body.
func field(in *hubv1.AddonBody) (name, kind string, n int) {
	if in.HelmRelease != nil {
		name, kind, n = "helmRelease", fluxspec.HelmReleaseKind, n+1
	}
	if in.Kustomization != nil {
		name, kind, n = "kustomization", fluxspec.KustomizationKind, n+1
	}
	if in.Manifests != nil {
		name, kind, n = "manifests", fluxspec.ManifestsKind, n+1
	}
	return name, kind, n
}

// Field returns the name of the field in an AddonSet that holds a body of the kind.
func Field(kind string) string {
	switch kind {
	case fluxspec.HelmReleaseKind:
		return "helmRelease"
	case fluxspec.KustomizationKind:
		return "kustomization"
	}
	return "manifests"
}

// CRDSuffix is the suffix of the second release of an add-on of manifests, which holds its CustomResourceDefinitions.
// Helm looks up all kinds before it applies anything, so the definitions need a release of their own.
const CRDSuffix = "-crds"

// maxRelease is Helm's limit on the name of a release, in characters.
const maxRelease = 53

func (c *compiler) addon(in *hubv1.Addon) Addon {
	out := Addon{Name: in.Name, Orphan: in.DeletionPolicy == hubv1.DeletionPolicyOrphan, Optional: in.Optional, Adopt: in.Adopt}
	if _, ok := c.kinds[in.Name]; ok {
		c.fail("", in.Name, "", "the name is used twice; an add-on's name is its identity on a cluster")
	}
	name, kind, n := field(&in.AddonBody)
	out.Kind, c.kinds[in.Name] = kind, kind
	for _, d := range in.DependsOn {
		if d.AddonSet == c.author.Set {
			d.AddonSet = ""
		}
		out.DependsOn = append(out.DependsOn, d)
	}
	if n != 1 {
		c.fail("", in.Name, "", "write exactly one of helmRelease, kustomization and manifests")
		return out
	}
	if kind == fluxspec.ManifestsKind && len(in.Name)+len(CRDSuffix) > maxRelease {
		c.fail("", in.Name, "", "the name of an add-on of manifests has at most %d characters", maxRelease-len(CRDSuffix))
	}
	out.When = c.when("", in.Name, in.When)
	out.open = c.overridable(in, kind)
	out.MovedFrom = c.movedFrom(in)
	c.adopt(in)
	if out.Body = c.object("", in.Name, name, bodyOf(&in.AddonBody)); out.Body == nil {
		return out
	}
	known := c.holes(out.Body)
	c.ownSources("", in.Name, name, kind, known)
	c.resolve(in.Name, name, kind, known)
	c.fails("", in.Name, name, out.Body, known, func() []fluxspec.Problem { return fluxspec.Check(kind, known, c.author) })
	return out
}

// resolve fills in the kind of each reference to one of the set's own sources, and rejects references that do not
// fit.
func (c *compiler) resolve(addon, field, kind string, body map[string]any) {
	for _, ref := range fluxspec.SourceReferences(kind, body) {
		name, _ := ref.Ref["name"].(string)
		s, ok := c.p.Sources[name]
		_, hole := ref.Ref["name"].(fluxspec.Hole)
		switch {
		case ref.Ref["kind"] != nil && ref.Ref["kind"] != s.Kind:
		case ok && !slices.Contains(ref.Kinds, s.Kind):
			c.fail("", addon, Join(field, ref.Path), "source %q of this set is of kind %s, and this takes %s", name, s.Kind,
				strings.Join(ref.Kinds, ", "))
			ref.Ref["kind"] = fluxspec.Hole{Sample: fluxspec.TextSample} // that it is missing, or another, is no second error
		case ok:
			ref.Ref["kind"] = s.Kind
		case hole:
			ref.Ref["kind"] = fluxspec.Hole{Sample: ref.Kinds[0]}
		case c.author.Team == nil: // see ownSources for a Team's
			if why := c.p.NoSource(ref); why != "" {
				c.fail("", addon, Join(field, ref.Path), "%s", why)
				ref.Ref["kind"] = fluxspec.Hole{Sample: fluxspec.TextSample} // that it is missing is no second error
			}
		}
	}
}

// when compiles a condition: one expression that returns a boolean.
func (c *compiler) when(overlay, addon, text string) *expression.Template {
	if text == "" {
		return nil
	}
	c.scan(overlay, addon, "when", text, 0)
	t := c.p.templates[text]
	if t == nil {
		if !expression.Has(text) {
			c.fail(overlay, addon, "when", "must be an expression, such as << cluster.provider == 'Kamaji' >>")
		}
		return nil
	}
	if t.Type() != expression.Bool && t.Type() != expression.Dyn {
		c.fail(overlay, addon, "when", "%s gives %s, and must be one expression that gives true or false", excerpt.Cut(text, maxShown),
			typeName(t.Type()))
	}
	return t
}

func (c *compiler) movedFrom(in *hubv1.Addon) []hubv1.MovedAddon {
	var out []hubv1.MovedAddon
	for i, m := range in.MovedFrom {
		path := fmt.Sprintf("movedFrom[%d]", i)
		if m.Namespace != "" && m.Namespace != c.author.Namespace && !c.author.Platform {
			c.fail("", in.Name, path+".namespace", "is %q: a set outside the platform namespaces may take over only from sets in its own "+
				"namespace, %q", m.Namespace, c.author.Namespace)
		}
		m = m.Of(c.author.Namespace, c.author.Set, in.Name)
		if m.Name == in.Name && m.AddonSet == c.author.Set && m.Namespace == c.author.Namespace {
			c.fail("", in.Name, path, "names the add-on itself")
		}
		out = append(out, m)
	}
	return out
}

func (c *compiler) adopt(in *hubv1.Addon) {
	if in.Adopt == nil {
		return
	}
	if in.Manifests != nil {
		c.fail("", in.Name, "adopt", "is for helmRelease and kustomization: manifests are a release of another chart, and Flux would reinstall")
	}
	c.scan("", in.Name, "adopt.name", in.Adopt.Name, 0)
	c.scan("", in.Name, "adopt.namespace", in.Adopt.Namespace, 0)
	if ns := in.Adopt.Namespace; ns != "" && !expression.Has(ns) && ns != c.author.Namespace && !c.author.Platform {
		c.fail("", in.Name, "adopt.namespace", "is %q: a set outside the platform namespaces may take over only objects of its own namespace, %q",
			ns, c.author.Namespace)
	}
}

func (c *compiler) overlay(in *hubv1.Overlay) Overlay {
	out := Overlay{Name: in.Name, Addons: map[string]AddonOverlay{}}
	if s := in.ClusterSelector; s != nil {
		selector, err := metav1.LabelSelectorAsSelector(s)
		switch {
		case err != nil:
			c.fail(in.Name, "", "clusterSelector", "%s", err)
		case selector.Empty():
			c.fail(in.Name, "", "clusterSelector", "is empty: what is for every cluster belongs into the add-on itself")
		}
		out.Selector = selector
	}
	if in.ClusterSelector == nil && in.When == "" {
		c.fail(in.Name, "", "", "write a clusterSelector, when, or both")
	}
	out.When = c.when(in.Name, "", in.When)
	out.Variables = c.variables(in.Name, in.Variables)
	for i := range in.Addons {
		a := &in.Addons[i]
		if _, ok := out.Addons[a.Name]; ok {
			c.fail(in.Name, a.Name, "", "the add-on is listed twice; write one entry for it")
		}
		out.Addons[a.Name] = c.addonOverlay(in.Name, a.Name, &a.AddonBody, a.Patches, a.Exclude)
	}
	return out
}

func (c *compiler) addonOverlay(overlay, addon string, body *hubv1.AddonBody, patches []hubv1.PatchOperation, exclude *bool) AddonOverlay {
	out := AddonOverlay{Exclude: exclude}
	want, ok := c.kinds[addon]
	if !ok {
		c.fail(overlay, addon, "", "there is no add-on of that name in this set; it has %s%s", strings.Join(c.names(), ", "),
			nearest.Meant(addon, c.names()))
		return out
	}
	name, kind, n := field(body)
	switch {
	case n > 1 || n == 1 && kind != want:
		c.fail(overlay, addon, name, "the add-on is a %s; write %s", want, Field(want))
		return out
	case n == 1:
		if out.Body = c.object(overlay, addon, name, bodyOf(body)); out.Body != nil {
			part := c.holes(out.Body)
			c.ownSources(overlay, addon, name, kind, part)
			c.fails(overlay, addon, name, out.Body, part, func() []fluxspec.Problem { return fluxspec.CheckPart(kind, part, c.author) })
			c.merges(overlay, addon, name, out.Body)
		}
	}
	operations := make([]merge.Operation, 0, len(patches))
	for i, p := range patches {
		op := merge.Operation{Op: p.Op, Path: p.Path, From: p.From}
		if p.Value != nil {
			op.Value, op.HasValue = c.value(overlay, addon, fmt.Sprintf("patches[%d].value", i), p.Value), true
		}
		operations = append(operations, op)
	}
	if len(operations) == 0 {
		return out
	}
	patch, err := merge.NewPatch(operations)
	if err != nil {
		c.fail(overlay, addon, "", "%s", err)
	}
	out.Patch = patch
	return out
}

// merges rejects a part that cannot be merged with the set's own body.
func (c *compiler) merges(overlay, addon, field string, part map[string]any) {
	i := slices.IndexFunc(c.p.Addons, func(a Addon) bool { return a.Name == addon })
	if path, why := c.p.Unmergeable(c.p.Addons[i].Body, part); path != nil {
		c.fail(overlay, addon, Join(field, strings.Join(path, ".")), "%s", why)
	}
}

func (c *compiler) names() []string {
	names := make([]string, len(c.p.Addons))
	for i := range c.p.Addons {
		names[i] = c.p.Addons[i].Name
	}
	return names
}
