// SPDX-License-Identifier: Apache-2.0

package folding

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/importer/layout"
)

// variables finds the variables of an object whose values are not known. The set reads them from its own variables, which
// somebody has to write: until then its add-on fails, and what runs stays as it is.
func (f *folder) variables(m *member, spec map[string]any) string {
	for _, at := range []struct {
		path string
		v    any
	}{{"metadata.name", m.GetName()}, {"metadata.namespace", m.GetNamespace()}, {"spec.kubeConfig", spec["kubeConfig"]}} {
		if holes := holesIn(at.v); len(holes) > 0 {
			return fmt.Sprintf("%s holds ${%s}, and the value of that is not known%s: write it into a ConfigMap that is read here, or use "+
				"--from-cluster", at.path, holes[0], unread(m.Object))
		}
	}
	m.holes = holesIn(spec)
	if len(m.holes) > 0 {
		m.note("the %s of ${%s} %s not known%s. Its set says << vars.%s >>, and delivers nothing of the add-on until you write that into the "+
			"set's variables, or for each cluster. What is secret goes into valuesFrom or substituteFrom", Verb(len(m.holes), "value", "values"),
			strings.Join(m.holes, "} and ${"), Verb(len(m.holes), "is", "are"), unread(m.Object), strings.Join(m.holes, " >> and << vars."))
	}
	return ""
}

// unread says which objects may hold the variables of one, and were not read.
func unread(o *Object) string {
	if len(o.Unread) == 0 {
		return ""
	}
	return ", since " + strings.Join(o.Unread, " and ") + " " + Verb(len(o.Unread), "was", "were") + " not read"
}

// holesIn returns the variables in a value that are not known.
func holesIn(v any) []string {
	raw, _ := json.Marshal(v) // what was read as YAML always can be written
	var out []string
	for _, found := range layout.Holes.FindAllSubmatch(raw, -1) {
		out = append(out, string(found[1]))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// filled writes expressions in place of the variables that are not known.
func filled(raw []byte) []byte { return layout.Holes.ReplaceAll(raw, []byte("<< vars.$1 >>")) }

// whole returns the spec of a set with the variables that somebody still has to write, as they stand in the objects.
func (s *set) whole() *hubv1.AddonSetSpec {
	out := &s.object.Spec
	for _, g := range s.groups {
		for _, m := range g.members {
			for _, name := range m.holes {
				if out == &s.object.Spec {
					out = out.DeepCopy()
				}
				raw, _ := json.Marshal(layout.Hole(name)) // a text
				if out.Variables == nil {
					out.Variables = map[string]apiextensionsv1.JSON{}
				}
				out.Variables[name] = apiextensionsv1.JSON{Raw: raw}
			}
		}
	}
	return out
}
