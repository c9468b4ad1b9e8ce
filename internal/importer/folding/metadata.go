// SPDX-License-Identifier: Apache-2.0

package folding

import (
	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/expression"
	"github.com/chandler-hub/chandler/internal/importer/layout"
)

// metadata returns the labels and annotations that people put on the objects of an add-on, as far as all of them have them, and with the
// same value but for the cluster's names. A note of each object names the others.
func (g *group) metadata() *hubv1.OwnMetadata {
	out := &hubv1.OwnMetadata{}
	for _, m := range g.members {
		m.carried = map[string]bool{}
	}
	first := g.members[0]
	for k := range first.GetLabels() {
		g.carry(&out.Labels, "label ", compile.OwnEntry{Addon: g.name, Label: true, Key: k})
	}
	for k := range first.GetAnnotations() {
		g.carry(&out.Annotations, "annotation ", compile.OwnEntry{Addon: g.name, Key: k})
	}
	if out.Labels == nil && out.Annotations == nil {
		return nil
	}
	return out
}

// carry writes one label or annotation for the add-on, if it can.
func (g *group) carry(into *map[string]string, what string, e compile.OwnEntry) {
	if byTool(e.Key) || e.RefusesKey() != "" {
		return
	}
	values := make([]value, len(g.members))
	for i, m := range g.members {
		texts := m.GetAnnotations()
		if e.Label {
			texts = m.GetLabels()
		}
		text, there := texts[e.Key]
		if !there || e.Refuses(text) != "" || layout.Holes.MatchString(text) {
			return
		}
		values[i] = value{true, text}
	}
	written := expression.EscapeAll(values[0].v)
	if !all(values, func(v value) bool { return v.v == values[0].v }) {
		var ok bool
		if written, ok = common(values, tokensOfAll(g.members)); !ok {
			return
		}
	}
	if *into == nil {
		*into = map[string]string{}
	}
	text, _ := written.(string)
	(*into)[e.Key] = text
	for _, m := range g.members {
		m.carried[what+e.Key] = true
	}
}

// keepMetadata leaves out all labels and annotations of a set that would have too many: they are no reason to leave the objects.
func (s *set) keepMetadata(author compile.Author) {
	if compile.CheckMetadata(&s.object.Spec, author) == nil {
		return
	}
	for i := range s.object.Spec.Addons {
		s.object.Spec.Addons[i].Metadata = nil
	}
	for _, g := range s.groups {
		for _, m := range g.members {
			m.carried = nil
		}
	}
}
