// SPDX-License-Identifier: Apache-2.0

// Package render makes the Flux objects of one set for one cluster. It is pure: the same program, target and input
// give the same bytes, on every replica and after every restart. The command line calls the same function.
package render

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/render/document"
	"github.com/chandler-hub/chandler/internal/render/flux"
	"github.com/chandler-hub/chandler/internal/render/layers"
	"github.com/chandler-hub/chandler/internal/render/variables"
)

// Epoch is raised whenever this package renders the same input to different objects. It is part of every revision's
// name. A hub with a new epoch leaves the objects of older revisions as they are, until the set is rolled out again.
const Epoch = 4

// Errors are the problems of a set, or of an add-on, on one cluster.
type Errors = compile.Errors

// Render renders a program for a target. An error holds the whole delivery as it is.
func Render(p *compile.Program, t Target, in *Input) (*Result, error) {
	r := renderer{p: p, t: t, in: in, out: &Result{Excluded: map[string]string{}, Failed: map[string]Errors{}},
		sources: map[string]*flux.Shared{}, team: p.TeamOn(in.Cluster)}
	if err := r.prepare(); err != nil || len(r.out.Missing) > 0 {
		return r.out, err
	}
	for i := range p.Addons {
		r.deliver(&p.Addons[i])
	}
	r.releasesOnce()
	r.dress()
	if in.Explain {
		r.out.Vars, r.out.VarLayers = r.own.Values(), r.own.SetBy()
	}
	return r.out, nil
}

// Complete renders again and again, each time with the documents that the last result asked for, until none is
// missing. read reads a document; if it returns an error, so does Complete. The documents are left in in.Documents.
func Complete(p *compile.Program, t Target, in *Input, read func(document.Ref) (document.Document, error)) (*Result, error) {
	if in.Documents == nil {
		in.Documents = map[document.Ref]document.Document{}
	}
	for {
		result, err := Render(p, t, in)
		if err != nil || len(result.Missing) == 0 {
			return result, err
		}
		for _, ref := range result.Missing {
			if in.Documents[ref], err = read(ref); err != nil {
				return nil, err
			}
		}
	}
}

type renderer struct {
	p   *compile.Program
	t   Target
	in  *Input
	out *Result

	// scope is the view of the present attempt on the variables. own is the view with everything that the cluster's
	// owner wrote.
	scope, own *variables.Scope
	// others are the scopes without some of the cluster's variables, by what they leave out. budgets is what each
	// kind of scope may cost.
	others     map[string]*variables.Scope
	budgets    budgets
	configMaps []variables.Layer
	// cluster are the layers of the cluster's own variables, the weakest first, and besides those of them that lie beside the cluster.
	cluster, besides []variables.Layer
	overlays         []*compile.Overlay
	// overrides are the indices in Input.Overrides of the overrides that have not ended.
	overrides []int
	sources   map[string]*flux.Shared // those that have been evaluated: no variable of the cluster has a say in them
	// referred are the documents of Result.Refs: a set may refer to thousands.
	referred map[document.Ref]bool
	// plain are the set's own labels and annotations that hold no expression; nil until they are needed.
	plain *hubv1.OwnMetadata
	// marks are the values of the present attempt that rest on unknown facts, and sourceMarks those of each source.
	marks       []variables.Unknown
	sourceMarks map[string][]variables.Unknown
	// undecided are the add-ons of overlays of which it is not known whether they apply.
	undecided map[string]compile.Error
	// team is what the set's Team allows on this cluster; nil if the set is no team's.
	team *fluxspec.TeamRules
}

func (r *renderer) author() compile.Author {
	return compile.Author{Namespace: r.t.Namespace, Set: r.t.Set, Platform: r.p.Platform, Team: r.team, Schemas: r.p.Schemas}
}

// releasesOnce rejects add-ons of the set that have the same Helm release on this cluster: each would upgrade over
// the other forever.
func (r *renderer) releasesOnce() {
	seen := map[compile.Release]string{}
	r.out.Objects = slices.DeleteFunc(r.out.Objects, func(o flux.Object) bool {
		release := compile.Release{Namespace: o.Release.StorageNamespace, Name: o.Release.Name}
		if release.Name == "" {
			return false
		}
		if other, taken := seen[release]; taken {
			r.out.Failed[o.Addon] = Errors{{Addon: o.Addon, Message: fmt.Sprintf("release %q in namespace %q is add-on %q's already on this cluster",
				release.Name, release.Namespace, other)}}
			return true
		}
		seen[release] = o.Addon
		return false
	})
}

// made is the result of one attempt to render an add-on.
type made struct {
	objects []flux.Object
	// excluded says why the cluster does not get the add-on; empty if it does.
	excluded string
	// unknown are the values in the objects that rest on unknown facts.
	unknown []variables.Unknown
}

