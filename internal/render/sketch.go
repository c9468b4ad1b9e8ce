// SPDX-License-Identifier: Apache-2.0

package render

import (
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/render/flux"
	"github.com/chandler-hub/chandler/internal/render/layers"
)

// Sketch renders parts of add-ons for a cluster of which only the overlays are known. Render makes the same of these parts for a cluster
// without variables and overrides of its own.
type Sketch struct{ r *renderer }

// NewSketch returns a sketch. With says for which cluster it is, first of all. All clusters together have the budget that Render has for
// one.
func NewSketch(p *compile.Program, t Target) *Sketch {
	return &Sketch{&renderer{p: p, t: t, budgets: newBudgets()}}
}

// With turns to a cluster that has some overlays of the program, by their indices.
func (s *Sketch) With(overlays []int) {
	p := s.r.p
	r := &renderer{p: p, t: s.r.t, in: &Input{}, out: &Result{}, sources: map[string]*flux.Shared{}, team: p.Team, budgets: s.r.budgets}
	_ = r.readConfigMaps() // what cannot be read makes expressions fail, which is said there
	for _, i := range overlays {
		r.overlays = append(r.overlays, &p.Overlays[i])
	}
	r.own = r.newScope(&r.budgets.own, nil, nil)
	r.scope, s.r = r.own, r
}

// When returns whether the condition of an add-on is true; an error if that depends on the cluster. It is true if there is none.
func (s *Sketch) When(a *compile.Addon) (yes bool, err error) {
	if a.When == nil {
		return true, nil
	}
	yes, _, err = s.r.scope.Condition(a.When)
	return yes, err
}

// Layers returns the body of an add-on with the overlays, before its expressions are evaluated.
func (s *Sketch) Layers(a *compile.Addon) (layers.Merged, Errors) { return s.r.layers(a, nil) }

// Evaluate returns a copy of a body of an add-on, or of some fields of one, with its expressions evaluated.
func (s *Sketch) Evaluate(a *compile.Addon, body map[string]any) (map[string]any, Errors) {
	out, _, errs := s.r.evaluate(a, layers.Merged{Body: body})
	return out, errs
}

// Source returns the object of one of the set's own sources, which an add-on uses.
func (s *Sketch) Source(a *compile.Addon, of compile.Source) (*flux.Shared, Errors) {
	return s.r.source(a, of)
}

// Chart takes the chart out of the spec of a HelmRelease, which has Flux's defaults, and returns it as a HelmChart; nil if it names none.
func (s *Sketch) Chart(spec map[string]any) (*flux.Shared, error) {
	return s.r.shareChart(spec, spec["interval"])
}

// Author is who has written the set, as checks of a body need it.
func (s *Sketch) Author() compile.Author { return s.r.author() }
