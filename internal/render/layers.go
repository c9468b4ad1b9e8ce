// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/merge"
	"github.com/chandler-hub/chandler/internal/render/document"
	"github.com/chandler-hub/chandler/internal/render/layers"
	"github.com/chandler-hub/chandler/internal/render/variables"
)

// prepare merges the variables, and finds the overlays and overrides that apply to this cluster. An error holds the
// whole delivery, because it is not known what they would have changed.
func (r *renderer) prepare() error {
	r.budgets, r.others = newBudgets(), map[string]*variables.Scope{}
	r.cluster = r.in.Variables
	if err := r.readConfigMaps(); err != nil || len(r.out.Missing) > 0 {
		return err
	}
	if err := r.matchOverlays(); err != nil {
		return err
	}
	var trace *merge.Trace
	if r.in.Explain {
		trace = merge.NewTrace(nil, "")
	}
	r.own = r.newScope(&r.budgets.own, r.cluster, trace)
	r.activeOverrides()
	return nil
}

// newScope returns a scope with the set's variables that are known by now, and with the given variables of the
// cluster.
func (r *renderer) newScope(budget *variables.Budget, cluster []variables.Layer, trace *merge.Trace) *variables.Scope {
	s := variables.New(r.p, r.in.Cluster, r.in.Origin, budget, trace)
	s.Add(variables.Layer{Name: layers.Set, Values: r.p.Variables})
	for _, l := range r.configMaps {
		s.AddLiteral(l, false)
	}
	for _, o := range r.overlays {
		s.Add(variables.Layer{Name: layers.Overlay(o.Name), Values: o.Variables})
	}
	for _, l := range cluster {
		s.AddLiteral(l, true)
	}
	return s
}

// readConfigMaps reads variablesFrom. Only the set chooses their names, so no variable of the cluster may decide
// them. What lies beside the cluster is the weakest layer of the cluster's own variables.
func (r *renderer) readConfigMaps() error {
	if len(r.p.VariablesFrom) == 0 {
		return nil
	}
	both := r.newPair()
	var layers []variables.Layer
	for i, from := range r.p.VariablesFrom {
		path := fmt.Sprintf("variablesFrom[%d].configMap", i)
		var name string
		err := both.decide(compile.Error{Path: path}, func(s *variables.Scope) (err error) {
			name, err = s.Chosen(from.Name)
			return err
		})
		if err != nil {
			return err
		}
		if from.Cluster {
			if err := r.fromCluster(path, name, from.Optional); err != nil {
				return err
			}
			continue
		}
		doc, known := r.variables(name)
		switch {
		case !known:
		case doc.Found:
			layers = append(layers, layerOf(fmt.Sprintf("ConfigMap %q", name), &doc))
		case !from.Optional:
			return r.absent(path, configMapKind, name, false)
		}
	}
	r.configMaps, r.cluster = layers, append(r.besides, r.in.Variables...)
	return nil
}

// layerOf returns the variables that a ConfigMap holds.
func layerOf(name string, doc *document.Document) variables.Layer {
	values := make(map[string]any, len(doc.Data))
	for k, v := range doc.Data {
		values[k] = v
	}
	return variables.Layer{Name: name, Values: values}
}

// variables returns a ConfigMap of variablesFrom, as the revision holds it or as it is now.
func (r *renderer) variables(name string) (document.Document, bool) {
	if data, pinned := r.p.Pins.ConfigMap(name); pinned {
		return document.Document{Found: data != nil, Data: data}, true
	}
	return r.document(document.Ref{Kind: configMapKind, Name: name})
}

func (r *renderer) document(ref document.Ref) (document.Document, bool) {
	doc, known := r.in.Documents[ref]
	if r.referred[ref] {
		return doc, known
	}
	if r.referred == nil {
		r.referred = map[document.Ref]bool{}
	}
	r.referred[ref] = true
	r.out.Refs = append(r.out.Refs, ref)
	if !known {
		r.out.Missing = append(r.out.Missing, ref)
	}
	return doc, known
}

// matchOverlays finds the overlays that apply. Their conditions see only the variables of the set. If overlays could
// see each other's variables, their order would decide twice.
func (r *renderer) matchOverlays() error {
	var both *pair
	var matched []*compile.Overlay
	for i := range r.p.Overlays {
		o := &r.p.Overlays[i]
		if o.Selector != nil && !o.Selector.Matches(labels.Set(r.in.Cluster.Labels)) {
			continue
		}
		if o.When != nil {
			if both == nil {
				both = r.newPair()
			}
			var yes bool
			err := both.decide(compile.Error{Overlay: o.Name, Path: "when"}, func(s *variables.Scope) (err error) {
				var decided []string
				if yes, decided, err = s.Condition(o.When); err == nil && len(decided) > 0 {
					err = fmt.Errorf("depends on the cluster's variable %s, and a cluster's variables cannot choose overlays", variables.Quoted(decided))
				}
				return err
			})
			if err != nil && !r.leavesOpen(o, err) {
				return err
			}
			if err != nil || !yes {
				continue
			}
		}
		matched = append(matched, o)
	}
	r.overlays = matched
	return nil
}

// activeOverrides leaves out the overrides that have ended, and records when the next one ends.
func (r *renderer) activeOverrides() {
	for i := range r.in.Overrides {
		o := &r.in.Overrides[i]
		if o.Until != nil {
			if !r.in.Now.Before(o.Until.Time) {
				continue
			}
			r.until(o.Until.Time)
		}
		r.overrides = append(r.overrides, i)
	}
}

func (r *renderer) until(t time.Time) {
	if r.out.Until.IsZero() || t.Before(r.out.Until) {
		r.out.Until = t
	}
}

// change is an override, and its index in Input.Overrides.
type change struct {
	index int
	layers.Override
}

// permitted returns the overrides of an add-on that stay within the paths that its set opens. It refuses any other
// override as a whole: half of it would be neither what the platform nor what the cluster's owner asked for.
func (r *renderer) permitted(a *compile.Addon) []change {
	var out []change
	for _, i := range r.overrides {
		in := &r.in.Overrides[i]
		if in.Name != a.Name {
			continue
		}
		permitted, errs := layers.Permit(a, in)
		if len(errs) > 0 {
			r.refuseOverride(a, change{index: i}, errs)
			continue
		}
		out = append(out, change{i, permitted})
	}
	return out
}

// layers merges an add-on's body with the overlays, and with overrides of the cluster.
func (r *renderer) layers(a *compile.Addon, overrides []change) (layers.Merged, Errors) {
	home := ""
	if a.Kind == fluxspec.ManifestsKind {
		home = r.implied(a, nil)
	}
	m := layers.New(r.p, a, home, r.scope.Patched(), r.in.Explain)
	if open, ok := r.undecided[a.Name]; ok {
		open.Addon = a.Name
		return m, Errors{open}
	}
	for _, o := range r.overlays {
		if errs := m.Overlay(o); len(errs) > 0 {
			return m, errs
		}
	}
	for i := range overrides {
		if errs := m.Override(&overrides[i].Override); len(errs) > 0 {
			return m, errs
		}
	}
	return m, nil
}