// addon renders one add-on with the variables of r.scope and some of the cluster's overrides, or says why the cluster
// does not get it.
func (r *renderer) addon(a *compile.Addon, overrides []change) (made, Errors) {
	wrong := func(path, format string, args ...any) (made, Errors) {
		return made{}, Errors{{Addon: a.Name, Path: path, Message: fmt.Sprintf(format, args...)}}
	}
	if a.When != nil {
		yes, decided, err := r.scope.Condition(a.When)
		switch {
		case err != nil:
			return made{}, Errors{{Addon: a.Name, Path: "when", Message: err.Error(), Fact: compile.Fact(err)}}
		case len(decided) > 0 && !a.Optional:
			return wrong("when", "depends on the cluster's variable %s, and the set does not let a cluster leave this add-on out (optional: true "+
				"would)", variables.Quoted(decided))
		case !yes:
			return made{excluded: "its when is not true here"}, nil
		}
	}
	l, errs := r.layers(a, overrides)
	if len(errs) > 0 || l.Excluded != "" {
		return made{excluded: l.Excluded}, errs
	}
	body, changed, errs := r.evaluate(a, l)
	if len(errs) > 0 {
		return made{}, errs
	}
	used, errs := r.ownSources(a, body)
	if len(errs) > 0 {
		return made{}, errs
	}
	if changed || r.team != r.p.Team { // what the Team allows may differ from cluster to cluster
		field := compile.Field(a.Kind)
		for _, p := range r.unmarked(a.Name, field, fluxspec.Check(a.Kind, body, r.author())) {
			errs = append(errs, compile.Error{Addon: a.Name, Path: compile.Join(field, p.Path), Message: compile.Blame(p, l.Body, body)})
		}
		if len(errs) > 0 {
			return made{}, errs
		}
	}
	adopt, errs := r.adopt(a)
	if len(errs) > 0 {
		return made{}, errs
	}
	objects, err := r.objects(a, body, used)
	if one := (compile.Error{}); errors.As(err, &one) {
		one.Addon = a.Name
		return made{}, Errors{one}
	}
	if err != nil {
		return wrong("", "%s", err)
	}
	if len(r.out.Missing) > 0 {
		return made{}, nil
	}
	if a.Kind == fluxspec.ManifestsKind {
		if why := r.duplicate(a, l.Body, body); why != "" {
			return wrong("manifests", "%s", why)
		}
	}
	last := &objects[len(objects)-1]
	last.Adopt, last.Trace = adopt, l.Trace
	return made{objects: objects, unknown: r.marks}, nil
}

// evaluate evaluates the expressions in a body. changed is true if the result differs from the compiled body.
func (r *renderer) evaluate(a *compile.Addon, l layers.Merged) (body map[string]any, changed bool, errs Errors) {
	e := variables.Evaluator{Scope: r.scope, Mark: r.in.Mark, Allowed: func(path, decided []string) error {
		switch {
		case a.MayInsert(path):
			return nil
		case a.IsClosed(path):
			return fmt.Errorf("depends on the cluster's variable %s, and no cluster may decide this", variables.Quoted(decided))
		}
		return fmt.Errorf("depends on the cluster's variable %s; the set must open the path to clusters by overridable first",
			variables.Quoted(decided))
	}}
	body, _ = e.Value(l.Body).(map[string]any)
	field := compile.Field(a.Kind)
	errs = e.Errors(a.Name, field)
	r.note(e.Unknown(a.Name, field))
	slices.SortFunc(errs, func(a, b compile.Error) int { return slices.Compare([]string{a.Path}, []string{b.Path}) })
	return body, l.Changed || e.Evaluated(), errs
}

func (r *renderer) adopt(a *compile.Addon) (*flux.Adopt, Errors) {
	if a.Adopt == nil {
		return nil, nil
	}
	out := &flux.Adopt{Kind: fluxKind(a.Kind), Namespace: r.t.Namespace}
	for _, f := range []struct {
		path, text string
		to         *string
	}{{"adopt.name", a.Adopt.Name, &out.Name}, {"adopt.namespace", a.Adopt.Namespace, &out.Namespace}} {
		if f.text == "" {
			continue
		}
		text, err := r.scope.Chosen(f.text)
		if err != nil {
			return nil, Errors{{Addon: a.Name, Path: f.path, Message: err.Error(), Fact: compile.Fact(err)}}
		}
		// This is checked before the document is read: a client rejects such a name.
		if what := validation.IsDNS1123Subdomain(text); len(what) > 0 {
			return nil, Errors{{Addon: a.Name, Path: f.path, Message: fmt.Sprintf("is %q, which no object can be called: %s. Write the name of a "+
				"%s that is there", text, what[0], adoptable(f.path, out.Kind))}}
		}
		*f.to = text
	}
	if out.Namespace != r.t.Namespace && !r.p.Platform {
		return nil, Errors{{Addon: a.Name, Path: "adopt.namespace", Message: fmt.Sprintf(
			"is %q: a set outside the platform namespaces may take over only objects of its own namespace, %q", out.Namespace, r.t.Namespace)}}
	}
	return out, nil
}

// adoptable returns the kind of the object that a field of adopt names.
func adoptable(path, kind string) string {
	if path == "adopt.namespace" {
		return "namespace"
	}
	return kind
}

// fluxKind returns the kind of the Flux object that delivers an add-on of a form.
func fluxKind(form string) string {
	if form == fluxspec.ManifestsKind {
		return fluxspec.HelmReleaseKind
	}
	return form
}
