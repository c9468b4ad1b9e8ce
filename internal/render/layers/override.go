// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/json"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/expression"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/merge"
)

// Override is an override of a cluster that stays within the paths that the set opens.
type Override struct {
	compile.AddonOverlay
	// Excluded says why the cluster does not get the add-on; empty if it does.
	Excluded string
}

// Permit reads an override of an add-on. It returns errors if the override is not valid, or leaves the paths that the set opens.
func Permit(a *compile.Addon, in *hubv1.Override) (Override, compile.Errors) {
	fail := func(path, format string, args ...any) (Override, compile.Errors) {
		return Override{}, compile.Errors{{Addon: a.Name, Path: strings.Trim("override "+path, " "), Message: fmt.Sprintf(format, args...)}}
	}
	var out Override
	if in.Exclude {
		if !a.Optional {
			return fail("exclude", "the set does not let a cluster leave this add-on out (optional: true would)")
		}
		out.Excluded = "the cluster's override leaves it out"
		if in.Reason != "" {
			out.Excluded += ": " + in.Reason
		}
	}
	var errs compile.Errors
	if out.AddonOverlay, errs = readOverride(a, in); len(errs) > 0 {
		return out, errs
	}
	field := compile.Field(a.Kind)
	for _, path := range append(leaves(out.Body, nil), out.Patch.Paths()...) {
		switch {
		case a.IsClosed(path):
			return fail(field+"."+strings.Join(path, "."), "is for the set to decide; no override may change it")
		case !a.MayOverride(path):
			return fail(field+"."+strings.Join(path, "."), "is not open to overrides; the set opens %s", a.Opens())
		}
	}
	return out, nil
}

// readOverride reads an override. An override contains no expressions. A text that looks like one is refused, and not
// taken as text silently.
func readOverride(a *compile.Addon, in *hubv1.Override) (compile.AddonOverlay, compile.Errors) {
	var out compile.AddonOverlay
	fail := func(path, format string, args ...any) (compile.AddonOverlay, compile.Errors) {
		return out, compile.Errors{{Addon: a.Name, Path: "override " + path, Message: fmt.Sprintf(format, args...)}}
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
			return fail(compile.Field(kind)+"."+compile.Dotted(at), "holds an expression, and these are for sets: write the value itself")
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

// findExpression returns the path to the first text that would be an expression in a set; false if there is none.
// These texts are still templates: <<< is << everywhere.
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

// leaves returns the paths of all values in a document.
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
