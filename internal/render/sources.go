// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/expression"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/pin"
	"github.com/chandler-hub/chandler/internal/render/flux"
	"github.com/chandler-hub/chandler/internal/render/variables"
)

// ownSources replaces references to the set's own sources by the names of the objects that they are rendered to. It
// refuses any other reference if the set's Team says anything about sources.
func (r *renderer) ownSources(a *compile.Addon, body map[string]any) ([]flux.Shared, Errors) {
	var used []flux.Shared
	for _, ref := range fluxspec.AllReferences(a.Kind, body) {
		s, ok := r.p.Own(ref)
		if !ok && r.team.RestrictsSources() {
			return nil, Errors{{Addon: a.Name, Path: compile.Field(a.Kind) + "." + ref.Path, Message: compile.NotOwned(r.team, ref)}}
		}
		if why := r.p.NoSource(ref); why != "" {
			field := compile.Field(a.Kind)
			if p := r.unmarked(a.Name, field, []fluxspec.Problem{{Path: ref.Path, Message: why}}); len(p) > 0 {
				return nil, Errors{{Addon: a.Name, Path: field + "." + ref.Path, Message: why}}
			}
		}
		if !ok {
			continue
		}
		shared, errs := r.source(a, s)
		if len(errs) > 0 {
			return nil, errs
		}
		ref.Ref["kind"], ref.Ref["name"] = s.Kind, shared.Object.GetName()
		used = append(used, *shared)
	}
	return used, nil
}

func (r *renderer) source(a *compile.Addon, s compile.Source) (*flux.Shared, Errors) {
	if there := r.sources[s.Name]; there != nil {
		r.marks = append(r.marks, r.sourceMarks[s.Name]...)
		return there, nil
	}
	e := variables.Evaluator{Scope: r.scope, Mark: r.in.Mark, Allowed: func(_, decided []string) error {
		return fmt.Errorf("depends on the cluster's variable %s, and a cluster's variables cannot decide sources", variables.Quoted(decided))
	}}
	spec, _ := e.Value(s.Spec).(map[string]any)
	path := fmt.Sprintf("sources[%s].spec", s.Name)
	errs := e.Errors(a.Name, path)
	r.noteSource(s.Name, e.Unknown("", path))
	if len(errs) == 0 && e.Evaluated() {
		for _, p := range r.unmarked("", path, fluxspec.CheckSource(s.Kind, spec, r.author())) {
			errs = append(errs, compile.Error{Addon: a.Name, Path: compile.Join(path, p.Path), Message: p.Message})
		}
	}
	if len(errs) > 0 {
		return nil, errs
	}
	fluxspec.DefaultSource(spec)
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(sourceKind(s.Kind))
	u.SetNamespace(r.t.Namespace)
	u.SetLabels(map[string]string{
		"app.kubernetes.io/managed-by": "chandler",
		hubv1.SourceLabel:              r.t.HubID,
		hubv1.AddonSetLabel:            identity.LabelValue(r.t.Set),
	})
	hash, err := flux.Stamp(u)
	if err != nil {
		return nil, Errors{{Addon: a.Name, Path: path, Message: err.Error()}}
	}
	u.SetName(identity.Source(r.t.Set, s.Name, hash[:8]))
	if hash, err = r.pin(u, hash, func(hash string) string { return identity.Source(r.t.Set, s.Name, hash[:8]) }); err != nil {
		return nil, Errors{{Addon: a.Name, Path: path, Message: err.Error()}}
	}
	if hash, err = r.dressSource(u, hash); err != nil {
		return nil, Errors{{Addon: a.Name, Path: path, Message: err.Error()}}
	}
	shared := &flux.Shared{Object: u, Hash: hash}
	r.sources[s.Name] = shared
	return shared, nil
}

