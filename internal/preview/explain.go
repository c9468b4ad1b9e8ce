// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/chandler-hub/chandler/internal/fluxspec"
)

// explainer returns who set the fields of one object.
type explainer struct{ *Rendered }

const (
	byDefault = "default"
	byHub     = "hub"
)

// by returns the name of a layer.
func by(layer string) string {
	if layer == "set" {
		return "the set"
	}
	return oneLine(layer)
}

// layer returns who set the field of the object at a path; "" outside of spec.
func (e explainer) layer(path []string) string {
	if len(path) < 2 || path[0] != "spec" {
		return ""
	}
	path = path[1:]
	switch path[0] {
	case "kubeConfig", "dependsOn":
		return byHub
	case "chartRef":
		if e.Rendered.chart != nil {
			return byHub
		}
	}
	if e.form == fluxspec.ManifestsKind {
		return e.manifests(path)
	}
	return e.body(path)
}

// body returns who set a field of the add-on's body.
func (e explainer) body(path []string) string {
	if l := e.trace.Layer(path); l != "" {
		return "set by " + by(l)
	}
	return byDefault
}

// manifests returns who set a field of the release that delivers manifests.
func (e explainer) manifests(path []string) string {
	switch {
	case path[0] == "valuesFrom", isWithin(path, "values", "versions"), isWithin(path, "values", "secrets"):
		return e.body([]string{"manifestsFrom"})
	case isWithin(path, "values", "objects"):
		return e.body([]string{"objects"})
	case path[0] == "values":
		return byHub
	case path[0] == "driftDetection":
		return e.body([]string{"strategy"})
	}
	return e.body(path)
}

func isWithin(path []string, prefix ...string) bool {
	return len(prefix) <= len(path) && slices.Equal(prefix, path[:len(prefix)])
}

// chart describes the chart, which is an object of its own, and who chose it.
func (e explainer) chart() []string {
	var out []string
	for _, path := range e.trace.Fields() {
		if len(path) < 3 || !isWithin(path, "chart", "spec") || e.form == fluxspec.ManifestsKind {
			continue
		}
		value := any(e.Rendered.chart)
		for _, k := range path[2:] {
			m, _ := value.(map[string]any)
			value = m[k]
		}
		if value != nil {
			out = append(out, fmt.Sprintf("%s: %s, set by %s", strings.Join(path, "."), inline(value), by(e.trace.Layer(path))))
		}
	}
	return out
}

// inline returns a value as JSON in one line, as people write it.
func inline(v any) string {
	var out strings.Builder
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "?"
	}
	return oneLine(out.String())
}
