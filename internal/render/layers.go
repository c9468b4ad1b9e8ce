// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/expression"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/merge"
)

// prepare merges the variables, and finds the overlays and overrides that count for this cluster. An error holds the whole
// delivery: nobody knows what it would have changed.
func (r *renderer) prepare() error {
	configMaps, err := r.configMaps()
	if err != nil || len(r.out.Missing) > 0 {
		return err
	}
	if err := r.matchOverlays(configMaps); err != nil {
		return err
	}
	r.scope = newScope(r.p, r.in)
	if r.in.Explain {
		r.scope.trace = merge.NewTrace(nil, "")
	}
	r.addVariables(r.scope, configMaps, r.overlays)
	r.activeOverrides()
	return nil
}

func (r *renderer) addVariables(s *scope, configMaps []Layer, overlays []*compile.Overlay) {
	s.add(SetLayer, r.p.Variables)
	for _, l := range configMaps {
		s.addLiteral(l.Name, l.Values, false)
	}
	for _, o := range overlays {
		s.add(overlayLayer(o.Name), o.Variables)
	}
	for _, l := range r.in.Variables {
		s.addLiteral(l.Name, l.Values, true)
	}
}

func overlayLayer(name string) string { return fmt.Sprintf("overlay %q", name) }

// configMaps reads variablesFrom. Their names are the set's to choose, so no variable of the cluster may decide them.
func (r *renderer) configMaps() ([]Layer, error) {
	if len(r.p.VariablesFrom) == 0 {
		return nil, nil
	}
	s := newScope(r.p, r.in)
	r.addVariables(s, nil, nil)
	var layers []Layer
	for i, from := range r.p.VariablesFrom {
		path := fmt.Sprintf("variablesFrom[%d].configMap", i)
		name, err := r.chosen(s, path, from.Name)
		if err != nil {
			return nil, err
		}
		doc, known := r.document(Ref{"ConfigMap", name})
		switch {
		case !known:
		case doc.Found:
			values := make(map[string]any, len(doc.Data))
			for k, v := range doc.Data {
				values[k] = v
			}
			layers = append(layers, Layer{fmt.Sprintf("ConfigMap %q", name), values})
		case !from.Optional:
			return nil, compile.Error{Path: path, Message: fmt.Sprintf("ConfigMap %q is not in namespace %q; make it, or write optional: true", name, r.t.Namespace)}
		}
	}
	return layers, nil
}

// chosen evaluates a text that only the set may choose.
func (r *renderer) chosen(s *scope, path, text string) (string, error) {
	if !expression.Has(text) {
		return text, nil
	}
	v, decided, err := s.eval(text)
	if err == nil && len(decided) > 0 {
		err = fmt.Errorf("depends on the cluster's variable %s, and a cluster's variables cannot decide this", quoted(decided))
	}
	name, ok := v.(string)
	if err == nil && (!ok || name == "") {
		err = fmt.Errorf("gives no text")
	}
	if err != nil {
		return "", compile.Error{Path: path, Message: err.Error()}
	}
	return name, nil
}

func quoted(names []string) string {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	return fmt.Sprintf("%q", strings.Join(names, ", "))
}

func (r *renderer) document(ref Ref) (Document, bool) {
	doc, known := r.in.Documents[ref]
	if !slices.Contains(r.out.Refs, ref) {
		r.out.Refs = append(r.out.Refs, ref)
	}
	if !known && !slices.Contains(r.out.Missing, ref) {
		r.out.Missing = append(r.out.Missing, ref)
	}
	return doc, known
}