// pin holds an object that follows upstream at what the revision says, if it says anything. It returns the new hash.
func (r *renderer) pin(u *unstructured.Unstructured, hash string, name func(hash string) string) (string, error) {
	to := r.p.Pins.Source(pin.Key(u))
	if to == "" {
		return hash, nil
	}
	u.Object["spec"] = pin.Spec(u.GetKind(), u.Object["spec"].(map[string]any), to)
	hash, err := flux.Stamp(u)
	if err == nil {
		u.SetName(name(hash))
	}
	return hash, err
}

func sourceKind(kind string) schema.GroupVersionKind { return sourcev1.GroupVersion.WithKind(kind) }

// shareChart replaces the chart template of a HelmRelease by a reference to a HelmChart. All clusters with the same
// template share that HelmChart, so that 5,000 clusters cost source-controller what one cluster costs. interval is how often Flux looks for
// a new version, if the template does not say.
func (r *renderer) shareChart(spec map[string]any, interval any) (*flux.Shared, error) {
	template, ok := spec["chart"].(map[string]any)
	if !ok {
		return nil, nil
	}
	delete(spec, "chart")
	chartSpec, _ := runtime.DeepCopyJSONValue(template["spec"]).(map[string]any)
	// Flux's defaults are filled in here, so that two spellings of one template share one chart.
	for field, v := range map[string]any{"interval": interval, "version": "*",
		"reconcileStrategy": sourcev1.ReconcileStrategyChartVersion} {
		if _, ok := chartSpec[field]; !ok {
			chartSpec[field] = v
		}
	}
	ref, _ := chartSpec["sourceRef"].(map[string]any)
	namespace := r.t.Namespace
	if ns, _ := ref["namespace"].(string); ns != "" {
		namespace = ns
	}
	delete(ref, "namespace")
	u := &unstructured.Unstructured{Object: map[string]any{"spec": chartSpec}}
	u.SetGroupVersionKind(sourceKind(sourcev1.HelmChartKind))
	u.SetNamespace(namespace)
	meta, _ := template["metadata"].(map[string]any)
	chartLabels, _, _ := unstructured.NestedStringMap(meta, "labels")
	chartAnnotations, _, _ := unstructured.NestedStringMap(meta, "annotations")
	if chartLabels == nil {
		chartLabels = map[string]string{}
	}
	chartLabels["app.kubernetes.io/managed-by"] = "chandler"
	chartLabels[hubv1.ChartLabel] = r.t.HubID
	u.SetLabels(chartLabels)
	u.SetAnnotations(chartAnnotations)
	hash, err := flux.Stamp(u)
	if err != nil {
		return nil, err
	}
	chart, _ := chartSpec["chart"].(string)
	u.SetName(identity.Chart(chart, hash[:10]))
	if hash, err = r.pin(u, hash, func(hash string) string { return identity.Chart(chart, hash[:10]) }); err != nil {
		return nil, err
	}
	spec["chartRef"] = map[string]any{"kind": sourcev1.HelmChartKind, "name": u.GetName(), "namespace": namespace}
	return &flux.Shared{Object: u, Hash: hash}, nil
}

// chartInterval returns the interval of an add-on, which is that of its chart too, as the set says it. What the cluster's owner makes of it
// counts for the add-on alone: his cluster would have a chart of its own otherwise, which no revision holds at a version.
func (r *renderer) chartInterval(a *compile.Addon, is any) any {
	if path := []string{"interval"}; !a.MayInsert(path) || len(r.overrides)+len(r.names()) == 0 {
		return is
	}
	own := r.scope
	defer func() { r.scope = own }()
	r.scope = r.base()
	l, errs := r.layers(a, nil)
	e := variables.Evaluator{Scope: r.scope}
	body := map[string]any{}
	if v := e.Value(l.Body["interval"]); v != nil && v != expression.Absent {
		body["interval"] = v
	}
	fluxspec.Default(a.Kind, body, a.Name, r.team)
	if text, ok := body["interval"].(string); ok && len(errs) == 0 && !e.Failed() {
		return text
	}
	return is // it is not known what the set says
}
