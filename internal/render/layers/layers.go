// SPDX-License-Identifier: Apache-2.0

// Package layers merges what lies over the body of an add-on for one cluster: the overlays of the set that apply there, and then the
// overrides of the cluster. It also reads overrides, and says which the set lets a cluster have.
package layers

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/merge"
	"github.com/chandler-hub/chandler/internal/render/document"
)

// Set is the name of the layer of the set itself, and override that of the cluster's own overrides.
const (
	Set      = "the set"
	override = "the cluster's override"
)

// Overlay returns the name of the layer of an overlay.
func Overlay(name string) string { return fmt.Sprintf("overlay %q", name) }

// Merged is the body of an add-on with layers merged into it.
type Merged struct {
	Body map[string]any
	// Changed is false if the body is the set's own, which other clusters share.
	Changed bool
	// Excluded says why the cluster does not get the add-on; empty if it does.
	Excluded string
	// Trace records which layer sets what; nil unless that was asked for.
	Trace *merge.Trace

	program *compile.Program
	addon   *compile.Addon
	home    string
	left    *int64
}

// New returns the body of an add-on as the set itself has it. home is the namespace of manifests that name none, if no layer has a
// targetNamespace. left is how many bytes patches may still go through. explain asks for a trace.
func New(p *compile.Program, a *compile.Addon, home string, left *int64, explain bool) Merged {
	m := Merged{Body: a.Body, program: p, addon: a, home: home, left: left}
	if explain {
		m.Trace = merge.NewTrace(a.Body, Set)
	}
	return m
}

// Overlay merges what an overlay says of the add-on, if it says anything.
func (m *Merged) Overlay(o *compile.Overlay) compile.Errors {
	change, ok := o.Addons[m.addon.Name]
	if !ok {
		return nil
	}
	if change.Exclude != nil {
		m.Excluded = ""
		if *change.Exclude {
			m.Excluded = fmt.Sprintf("overlay %q leaves it out", o.Name)
		}
	}
	if err := m.apply(change, Overlay(o.Name)); err != nil {
		return compile.Errors{{Overlay: o.Name, Addon: m.addon.Name, Path: pathOf(err), Message: err.Error()}}
	}
	return nil
}

// Override merges an override of the cluster.
func (m *Merged) Override(o *Override) compile.Errors {
	if o.Excluded != "" {
		m.Excluded = o.Excluded
	}
	if err := m.apply(o.AddonOverlay, override); err != nil {
		return compile.Errors{{Addon: m.addon.Name, Path: strings.TrimSpace("override " + pathOf(err)), Message: err.Error()}}
	}
	return nil
}

// apply merges a layer of a name into the body.
func (m *Merged) apply(change compile.AddonOverlay, layer string) error {
	if change.Body == nil && change.Patch == nil {
		return nil
	}
	if !m.Changed {
		m.Body, m.Changed = runtime.DeepCopyJSON(m.Body), true
	}
	o := merge.Options{KeepNull: keepNull(m.addon.Kind), Layer: layer, Trace: m.Trace, Left: m.left}
	if change.Body != nil {
		body := change.Body
		if m.addon.Kind == fluxspec.ManifestsKind {
			var err error
			if body, err = mergeObjects(m.program, m.Body, body, m.home, o); err != nil {
				return err
			}
		}
		if err := merges(m.program, compile.Field(m.addon.Kind), m.Body, body); err != nil {
			return err
		}
		merge.Merge(m.Body, body, o)
	}
	if change.Patch == nil {
		return nil
	}
	patched, err := change.Patch.Apply(m.Body, o)
	if err != nil {
		return err
	}
	m.Body = patched
	return nil
}

// keepNull returns the merge option that keeps a null within Helm values as a value.
func keepNull(kind string) func([]string) bool {
	if kind != fluxspec.HelmReleaseKind {
		return nil
	}
	return func(path []string) bool { return len(path) > 1 && path[0] == "values" }
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

// mergeObjects merges the objects of a layer into those of the body, by their identity, and adds the others. It
// returns the rest of the layer, which is merged like any other body. An object that names no namespace is the same as one that
// names the target namespace, which is home if the set does not name one.
func mergeObjects(p *compile.Program, body, layer map[string]any, home string, o merge.Options) (map[string]any, error) {
	objects, ok := layer["objects"].([]any)
	if !ok {
		return layer, nil
	}
	there, ok := body["objects"].([]any)
	if !ok && body["objects"] != nil {
		return nil, fmt.Errorf("manifests.objects is one expression, and objects cannot be merged into what is not known yet")
	}
	own, _ := body["targetNamespace"].(string)
	other, _ := layer["targetNamespace"].(string)
	target := cmp.Or(other, own, home)
	index := map[document.ObjectID]int{}
	for i := range there {
		if o, ok := there[i].(map[string]any); ok {
			index[document.Identify(o).In(target)] = i
		}
	}
	mine := map[document.ObjectID]int{}
	for i, x := range objects {
		object, _ := x.(map[string]any)
		id := document.Identify(object).In(target)
		if id.Name == "" { // which is told later, or it is an expression
			there = append(there, x)
			continue
		}
		if first, ok := mine[id]; ok {
			return nil, fmt.Errorf("manifests.objects[%d] is the same object as objects[%d], %s; write one entry for it", i, first, id)
		}
		mine[id] = i
		if at, ok := index[id]; ok {
			if err := merges(p, fmt.Sprintf("manifests.objects[%d]", i), there[at].(map[string]any), object); err != nil {
				return nil, err
			}
			merge.Merge(there[at].(map[string]any), object, merge.Options{})
			continue
		}
		there = append(there, x)
	}
	rest := make(map[string]any, len(layer))
	for k, v := range layer {
		if k != "objects" {
			rest[k] = v
		}
	}
	merge.Merge(body, map[string]any{"objects": there}, o)
	return rest, nil
}