// matchOverlays finds the overlays that apply. What an overlay asks sees the variables of the set alone: if overlays could
// see each other's, their order would decide twice.
func (r *renderer) matchOverlays(configMaps []Layer) error {
	var s *scope
	for i := range r.p.Overlays {
		o := &r.p.Overlays[i]
		if o.Selector != nil && !o.Selector.Matches(labels.Set(r.in.Cluster.Labels)) {
			continue
		}
		if o.When != nil {
			if s == nil {
				s = newScope(r.p, r.in)
				r.addVariables(s, configMaps, nil)
			}
			yes, decided, err := condition(s, o.When)
			if err == nil && len(decided) > 0 {
				err = fmt.Errorf("depends on the cluster's variable %s, and a cluster's variables cannot choose overlays", quoted(decided))
			}
			if err != nil {
				return compile.Error{Overlay: o.Name, Path: "when", Message: err.Error()}
			}
			if !yes {
				continue
			}
		}
		r.overlays = append(r.overlays, o)
	}
	return nil
}

func condition(s *scope, t *expression.Template) (yes bool, decided []string, err error) {
	v, decided, err := s.template(t)
	if err != nil {
		return false, nil, err
	}
	yes, ok := v.(bool)
	if !ok {
		return false, nil, fmt.Errorf("must give true or false")
	}
	return yes, decided, nil
}

// activeOverrides leaves out the overrides that are over, and notes when the next one ends.
func (r *renderer) activeOverrides() {
	for i := range r.in.Overrides {
		o := &r.in.Overrides[i]
		if o.Until != nil {
			if !r.in.Now.Before(o.Until.Time) {
				continue
			}
			r.until(o.Until.Time)
		}
		r.overrides = append(r.overrides, o)
	}
}

func (r *renderer) until(t time.Time) {
	if r.out.Until.IsZero() || t.Before(r.out.Until) {
		r.out.Until = t
	}
}

// keepNull: within Helm values a null is a value.
func keepNull(kind string) func([]string) bool {
	if kind != fluxspec.HelmReleaseKind {
		return nil
	}
	return func(path []string) bool { return len(path) > 1 && path[0] == "values" }
}

// layered is the body of an add-on with every layer merged.
type layered struct {
	body map[string]any
	// changed is false if it is the set's own, shared with other clusters.
	changed bool
	// excluded says why the add-on is not for this cluster; empty if it is.
	excluded string
	trace    *merge.Trace
}

// layers merges an add-on's body with what overlays and overrides say about it.
func (r *renderer) layers(a *compile.Addon) (layered, Errors) {
	l := layered{body: a.Body}
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
		if err := l.apply(a, change, overlayLayer(o.Name)); err != nil {
			return l, Errors{{Overlay: o.Name, Addon: a.Name, Message: err.Error()}}
		}
	}
	for _, o := range r.overrides {
		if o.Name != a.Name {
			continue
		}
		if errs := r.override(a, o, &l); len(errs) > 0 {
			return l, errs
		}
	}
	return l, nil
}

