// SPDX-License-Identifier: Apache-2.0

package render

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/merge"
	"github.com/chandler-hub/chandler/internal/render/document"
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
	s.Add(variables.Layer{Name: SetLayer, Values: r.p.Variables})
	for _, l := range r.configMaps {
		s.AddLiteral(l, false)
	}
	for _, o := range r.overlays {
		s.Add(variables.Layer{Name: overlayLayer(o.Name), Values: o.Variables})
	}
	for _, l := range cluster {
		s.AddLiteral(l, true)
	}
	return s
}

func overlayLayer(name string) string { return fmt.Sprintf("overlay %q", name) }

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

// keepNull returns the merge option that keeps a null within Helm values as a value.
func keepNull(kind string) func([]string) bool {
	if kind != fluxspec.HelmReleaseKind {
		return nil
	}
	return func(path []string) bool { return len(path) > 1 && path[0] == "values" }
}

// layered is the body of an add-on with every layer merged.
type layered struct {
	body map[string]any
	// changed is false if the body is the set's own, which other clusters share.
	changed bool
	// excluded says why the cluster does not get the add-on; empty if it does.
	excluded string
	trace    *merge.Trace
	// home is the namespace of manifests that name none, if no layer has a targetNamespace.
	home string
}

// layers merges an add-on's body with the overlays, and with overrides of the cluster.
func (r *renderer) layers(a *compile.Addon, overrides []change) (layered, Errors) {
	l := layered{body: a.Body}
	if a.Kind == fluxspec.ManifestsKind {
		l.home = r.implied(a, nil)
	}
	if open, ok := r.undecided[a.Name]; ok {
		open.Addon = a.Name
		return l, Errors{open}
	}
	if r.in.Explain {
		l.trace = merge.NewTrace(a.Body, SetLayer)
	}
	for _, o := range r.overlays {
		change, ok := o.Addons[a.Name]
		if !ok {
			continue
		}
		if change.Exclude != nil {
			l.excluded = ""
			if *change.Exclude {
				l.excluded = fmt.Sprintf("overlay %q leaves it out", o.Name)
			}
		}
		if err := l.apply(r.p, a, change, overlayLayer(o.Name), r.scope.Patched()); err != nil {
			return l, Errors{{Overlay: o.Name, Addon: a.Name, Path: pathOf(err), Message: err.Error()}}
		}
	}
	for i := range overrides {
		o := &overrides[i]
		if o.excluded != "" {
			l.excluded = o.excluded
		}
		if err := l.apply(r.p, a, o.AddonOverlay, overrideLayer, r.scope.Patched()); err != nil {
			return l, Errors{{Addon: a.Name, Path: strings.TrimSpace("override " + pathOf(err)), Message: err.Error()}}
		}
	}
	return l, nil
}

// unmergeable is an object of a layer that cannot be merged with what an expression gives.
type unmergeable struct{ path, why string }

func (u unmergeable) Error() string { return u.why }

// pathOf returns the path that an error of apply is about; "" if it says so itself.
func pathOf(err error) string {
	if u := (unmergeable{}); errors.As(err, &u) {
		return u.path
	}
	return ""
}

// merges says why a part of a layer cannot be merged with the body below a path.
func merges(p *compile.Program, at string, body, part map[string]any) error {
	if path, why := p.Unmergeable(body, part); path != nil {
		return unmergeable{at + "." + strings.Join(path, "."), why}
	}
	return nil
}

func (l *layered) apply(p *compile.Program, a *compile.Addon, change compile.AddonOverlay, layer string, left *int64) error {
	if change.Body == nil && change.Patch == nil {
		return nil
	}
	if !l.changed {
		l.body, l.changed = runtime.DeepCopyJSON(l.body), true
	}
	o := merge.Options{KeepNull: keepNull(a.Kind), Layer: layer, Trace: l.trace, Left: left}
	if change.Body != nil {
		body := change.Body
		if a.Kind == fluxspec.ManifestsKind {
			var err error
			if body, err = mergeObjects(p, l.body, body, l.home, o); err != nil {
				return err
			}
		}
		if err := merges(p, compile.Field(a.Kind), l.body, body); err != nil {
			return err
		}
		merge.Merge(l.body, body, o)
	}
	if change.Patch == nil {
		return nil
	}
	patched, err := change.Patch.Apply(l.body, o)
	if err != nil {
		return err
	}
	l.body = patched
	return nil
}

// SetLayer is the name of the layer of the set itself.
const SetLayer = "the set"