func (l *layered) apply(a *compile.Addon, change compile.AddonOverlay, layer string) error {
	if change.Body == nil && change.Patch == nil {
		return nil
	}
	if !l.changed {
		l.body, l.changed = runtime.DeepCopyJSON(l.body), true
	}
	o := merge.Options{KeepNull: keepNull(a.Kind), Layer: layer, Trace: l.trace}
	if change.Body != nil {
		body := change.Body
		if a.Kind == fluxspec.ManifestsKind {
			var err error
			if body, err = mergeObjects(l.body, body, o); err != nil {
				return err
			}
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

// SetLayer is what the set's own part is called.
const SetLayer = "the set"

// overrideLayer is what the cluster's own overrides are called.
const overrideLayer = "the cluster's override"

// override applies one override of the cluster, if it keeps to what the set opens. One that does not is refused as a whole:
// half of it would be neither what the platform nor what the cluster's owner asked for.
func (r *renderer) override(a *compile.Addon, in *hubv1.Override, l *layered) Errors {
	fail := func(path, format string, args ...any) Errors {
		return Errors{{Addon: a.Name, Path: strings.Trim("override "+path, " "), Message: fmt.Sprintf(format, args...)}}
	}
	if in.Exclude {
		if !a.Optional {
			return fail("exclude", "the set does not let a cluster leave this add-on out (optional: true would)")
		}
		l.excluded = "the cluster's override leaves it out"
		if in.Reason != "" {
			l.excluded += ": " + in.Reason
		}
	}
	change, errs := readOverride(a, in)
	if len(errs) > 0 {
		return errs
	}
	field := compile.Field(a.Kind)
	for _, path := range append(leaves(change.Body, nil), change.Patch.Paths()...) {
		switch {
		case a.IsClosed(path):
			return fail(field+"."+strings.Join(path, "."), "is the set's alone; no override may touch it")
		case !a.MayOverride(path):
			return fail(field+"."+strings.Join(path, "."), "is not open to overrides; the set opens %s", a.Opens())
		}
	}
	if err := l.apply(a, change, overrideLayer); err != nil {
		return fail("", "%s", err)
	}
	return nil
}

// readOverride reads what an override says. It holds no expressions: what looks like one is refused, and not silently text.
func readOverride(a *compile.Addon, in *hubv1.Override) (compile.AddonOverlay, Errors) {
	var out compile.AddonOverlay
	fail := func(path, format string, args ...any) (compile.AddonOverlay, Errors) {
		return out, Errors{{Addon: a.Name, Path: "override " + path, Message: fmt.Sprintf(format, args...)}}
	}
	for _, one := range []struct {
		kind string
		body *apiextensionsv1.JSON
	}{{fluxspec.HelmReleaseKind, in.HelmRelease}, {fluxspec.KustomizationKind, in.Kustomization}, {fluxspec.ManifestsKind, in.Manifests}} {
		kind, body := one.kind, one.body
		if body == nil {
			continue
		}
		if kind != a.Kind {
			return fail(compile.Field(kind), "the add-on is a %s; write %s", a.Kind, compile.Field(a.Kind))
		}
		if err := json.Unmarshal(body.Raw, &out.Body); err != nil || out.Body == nil {
			return fail(compile.Field(kind), "must be an object")
		}
		if at, found := findExpression(out.Body, nil); found {
			return fail(compile.Field(kind)+"."+joinPath(at), "holds an expression, and these are for sets: write the value itself")
		}
	}
	operations := make([]merge.Operation, 0, len(in.Patches))
	for i, p := range in.Patches {
		op := merge.Operation{Op: p.Op, Path: p.Path, From: p.From}
		if p.Value != nil {
			if err := json.Unmarshal(p.Value.Raw, &op.Value); err != nil {
				return fail(fmt.Sprintf("patches[%d].value", i), "cannot be read as JSON")
			}
			if _, found := findExpression(op.Value, nil); found {
				return fail(fmt.Sprintf("patches[%d].value", i), "holds an expression, and these are for sets: write the value itself")
			}
			op.HasValue = true
		}
		operations = append(operations, op)
	}
	if len(operations) == 0 {
		return out, nil
	}
	var err error
	if out.Patch, err = merge.NewPatch(operations); err != nil {
		return fail("", "%s", err)
	}
	return out, nil
}

// findExpression returns the path to the first text that would be an expression in a set; false if there is none. These
// texts are templates all the same: <<< is << everywhere.
func findExpression(v any, path []string) (at []string, found bool) {
	switch v := v.(type) {
	case string:
		if !expression.Has(v) {
			return nil, false
		}
		if t, err := expression.Compile(v); err == nil {
			if _, literal := t.Literal(); literal {
				return nil, false
			}
		}
		return path, true
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if at, found = findExpression(v[k], append(path[:len(path):len(path)], k)); found {
				return at, true
			}
		}
	case []any:
		for i, x := range v {
			if at, found = findExpression(x, append(path[:len(path):len(path)], fmt.Sprintf("[%d]", i))); found {
				return at, true
			}
		}
	}
	return nil, false
}

// leaves returns the paths of everything that a document says.
func leaves(m map[string]any, path []string) [][]string {
	var out [][]string
	for k, v := range m {
		at := append(path[:len(path):len(path)], k)
		if below, ok := v.(map[string]any); ok && len(below) > 0 {
			out = append(out, leaves(below, at)...)
			continue
		}
		out = append(out, at)
	}
	slices.SortFunc(out, slices.Compare)
	return out
}
